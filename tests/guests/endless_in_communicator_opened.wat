;; Never comes back from `communicator-opened`.
(func $communicator_opened (param i32 i64 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i64)
  (loop $again (br $again))
  (unreachable))
