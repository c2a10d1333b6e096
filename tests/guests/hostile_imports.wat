;; Calls every import with what it must refuse; none of it may end the call.
(func $tick (param i64)
  ;; empty and unknown keys
  (call $config_text (i32.const 0) (i32.const 0) (i32.const 4096))
  (call $config_integer (i32.const 8192) (i32.const 57344) (i32.const 4096))
  (call $config_number (i32.const 0) (i32.const 1) (i32.const 4096))
  (call $config_flag (i32.const 0) (i32.const 1) (i32.const 4096))
  ;; a line of 64 KiB, mostly NULs
  (call $log (i32.const 0) (i32.const 8192) (i32.const 57344))
  ;; names that are none
  (call $open_series (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 35) (i32.const 2) (i32.const 0) (i32.const 0) (i32.const 4096))
  (call $open_series (i32.const 2) (i32.const 8192) (i32.const 4096) (i32.const 35) (i32.const 2) (i32.const 0) (i32.const 0) (i32.const 4096))
  ;; numbers that are none: no such series, NaN, infinite, a counter that falls
  (call $update (i32.const -1) (f64.const 1))
  (call $open_series (i32.const 0) (i32.const 0) (i32.const 5) (i32.const 35) (i32.const 2) (i32.const 0) (i32.const 0) (i32.const 4096))
  (call $update (i32.load (i32.const 4100)) (f64.const nan))
  (call $update (i32.load (i32.const 4100)) (f64.const inf))
  (call $update (i32.load (i32.const 4100)) (f64.const -1))
  ;; the same name as another metric
  (call $open_series (i32.const 1) (i32.const 0) (i32.const 5) (i32.const 35) (i32.const 2) (i32.const 0) (i32.const 0) (i32.const 4096))
  ;; records: no kind, sinks that there are not
  (call $emit (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
  (call $emit (i32.const 0) (i32.const 5) (i32.const 0) (i32.const 0) (i32.const -1))
  ;; alerts: no key; resolved without an open one
  (call $alert (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
  (call $alert (i32.const 0) (i32.const 5) (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
  ;; plans: size class 255, one in 2^255, valid for 0 ms, sinks that there are not
  (call $set_plan (i32.const -1) (i32.const 0) (i32.const 255) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
  (call $set_plan (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 2) (i32.const 255) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
  (call $set_plan (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0))
  (call $set_plan (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 0) (i32.const 0))
  (call $replan (i32.const 1) (i32.const -1))
  (call $replan (i32.const 0) (i32.const 0))
  (call $open_operations (i64.const -1) (i32.const 4096))
  (call $open_operations (i64.const 0) (i32.const 4096))
  ;; a tag outside of observe
  (call $tag (i32.const 0) (i32.const 0) (i32.const 5))
  (call $dump_black_box (i32.const 0) (i32.const 0))
  (call $dump_black_box (i32.const 0) (i32.const 0))
  (call $reset))
