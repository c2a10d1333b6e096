;; Opens series after series, a million in all, each with a label of its own (2056: the digits).
(data (i32.const 2048) "n")
;; 2064: one label: key at 2048, value at 2056
(data (i32.const 2064) "\00\08\00\00\01\00\00\00" "\08\08\00\00\08\00\00\00")
(global $n (mut i32) (i32.const 0))
(func $digits (param $n i32)
  (local $at i32)
  (local.set $at (i32.const 2063))
  (loop $more
    (i32.store8 (local.get $at) (i32.add (i32.const 48) (i32.rem_u (local.get $n) (i32.const 10))))
    (local.set $n (i32.div_u (local.get $n) (i32.const 10)))
    (local.set $at (i32.sub (local.get $at) (i32.const 1)))
    (br_if $more (i32.ge_u (local.get $at) (i32.const 2056)))))
(func $tick (param i64)
  (local $left i32)
  (local.set $left (i32.const 1000))
  (loop $more
    (call $digits (global.get $n))
    (call $open_series (i32.const 0) (i32.const 0) (i32.const 5) (i32.const 35) (i32.const 2)
      (i32.const 2064) (i32.const 1) (i32.const 1024))
    (call $update (i32.load (i32.const 1028)) (f64.const 1))
    (global.set $n (i32.add (global.get $n) (i32.const 1)))
    (local.set $left (i32.sub (local.get $left) (i32.const 1)))
    (br_if $more (local.get $left))))
