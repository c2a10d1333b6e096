;; Never comes back from `communicator-closed`.
(func $communicator_closed (param i32)
  (loop $again (br $again))
  (unreachable))
