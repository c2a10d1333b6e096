;; Calls a function that there is not.
(func $observe (param i32 i32 i32 i32) (result i32) (call_indirect $functions (result i32) (i32.const 0)))
