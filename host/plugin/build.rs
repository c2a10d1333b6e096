//! Link flags of the library: it is never unmapped (our threads and NCCL's pointers into it outlive a dlclose).

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
