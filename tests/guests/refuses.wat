;; Refuses its configuration.
(data (i32.const 2048) "no sink called history")
(func $configure (param i32 i32) (result i32)
  (i32.store (i32.const 1024) (i32.const 1))
  (i32.store (i32.const 1028) (i32.const 2048))
  (i32.store (i32.const 1032) (i32.const 22))
  (i32.const 1024))
