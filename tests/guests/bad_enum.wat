;; Logs at a level that there is not.
(func $tick (param i64) (call $log (i32.const 99) (i32.const 0) (i32.const 5)))
