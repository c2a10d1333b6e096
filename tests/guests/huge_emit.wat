;; Emits a text of 1e9 bytes, which it does not have.
(data (i32.const 2048) "\00\00\00\00\05\00\00\00" "\03\00\00\00\00\00\00\00" "\00\00\00\00\00\ca\9a\3b")
(func $tick (param i64)
  (i32.store (i32.const 2064) (i32.const 0))
  (i32.store (i32.const 2068) (i32.const 1000000000))
  (call $emit (i32.const 0) (i32.const 5) (i32.const 2048) (i32.const 1) (i32.const 0)))
