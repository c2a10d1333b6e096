//! See host/README.md.
