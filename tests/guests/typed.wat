;; For the typed list: keeps what is collective (kind 0), at most 1024 operations; each verdict takes 8 bytes.
;; typed
(func $observe (param $at i32) (param $count i32) (result i32)
  (local $left i32) (local $out i32)
  (local.set $left (local.get $count))
  (local.set $out (i32.const 1048576))
  (call $reset)
  (block $done
    (loop $more
      (br_if $done (i32.eqz (local.get $left)))
      (i32.store (local.get $out) (i32.eqz (i32.load8_u offset=8 (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 296)))
      (local.set $out (i32.add (local.get $out) (i32.const 8)))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br $more)))
  (call $verdicts (local.get $count)))
