//! What is open: operations and their children, in slabs that are reused.

use collander_event::{Channel, Collective, OpKind, ProxyOperation, Waits};

/// No index.
pub(super) const NONE: u32 = u32::MAX;

/// What has to happen to an operation before it may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Stage {
    /// Something is still expected.
    #[default]
    Open,
    /// Over, and waiting for stragglers, for two passes, or for the GPU timer's unit.
    Closing,
    /// Over, and waiting for its P2P group to be decided.
    Held,
}

/// An operation that was not written yet. Times are Unix ns by the CPU's clock unless said otherwise.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// Local id; 0: the slot is free.
    pub id: u64,
    pub generation: u32,
    pub communicator: u32,
    /// Neighbours in the communicator's list of open operations, oldest first.
    pub older: u32,
    pub newer: u32,
    pub first_child: u32,
    pub children: u32,
    pub parent: u64,
    pub group: u64,
    pub sequence: u64,
    pub count: u64,
    pub partner: i32,
    pub kind: OpKind,
    pub stage: Stage,
    pub collective: Collective,
    pub function: u8,
    pub datatype: u8,
    pub api_datatype: u8,
    pub algorithm: u8,
    pub protocol: u8,
    pub warps: u8,
    /// List bits of the class's detail, and those of the id.
    pub detail: u16,
    pub flags: u32,
    pub sinks: u32,
    pub marks: u16,
    /// Channels announced; 0: not known.
    pub announced: u16,
    pub started: u16,
    pub ended: u16,
    /// Different channels that started.
    pub distinct: u16,
    pub channels_seen: [u64; 4],
    /// Channels with usable GPU stamps.
    pub usable: u16,
    pub proxies: u32,
    pub proxies_open: u32,
    pub steps: u32,
    /// Of an inferred group: its index.
    pub inferred: u32,
    pub enqueued: u64,
    /// 0: its stop did not come.
    pub stopped: u64,
    /// Last event's own time.
    pub last: u64,
    /// When the drain last heard of it, by the time of its passes.
    pub touched: u64,
    pub cpu_first: u64,
    pub cpu_last: u64,
    pub cpu_longest: u64,
    /// GPU stamps, in the timer's units, of usable pairs.
    pub gpu_first: u64,
    pub gpu_last: u64,
    pub gpu_longest: u64,
    pub proxy_first: u64,
    pub proxy_last: u64,
    /// Copy engine: states 25 and 26, else first and last of its syncs and batches.
    pub ce_first: u64,
    pub ce_last: u64,
    pub waits: Waits,
    pub sent: u64,
    pub received: u64,
    pub more: Option<Box<More>>,
}

/// What few operations have.
#[derive(Debug, Default)]
pub(super) struct More {
    pub user_tag: u64,
    pub variant: u8,
    pub strategy: u8,
    pub channels: Vec<Channel>,
    pub proxies: Vec<ProxyOperation>,
}

/// Bits of `Open::marks`.
pub(super) mod mark {
    /// It is on the list of those to look at after the settle time.
    pub const WATCHED: u16 = 1;
    /// A rule that saw its exact size leaves it out.
    pub const LEFT_OUT: u16 = 2;
    /// The next replay of its graph operation began.
    pub const SUPERSEDED: u16 = 4;
    /// Member of a P2P group that is not decided yet.
    pub const GROUP_OPEN: u16 = 8;
    /// It has waited for stragglers.
    pub const WAITED: u16 = 16;
    /// The copy engine's start state came.
    pub const CE_STARTED: u16 = 32;
    /// And its end.
    pub const CE_ENDED: u16 = 64;
    /// Its parent was not known on its thread: perhaps a replay.
    pub const NO_API: u16 = 128;
    /// v4 and later: fewer channels than announced is odd.
    pub const CHANNELS_EXACT: u16 = 256;
    /// One of its channels was not stopped or its GPU stamps had no use.
    pub const STAMPS_LACKING: u16 = 512;
    /// The time of its API call is known, not only that of the record.
    pub const API_TIMED: u16 = 1024;
    /// It is in the copy of the replays' table.
    pub const REPLAY: u16 = 2048;
}

impl Open {
    pub(super) const fn has(&self, mark: u16) -> bool {
        self.marks & mark != 0
    }

    pub(super) fn more(&mut self) -> &mut More {
        self.more.get_or_insert_with(Box::default)
    }
}

/// An event below an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Child {
    /// Local id; 0: the slot is free.
    pub id: u64,
    /// Slot of the operation; `NONE`: detached.
    pub operation: u32,
    pub next: u32,
    pub previous: u32,
    pub data: ChildData,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ChildData {
    /// `list`: index in `More::channels`, or `NONE`.
    Kernel { channel: u8, gpu_start: u64, cpu_start: u64, list: u32 },
    /// `list`: index in `More::proxies`.
    Proxy { send: bool, list: u32 },
    /// `list`: index of its proxy operation in `More::proxies`; `step`: its own in there.
    Step { list: u32, step: u32, times: StepTimes },
    /// `list`: index of its channel; `phase`: its own in there.
    Phase { list: u32, phase: u32 },
    /// Sync or batch of the copy engine.
    CopyEngine { start: u64 },
    /// Of another process: only known so that its own events are not odd.
    Detached,
}

/// States of a step; 0: did not come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StepTimes {
    pub send: bool,
    /// 8, 12.
    pub gpu: u64,
    /// 20.
    pub peer: u64,
    /// 9, 10.
    pub wire: u64,
    /// 11.
    pub flush: u64,
    pub bytes: u64,
}

impl StepTimes {
    /// Where the time until `stop` went.
    pub(super) fn waits(&self, stop: u64) -> Waits {
        let span = |from: u64, to: u64| if from == 0 || to == 0 { 0 } else { to.saturating_sub(from) };
        let or = |first: u64, second: u64| if first == 0 { second } else { first };
        if self.send {
            Waits {
                gpu: span(self.gpu, or(self.peer, or(self.wire, stop))),
                peer: span(self.peer, or(self.wire, stop)),
                wire: span(self.wire, stop),
                flush: 0,
            }
        } else {
            Waits {
                wire: span(self.wire, or(self.flush, or(self.gpu, stop))),
                flush: span(self.flush, or(self.gpu, stop)),
                gpu: span(self.gpu, stop),
                peer: 0,
            }
        }
    }
}

pub(super) fn add_waits(sum: &mut Waits, waits: Waits) {
    sum.gpu = sum.gpu.saturating_add(waits.gpu);
    sum.peer = sum.peer.saturating_add(waits.peer);
    sum.wire = sum.wire.saturating_add(waits.wire);
    sum.flush = sum.flush.saturating_add(waits.flush);
}

/// A slab: slots that are used again, latest freed first.
#[derive(Debug)]
pub(super) struct Slab<T> {
    pub items: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }

    /// Index of a free slot, if there is one.
    pub(super) fn reuse(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Index of a slot that holds `item`.
    pub(super) fn add(&mut self, item: T) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.items[index as usize] = item;
                index
            }
            None => {
                self.items.push(item);
                (self.items.len() - 1) as u32
            }
        }
    }

    pub(super) fn release(&mut self, index: u32) {
        self.free.push(index);
    }

    pub(super) fn used(&self) -> usize {
        self.items.len() - self.free.len()
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, index: u32) -> &T {
        &self.items[index as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.items[index as usize]
    }
}
