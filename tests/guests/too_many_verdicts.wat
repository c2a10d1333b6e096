;; Returns one verdict too many.
(func $observe (param i32) (param $words i32) (param i32 i32) (result i32) (call $reset) (memory.fill (i32.const 1048576) (i32.const 1) (i32.const 2000))
  (call $verdicts (i32.add (i32.shr_u (local.get $words) (i32.const 5)) (i32.const 1))))
