;; Takes memory, 1 MiB at a time, until it is stopped.
(func $observe (param i32 i32 i32 i32) (result i32)
  (loop $more (drop (memory.grow (i32.const 16))) (br $more))
  (unreachable))
