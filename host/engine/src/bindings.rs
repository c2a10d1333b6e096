//! The interface `wit/since-v0.1.0` as Rust types, generated when this crate is built. Only this crate sees them.
#![allow(
    missing_docs,
    missing_debug_implementations,
    unused,
    unused_qualifications,
    unsafe_code,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    reason = "generated from wit/since-v0.1.0, which has the documentation"
)]

/// Both worlds at once: which of the two `tail` interfaces a filter exports is looked up when it is prepared.
mod since_v0_1_0 {
    wasmtime::component::bindgen!({
        path: "../../wit/since-v0.1.0",
        inline: "
            package collander:engine;
            world both {
                import collander:filter/host@0.1.0;
                export collander:filter/lifecycle@0.1.0;
                export collander:filter/head@0.1.0;
                export collander:filter/tail@0.1.0;
                export collander:filter/tail-packed@0.1.0;
            }
        ",
        world: "collander:engine/both",
        imports: { default: trappable },
    });
}

pub(crate) use since_v0_1_0::collander::filter::{decisions, host, traffic};
pub(crate) use since_v0_1_0::exports::collander::filter::{head, lifecycle, tail, tail_packed};
