;; Emits 100 000 records a tick.
(data (i32.const 2048) "\00\00\00\00\05\00\00\00" "\01\00\00\00\00\00\00\00" "\07\00\00\00\00\00\00\00")
(func $tick (param i64)
  (local $n i32)
  (loop $more
    (call $emit (i32.const 0) (i32.const 5) (i32.const 2048) (i32.const 1) (i32.const 0))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $more (i32.lt_u (local.get $n) (i32.const 100000)))))
