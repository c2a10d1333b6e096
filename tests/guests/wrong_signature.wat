;; Calls a function by the wrong signature.
(elem (table $functions) (i32.const 0) func $reset)
(func $observe (param i32 i32 i32 i32) (result i32) (call_indirect $functions (result i32) (i32.const 0)))
