;; Logs a text that is not UTF-8.
(data (i32.const 2048) "\ff\fe\fd")
(func $tick (param i64) (call $log (i32.const 1) (i32.const 2048) (i32.const 3)))
