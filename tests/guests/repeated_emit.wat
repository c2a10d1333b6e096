;; Emits 1 GB by pointing 1000 fields at the same 1 MiB.
(func $tick (param i64)
  (local $n i32) (local $at i32)
  (local.set $at (i32.const 65536))
  (loop $more
    (i32.store (local.get $at) (i32.const 0))
    (i32.store offset=4 (local.get $at) (i32.const 5))
    (i32.store offset=8 (local.get $at) (i32.const 3))
    (i32.store offset=16 (local.get $at) (i32.const 131072))
    (i32.store offset=20 (local.get $at) (i32.const 1048576))
    (local.set $at (i32.add (local.get $at) (i32.const 24)))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $more (i32.lt_u (local.get $n) (i32.const 1000))))
  (call $emit (i32.const 0) (i32.const 5) (i32.const 65536) (i32.const 1000) (i32.const 0)))
