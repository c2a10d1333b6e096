;; Says something, and traps.
(data (i32.const 2048) "assertion failed: left == right")
(func $observe (param i32 i32 i32 i32) (result i32)
  (call $log (i32.const 3) (i32.const 2048) (i32.const 31))
  (unreachable))
