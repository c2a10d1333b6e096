;; Reads beyond its memory.
(func $observe (param i32 i32 i32 i32) (result i32) (i32.load (i32.const 0x7fffffff)))
