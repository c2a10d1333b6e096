//! Operations as packed records. The layout is generated from `layout/packed.toml`.

use collander_event::{OpKind, Operation, size_class};

use crate::layout::{self, CHILD_WORDS, OPERATION_WORDS};
use crate::names::{algorithm, protocol};

/// A batch as words; kept between batches, so that nothing is allocated.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    operations: Vec<[u64; OPERATION_WORDS]>,
    children: Vec<[u64; CHILD_WORDS]>,
}

/// Puts a value at its place; what does not fit its bits would be a bug of the layout.
macro_rules! put {
    ($words:expr, $place:ident, $value:expr) => {
        $words[layout::$place.0] |= ($value) << layout::$place.1
    };
}

impl Packed {
    /// Takes a batch.
    pub(crate) fn fill(&mut self, batch: &[Operation]) {
        self.operations.clear();
        self.children.clear();
        self.operations.reserve(batch.len());
        for operation in batch {
            let children = if operation.channel_list.is_empty() && operation.proxies.is_empty() {
                (0, 0)
            } else {
                let first = self.children.len();
                self.children_of(operation);
                (first as u64, (self.children.len() - first) as u64)
            };
            self.operations.push(words(operation, children));
        }
    }

    /// The operations, as `observe` is given them.
    pub(crate) fn operations(&self) -> &[u64] {
        self.operations.as_flattened()
    }

    /// The children, as `observe` is given them.
    pub(crate) fn children(&self) -> &[u64] {
        self.children.as_flattened()
    }

    fn children_of(&mut self, operation: &Operation) {
        for channel in &operation.channel_list {
            let mut w = [0u64; CHILD_WORDS];
            put!(w, CHILD_CHILD_KIND, layout::CHILD_KIND_CHANNEL);
            put!(w, CHILD_CHANNEL, u64::from(channel.channel));
            put!(w, CHILD_GPU_START, channel.gpu_start);
            put!(w, CHILD_GPU_STOP, channel.gpu_stop);
            put!(w, CHILD_START, channel.cpu_start_ns);
            put!(w, CHILD_STOP, channel.cpu_stop_ns);
            self.children.push(w);
            for phase in &channel.phases {
                let mut w = [0u64; CHILD_WORDS];
                put!(w, CHILD_CHILD_KIND, layout::CHILD_KIND_PHASE);
                put!(w, CHILD_CHANNEL, u64::from(channel.channel));
                put!(w, CHILD_PHASE, u64::from(phase.phase));
                put!(w, CHILD_GPU_START, phase.start);
                put!(w, CHILD_GPU_STOP, phase.stop);
                self.children.push(w);
            }
        }
        for proxy in &operation.proxies {
            let mut w = [0u64; CHILD_WORDS];
            put!(w, CHILD_CHILD_KIND, layout::CHILD_KIND_PROXY_OPERATION);
            put!(w, CHILD_CHANNEL, u64::from(proxy.channel));
            put!(w, CHILD_SEND, u64::from(proxy.send));
            put!(w, CHILD_PEER, u64::from(proxy.peer as u32));
            put!(w, CHILD_START, proxy.start_ns);
            put!(w, CHILD_STOP, proxy.stop_ns);
            put!(w, CHILD_BYTES, proxy.bytes);
            put!(w, CHILD_STEPS, u64::from(proxy.steps));
            put!(w, CHILD_STEPS_DONE, u64::from(proxy.steps_done));
            put!(w, CHILD_CHUNK_BYTES, u64::from(proxy.chunk_bytes));
            put!(w, CHILD_FOREIGN_PROCESS, u64::from(proxy.foreign_pid as u32));
            put!(w, CHILD_WAIT_GPU, proxy.waits.gpu);
            put!(w, CHILD_WAIT_PEER, proxy.waits.peer);
            put!(w, CHILD_WAIT_WIRE, proxy.waits.wire);
            put!(w, CHILD_WAIT_FLUSH, proxy.waits.flush);
            self.children.push(w);
            for step in &proxy.step_list {
                let mut w = [0u64; CHILD_WORDS];
                put!(w, CHILD_CHILD_KIND, layout::CHILD_KIND_PROXY_STEP);
                put!(w, CHILD_CHANNEL, u64::from(proxy.channel));
                put!(w, CHILD_SEND, u64::from(proxy.send));
                put!(w, CHILD_PEER, u64::from(proxy.peer as u32));
                put!(w, CHILD_START, step.start_ns);
                put!(w, CHILD_STOP, step.stop_ns);
                put!(w, CHILD_BYTES, step.bytes);
                put!(w, CHILD_STEPS, u64::from(step.step as u32));
                put!(w, CHILD_WAIT_GPU, step.gpu_wait_ns);
                put!(w, CHILD_WAIT_PEER, step.peer_wait_ns);
                put!(w, CHILD_WAIT_WIRE, step.wait_ns);
                put!(w, CHILD_WAIT_FLUSH, step.flush_wait_ns);
                self.children.push(w);
            }
        }
    }
}

const fn kind(kind: OpKind) -> u64 {
    match kind {
        OpKind::Coll => 0,
        OpKind::P2p => 1,
        OpKind::CopyEngine => 2,
        OpKind::Api => 3,
        OpKind::InferredGroup => 4,
    }
}

#[inline(always)]
fn words(o: &Operation, children: (u64, u64)) -> [u64; OPERATION_WORDS] {
    let mut w = [0u64; OPERATION_WORDS];
    let mut present = 0;
    let mut optional = |value: Option<u64>, bit: u64| {
        present |= if value.is_some() { bit } else { 0 };
        value.unwrap_or(0)
    };
    put!(w, OPERATION_ID, o.id);
    put!(w, OPERATION_COMMUNICATOR, u64::from(o.communicator.ordinal));
    put!(w, OPERATION_COLLECTIVE, o.collective as u64);
    put!(w, OPERATION_DATATYPE, o.datatype as u64);
    put!(w, OPERATION_ALGORITHM, algorithm(o) as u64);
    put!(w, OPERATION_PROTOCOL, protocol(o.protocol) as u64);
    put!(w, OPERATION_CIRCUMSTANCES, u64::from(o.flags.0 & 0xffff));
    put!(w, OPERATION_KIND, kind(o.kind));
    put!(w, OPERATION_TIMING, o.timing as u64);
    put!(w, OPERATION_SIZE_CLASS, size_class(o.bytes.unwrap_or(0)) as u64);
    put!(w, OPERATION_SEQUENCE, o.sequence);
    put!(w, OPERATION_COUNT, o.count);
    put!(w, OPERATION_BYTES, optional(o.bytes, layout::PRESENT_BYTES));
    put!(w, OPERATION_RANK_BYTES, optional(o.rank_bytes, layout::PRESENT_RANK_BYTES));
    put!(w, OPERATION_PARTNER, u64::from(o.partner as u32));
    put!(w, OPERATION_CHANNELS_USED, u64::from(o.channels));
    put!(w, OPERATION_CHANNELS_SEEN, u64::from(o.channels_seen));
    put!(w, OPERATION_WARPS, u64::from(o.warps));
    put!(w, OPERATION_MEMBERS, u64::from(o.members));
    put!(w, OPERATION_ENQUEUED, o.enqueued_ns);
    put!(w, OPERATION_ENQUEUE, o.enqueue_ns);
    put!(w, OPERATION_QUEUED, optional(o.queued_ns, layout::PRESENT_QUEUED));
    put!(w, OPERATION_DURATION, optional(o.duration_ns, layout::PRESENT_DURATION));
    put!(w, OPERATION_LONGEST_CHANNEL, optional(o.longest_channel_ns, layout::PRESENT_LONGEST_CHANNEL));
    put!(w, OPERATION_ENDED, o.ended_ns);
    put!(w, OPERATION_GPU_START, optional(o.gpu_start, layout::PRESENT_GPU_START));
    put!(w, OPERATION_GPU_STOP, optional(o.gpu_stop, layout::PRESENT_GPU_STOP));
    put!(w, OPERATION_ALGBW, optional(o.algbw.map(f64::to_bits), layout::PRESENT_ALGBW));
    put!(w, OPERATION_BUSBW, optional(o.busbw.map(f64::to_bits), layout::PRESENT_BUSBW));
    let waits = o.waits.unwrap_or_default();
    put!(w, OPERATION_WAIT_GPU, waits.gpu);
    put!(w, OPERATION_WAIT_PEER, waits.peer);
    put!(w, OPERATION_WAIT_WIRE, waits.wire);
    put!(w, OPERATION_WAIT_FLUSH, waits.flush);
    present |= if o.waits.is_some() { layout::PRESENT_WAITS } else { 0 };
    put!(w, OPERATION_SENT, o.sent_bytes);
    put!(w, OPERATION_RECEIVED, o.received_bytes);
    put!(w, OPERATION_PROXY_OPERATIONS, u64::from(o.proxy_operations));
    put!(w, OPERATION_PROXY_STEPS, u64::from(o.proxy_steps));
    put!(w, OPERATION_USER_TAG, o.user_tag);
    put!(w, OPERATION_GROUP, o.group);
    put!(w, OPERATION_CHILDREN_FIRST, children.0);
    put!(w, OPERATION_CHILDREN_COUNT, children.1);
    put!(w, OPERATION_SINKS, u64::from(o.sinks));
    put!(w, OPERATION_PRESENT, present);
    w
}

#[cfg(test)]
mod tests;
