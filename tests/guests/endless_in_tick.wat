;; Never comes back from `tick`.
(func $tick (param i64)
  (loop $again (br $again))
  (unreachable))
