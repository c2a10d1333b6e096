;; Has a name with a space.
(data (i32.const 0) "g est")
