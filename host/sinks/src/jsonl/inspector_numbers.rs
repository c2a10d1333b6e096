//! Inspector's numbers for an operation: its time, source, size and bandwidths.

use collander_event::{Collective, OpKind, Operation, Timing};

/// What Inspector says of one operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Numbers {
    /// Function; `Invalid` for what its table lacks.
    pub function: &'static str,
    /// Bytes per rank.
    pub size: u64,
    /// Time in whole µs.
    pub time_us: u64,
    /// Source of the time.
    pub source: &'static str,
    /// Gigabytes (1e9) a second.
    pub algbw: f64,
    /// Gigabytes (1e9) a second.
    pub busbw: f64,
}

/// What a sink leaves out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Operations without GPU times.
    pub require_kernel_timing: bool,
    /// Operations with fewer bytes per rank.
    pub min_size_bytes: u64,
}

/// The numbers; None if Inspector would not write it.
pub(crate) fn numbers(op: &Operation, rules: Rules) -> Option<Numbers> {
    let p2p = match op.kind {
        OpKind::Coll => false,
        OpKind::P2p => true,
        OpKind::CopyEngine | OpKind::Api | OpKind::InferredGroup => return None,
    };
    let source = match op.timing {
        Timing::Gpu | Timing::GpuSomeChannels => "kernel_gpu",
        _ if rules.require_kernel_timing => return None,
        Timing::KernelCpu => "kernel_cpu",
        Timing::ProxyCpu | Timing::EnqueueOnly => "collective_cpu",
        Timing::Unobservable => return None,
    };
    let time_us = op.longest_channel_ns.or(op.duration_ns)? / 1000;
    if op.count == 0 || op.rank_bytes.is_some_and(|bytes| bytes < rules.min_size_bytes) {
        return None;
    }
    let ranks = op.communicator.ranks?;
    let size = op.rank_bytes.unwrap_or(0);
    let (known, traffic, factor) = traffic(op.collective, p2p, size, ranks);
    // The time in whole µs is what Inspector computes with.
    let seconds = time_us as f64 / 1e6;
    let algbw = if time_us == 0 { 0.0 } else { traffic / 1e9 / seconds };
    let function = if known { op.collective.name() } else { "Invalid" };
    Some(Numbers { function, size, time_us, source, algbw, busbw: algbw * factor })
}

/// Whether Inspector knows the function, the bytes it counts, and busbw / algbw.
fn traffic(function: Collective, p2p: bool, size: u64, ranks: u32) -> (bool, f64, f64) {
    let (bytes, n) = (size as f64, f64::from(ranks));
    match function {
        Collective::Send | Collective::Recv | Collective::SendRecv => (true, bytes, 1.0),
        _ if p2p => (function != Collective::Unknown, bytes, 1.0),
        _ if ranks == 0 => (false, 0.0, 0.0),
        Collective::AllReduce => (true, bytes, 2.0 * (n - 1.0) / n),
        Collective::AllGather | Collective::AllGatherV | Collective::ReduceScatter => (true, bytes * n, (n - 1.0) / n),
        Collective::Broadcast | Collective::Reduce => (true, bytes, 1.0),
        _ => (false, 0.0, 0.0),
    }
}
