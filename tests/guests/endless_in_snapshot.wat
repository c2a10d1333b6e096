;; Never comes back from `snapshot`.
(func $snapshot (result i32)
  (loop $again (br $again))
  (unreachable))
