;; Logs 10 000 lines a batch.
(func $tick (param i64)
  (local $n i32)
  (loop $more
    (call $log (i32.const 1) (i32.const 0) (i32.const 20))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $more (i32.lt_u (local.get $n) (i32.const 10000)))))
