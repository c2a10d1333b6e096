;; Decides for one in 2^200.
(func $decide (param i32 i32 i32) (result i32)
  (memory.fill (i32.const 1024) (i32.const 0) (i32.const 32))
  (i32.store8 (i32.const 1024) (i32.const 1))
  (i32.store8 (i32.const 1028) (i32.const 2))
  (i32.store8 (i32.const 1032) (i32.const 200))
  (i32.const 1024))
