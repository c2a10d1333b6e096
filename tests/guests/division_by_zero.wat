;; Divides by zero.
(func $observe (param i32 i32 i32 i32) (result i32) (i32.div_u (local.get 0) (i32.const 0)))
