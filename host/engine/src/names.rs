//! NCCL's texts as cases of the interface's enums.

use collander_event::{Flags, OpKind, Operation};

use crate::bindings::traffic::{Algorithm, Protocol};

/// NCCL spells them as `ncclAlgoStr` does; capitals make no difference.
pub(crate) fn algorithm(operation: &Operation) -> Algorithm {
    const TABLE: [(&str, Algorithm); 11] = [
        ("RING", Algorithm::Ring),
        ("TREE", Algorithm::Tree),
        ("NVLS", Algorithm::Nvls),
        ("NVLS_TREE", Algorithm::NvlsTree),
        ("NVLSTree", Algorithm::NvlsTree),
        ("COLLNET_DIRECT", Algorithm::CollnetDirect),
        ("CollNetDirect", Algorithm::CollnetDirect),
        ("COLLNET_CHAIN", Algorithm::CollnetChain),
        ("CollNetChain", Algorithm::CollnetChain),
        ("PAT", Algorithm::Pat),
        ("SYMMETRIC", Algorithm::Symmetric),
    ];
    if operation.kind == OpKind::CopyEngine {
        return Algorithm::CopyEngine;
    }
    if operation.flags.has(Flags::SYMMETRIC) {
        return Algorithm::Symmetric;
    }
    match operation.algorithm {
        "" => Algorithm::Unknown,
        "RING" => Algorithm::Ring,
        text => TABLE.iter().find(|row| row.0.eq_ignore_ascii_case(text)).map_or(Algorithm::Unknown, |row| row.1),
    }
}

/// As `algorithm`.
pub(crate) fn protocol(text: &str) -> Protocol {
    match text {
        "SIMPLE" | "Simple" | "simple" => Protocol::Simple,
        "LL" | "ll" => Protocol::Ll,
        "LL128" | "ll128" => Protocol::Ll128,
        _ => Protocol::Unknown,
    }
}
