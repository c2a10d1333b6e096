;; For benchmarks: reads each operation's duration and size, keeps those above 1 ms.
(func $observe (param i32) (param $words i32) (param i32 i32) (result i32)
  (local $at i32) (local $count i32) (local $left i32) (local $out i32)
  (local.set $at (local.get 0))
  (local.set $count (i32.shr_u (local.get $words) (i32.const 5)))
  (local.set $left (local.get $count))
  (local.set $out (i32.const 1048576))
  (call $reset)
  (block $done
    (loop $more
      (br_if $done (i32.eqz (local.get $left)))
      (i32.store8 (local.get $out)
        (i64.gt_u (i64.add (i64.load offset=96 (local.get $at)) (i64.load offset=40 (local.get $at))) (i64.const 1000000)))
      (local.set $at (i32.add (local.get $at) (i32.const 256)))
      (local.set $out (i32.add (local.get $out) (i32.const 1)))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br $more)))
  (call $verdicts (local.get $count)))
