;; Returns a byte that is no verdict.
(func $observe (param i32) (param $words i32) (param i32 i32) (result i32) (call $reset) (memory.fill (i32.const 1048576) (i32.const 77) (i32.const 1024))
  (call $verdicts (i32.shr_u (local.get $words) (i32.const 5))))
