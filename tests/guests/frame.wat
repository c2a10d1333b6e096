;; What all guests here have in common: the imports, memory, exports and a well-behaved default of each function. A guest is a
;; file with the functions that it does otherwise; a default is taken only where the guest has no function of that name.
;; The first 64 KiB hold what is constant and what is returned; lists from the host come behind it; verdicts lie at 1 MiB.
(module
  (import "collander:filter/host@0.1.0" "log" (func $log (param i32 i32 i32)))
  (import "collander:filter/host@0.1.0" "config-text" (func $config_text (param i32 i32 i32)))
  (import "collander:filter/host@0.1.0" "config-integer" (func $config_integer (param i32 i32 i32)))
  (import "collander:filter/host@0.1.0" "config-number" (func $config_number (param i32 i32 i32)))
  (import "collander:filter/host@0.1.0" "config-flag" (func $config_flag (param i32 i32 i32)))
  (import "collander:filter/host@0.1.0" "open-series" (func $open_series (param i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "collander:filter/host@0.1.0" "update" (func $update (param i32 f64)))
  (import "collander:filter/host@0.1.0" "emit" (func $emit (param i32 i32 i32 i32 i32)))
  (import "collander:filter/host@0.1.0" "alert" (func $alert (param i32 i32 i32 i32 i32 i32 i32)))
  (import "collander:filter/host@0.1.0" "set-plan"
    (func $set_plan (param i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "collander:filter/host@0.1.0" "replan" (func $replan (param i32 i32)))
  (import "collander:filter/host@0.1.0" "open-operations" (func $open_operations (param i64 i32)))
  (import "collander:filter/host@0.1.0" "tag" (func $tag (param i32 i32 i32)))
  (import "collander:filter/host@0.1.0" "dump-black-box" (func $dump_black_box (param i32 i32)))

  (memory (export "memory") 20)
  (global $heap (mut i32) (i32.const 65536))
  (table $functions 1 funcref)

  ;; 0: text
  (data (i32.const 0) "guest0.1.0a guest of the testscountnslimit")
  ;; 256: the description: name, version, summary, settings, emits, wants (channels), ticks every 100 ms, keeps on failure
  (data (i32.const 256) "\00\00\00\00\05\00\00\00" "\05\00\00\00\05\00\00\00" "\0a\00\00\00\14\00\00\00"
    "\00\02\00\00\01\00\00\00" "\00\00\00\00\00\00\00\00" "\01\00\00\00" "\64\00\00\00" "\01\00\00\00")
  ;; 512: one setting: key `limit`, an integer, default 7, from 1 to 100
  (data (i32.const 512) "\25\00\00\00\05\00\00\00" "\01\00\00\00" "\0a\00\00\00\14\00\00\00" "\00\00\00\00"
    "\01\00\00\00\00\00\00\00" "\01\00\00\00\00\00\00\00" "\07\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00" "\01\00\00\00\00\00\00\00" "\00\00\00\00\00\00\f0\3f"
    "\01\00\00\00\00\00\00\00" "\00\00\00\00\00\00\59\40" "\00\00\00\00\00\00\00\00")

  (func $realloc (export "cabi_realloc") (param i32 i32 i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
    (global.set $heap (i32.add (local.get $at) (local.get $size)))
    (block $enough
      (br_if $enough (i32.le_u (global.get $heap) (i32.shl (memory.size) (i32.const 16))))
      (br_if $enough (i32.ne (i32.const -1)
        (memory.grow (i32.add (i32.shr_u (local.get $size) (i32.const 16)) (i32.const 1)))))
      (unreachable))
    (local.get $at))
  ;; What the host's lists took is free again.
  (func $reset (global.set $heap (i32.const 65536)))
  ;; At 1024: a list of so many verdicts at 1 MiB.
  (func $verdicts (param $count i32) (result i32)
    (i32.store (i32.const 1024) (i32.const 1048576))
    (i32.store (i32.const 1028) (local.get $count))
    (i32.const 1024))
  ;; At 1024: success.
  (func $ok (result i32) (i32.store (i32.const 1024) (i32.const 0)) (i32.const 1024))

  (export "collander:filter/lifecycle@0.1.0#describe" (func $describe))
  (export "collander:filter/lifecycle@0.1.0#configure" (func $configure))
  (export "collander:filter/lifecycle@0.1.0#communicator-opened" (func $communicator_opened))
  (export "collander:filter/lifecycle@0.1.0#communicator-closed" (func $communicator_closed))
  (export "collander:filter/lifecycle@0.1.0#tick" (func $tick))
  (export "collander:filter/lifecycle@0.1.0#snapshot" (func $snapshot))
  (export "collander:filter/lifecycle@0.1.0#restore" (func $restore))
  (export "collander:filter/head@0.1.0#decide" (func $decide))
  (export "collander:filter/tail-packed@0.1.0#observe" (func $observe))

  ;; default: describe
  (func $describe (result i32) (i32.const 256))
  ;; default: configure
  (func $configure (param i32 i32) (result i32) (call $reset) (call $ok))
  ;; default: communicator_opened
  (func $communicator_opened (param i32 i64 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i64) (call $reset))
  ;; default: communicator_closed
  (func $communicator_closed (param i32))
  ;; default: tick
  (func $tick (param i64))
  ;; default: snapshot
  (func $snapshot (result i32)
    (i32.store (i32.const 1024) (i32.const 0)) (i32.store (i32.const 1028) (i32.const 5)) (i32.const 1024))
  ;; default: restore
  (func $restore (param i32 i32 i32 i32) (result i32) (call $reset) (call $ok))
  ;; default: decide
  (func $decide (param i32 i32 i32) (result i32) (call $ok))
  ;; default: observe
  (func $observe (param i32) (param $words i32) (param i32 i32) (result i32)
    (local $count i32)
    (call $reset)
    (local.set $count (i32.shr_u (local.get $words) (i32.const 5)))
    (memory.fill (i32.const 1048576) (i32.const 1) (local.get $count))
    (call $verdicts (local.get $count)))
  ;; default: end
)
