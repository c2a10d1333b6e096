;; Recurses until its stack is used up.
(func $deeper (param i32) (result i32) (i32.add (local.get 0) (call $deeper (i32.add (local.get 0) (i32.const 1)))))
(func $observe (param i32 i32 i32 i32) (result i32) (call $deeper (i32.const 0)))
