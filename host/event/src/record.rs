//! The 64-byte record that one callback of NCCL becomes. Changing it means a new `collander_ring` format number.
//!
//! ```text
//! word 0   ticks of the clock (see `Calibration`)
//! word 1   bits 0..50 local id of the event; bits 50..64 low 14 bits of the operation ordinal
//! word 2   start: bits 0..50 local id of the parent (0: none, or foreign), bits 50..64 high 14 bits of the ordinal
//!          state: the argument, 64 bits (pTimer, transSize, appendedProxyOps); stop: 0
//! word 3   bits 0..2 type · 2..8 state number · 8..16 flags · 16..24 channels or channel id · 24..32 warps
//!          · 32..64 ordinal of the communicator in this process
//! word 4.. payload by kind, see `Payload`
//! ```
//! The *operation ordinal* counts the operation starts that a ring recorded (Coll, P2p, CeColl, and API calls that were
//! written because no operation followed), from 1, modulo 2^28: a reader that was overtaken knows from the gap exactly
//! how many operations it lost. It is 0 in all other records. A name code is an index into the process's `NameTable`.

use crate::ids::{EventId, LOCAL_MASK};
use crate::kind::{EventKind, State};

/// What a record says happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordType {
    /// `startEvent`.
    Start = 0,
    /// `stopEvent`.
    Stop = 1,
    /// `recordEventState`.
    State = 2,
    /// More about the event that started just before on the same ring.
    Extension = 3,
}

/// Flags of a record (8 bits).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordFlags(pub u8);

impl RecordFlags {
    /// The parent handle came from another process: the event is detached.
    pub const FOREIGN_PARENT: u8 = 1;
    /// Send and receive buffer are the same.
    pub const IN_PLACE: u8 = 2;
    /// API events: captured into a CUDA graph.
    pub const GRAPH_CAPTURED: u8 = 4;
    /// v7: symmetric kernel.
    pub const SYMMETRIC: u8 = 8;
    /// An extension record follows on this ring.
    pub const EXTENDED: u8 = 16;
    /// Operation: its API call is not known on this thread (v5+: probably the replay of a captured graph).
    pub const NO_API: u8 = 32;
    /// API record that was written late, because no operation had followed when its group ended.
    pub const API_ONLY: u8 = 64;
    /// State: the argument pointer was NULL. ProxyOp start: its pid is another process's.
    pub const NULL_OR_FOREIGN: u8 = 128;

    /// Whether a bit is set.
    #[must_use]
    pub const fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

/// One record, as eight words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C, align(64))]
pub struct Record(pub [u64; 8]);

/// What a start record has before its payload.
#[derive(Clone, Copy, Debug, Default)]
pub struct StartHeader {
    /// Clock ticks.
    pub ticks: u64,
    /// Id of the event (the nonce is not kept).
    pub id: EventId,
    /// Parent (0: none or foreign).
    pub parent: EventId,
    /// Operation ordinal, modulo 2^28; 0 for what is no operation.
    pub ordinal: u32,
    /// Flags.
    pub flags: RecordFlags,
    /// nChannels, or a channel id.
    pub channels: u8,
    /// Warps.
    pub warps: u8,
    /// Ordinal of the communicator in this process.
    pub communicator: u32,
}

impl Record {
    /// A start record. On the hot path: branch-free.
    #[must_use]
    #[inline(always)]
    pub const fn start(header: StartHeader, payload: [u64; 4]) -> Self {
        Self([
            header.ticks,
            (header.id.0 & LOCAL_MASK) | ((header.ordinal as u64 & 0x3fff) << 50),
            (header.parent.0 & LOCAL_MASK) | (((header.ordinal as u64 >> 14) & 0x3fff) << 50),
            ((header.flags.0 as u64) << 8)
                | ((header.channels as u64) << 16)
                | ((header.warps as u64) << 24)
                | ((header.communicator as u64) << 32),
            payload[0],
            payload[1],
            payload[2],
            payload[3],
        ])
    }

    /// A stop record.
    #[must_use]
    #[inline(always)]
    pub const fn stop(ticks: u64, id: EventId) -> Self {
        Self([ticks, id.0 & LOCAL_MASK, 0, RecordType::Stop as u64, 0, 0, 0, 0])
    }

    /// A state record.
    #[must_use]
    #[inline(always)]
    pub const fn state(ticks: u64, id: EventId, state: State, argument: u64, flags: RecordFlags) -> Self {
        Self([
            ticks,
            id.0 & LOCAL_MASK,
            argument,
            RecordType::State as u64 | (((state.0 & 63) as u64) << 2) | ((flags.0 as u64) << 8),
            0,
            0,
            0,
            0,
        ])
    }

    /// An extension record of the event `id`.
    #[must_use]
    #[inline(always)]
    pub const fn extension(ticks: u64, id: EventId, payload: [u64; 4]) -> Self {
        Self([
            ticks,
            id.0 & LOCAL_MASK,
            0,
            RecordType::Extension as u64,
            payload[0],
            payload[1],
            payload[2],
            payload[3],
        ])
    }

    /// Clock ticks at which it was written.
    #[must_use]
    pub const fn ticks(&self) -> u64 {
        self.0[0]
    }

    /// Local id of the event (nonce 0).
    #[must_use]
    pub const fn id(&self) -> EventId {
        EventId(self.0[1] & LOCAL_MASK)
    }

    /// What happened.
    #[must_use]
    pub const fn record_type(&self) -> RecordType {
        match self.0[3] & 3 {
            0 => RecordType::Start,
            1 => RecordType::Stop,
            2 => RecordType::State,
            _ => RecordType::Extension,
        }
    }

    /// State number of a state record.
    #[must_use]
    pub const fn state_number(&self) -> State {
        State(((self.0[3] >> 2) & 63) as u8)
    }

    /// Argument of a state record.
    #[must_use]
    pub const fn argument(&self) -> u64 {
        self.0[2]
    }

    /// Flags.
    #[must_use]
    pub const fn flags(&self) -> RecordFlags {
        RecordFlags((self.0[3] >> 8) as u8)
    }

    /// Header of a start record.
    #[must_use]
    pub const fn header(&self) -> StartHeader {
        StartHeader {
            ticks: self.0[0],
            id: self.id(),
            parent: EventId(self.0[2] & LOCAL_MASK),
            ordinal: ((self.0[1] >> 50) | ((self.0[2] >> 50) << 14)) as u32,
            flags: self.flags(),
            channels: (self.0[3] >> 16) as u8,
            warps: (self.0[3] >> 24) as u8,
            communicator: (self.0[3] >> 32) as u32,
        }
    }

    /// Payload of a start record.
    #[must_use]
    pub const fn payload(&self) -> Payload {
        let [_, _, _, _, a, b, c, d] = self.0;
        match self.id().kind() {
            EventKind::Coll | EventKind::CeColl => Payload::Coll {
                sequence: a,
                count: b,
                function: c as u8,
                datatype: (c >> 8) as u8,
                algorithm: (c >> 16) as u8,
                protocol: (c >> 24) as u8,
                root: (c >> 32) as i32,
                group: EventId(d & LOCAL_MASK),
                api_datatype: (d >> 50) as u8,
            },
            EventKind::P2p => Payload::P2p {
                sequence: a,
                count: b,
                function: c as u8,
                datatype: (c >> 8) as u8,
                peer: (c >> 32) as i32,
                group: EventId(d & LOCAL_MASK),
                group_depth: (d >> 50) as u8,
            },
            EventKind::CollApi | EventKind::P2pApi => Payload::Api {
                stream: a,
                count: b,
                function: c as u8,
                datatype: (c >> 8) as u8,
                root: (c >> 32) as i32,
                user_tag: d,
            },
            EventKind::GroupApi => Payload::GroupApi { depth: a as i32 },
            EventKind::KernelLaunch => Payload::KernelLaunch { stream: a },
            EventKind::ProxyOp => Payload::ProxyOp {
                peer: (a >> 32) as i32,
                send: a & 1 != 0,
                steps: b as i32,
                chunk_bytes: (b >> 32) as i32,
                pid: c as i32,
            },
            EventKind::ProxyStep => Payload::ProxyStep { step: a as i32 },
            EventKind::KernelCh => Payload::KernelCh { timer: a },
            EventKind::KernelPhase => Payload::KernelPhase { timer: a, phase: b as u8, name: (b >> 8) as u8 },
            EventKind::NetPlugin => Payload::NetPlugin { id: a as i64 },
            EventKind::CeSync => Payload::CeSync { complete: a & 1 != 0, ranks: (a >> 32) as i32 },
            EventKind::CeBatch => Payload::CeBatch { operations: a as i32, bytes: b, intra_sync: c & 1 != 0 },
            EventKind::Group | EventKind::ProxyCtrl => Payload::None,
        }
    }
}

/// Payload of a start record, decoded. Name codes are indexes into the `NameTable`; 0 is NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are NCCL's descriptor members, described in docs/architecture.md")]
pub enum Payload {
    /// Coll and CeColl. `group`: GroupApi of this thread, else the parent group. `api_datatype`: name code of the user's
    /// datatype from the API call, 0 if that is not known.
    Coll {
        sequence: u64,
        count: u64,
        function: u8,
        datatype: u8,
        algorithm: u8,
        protocol: u8,
        root: i32,
        group: EventId,
        api_datatype: u8,
    },
    /// `sequence` is our count per (communicator, peer, direction), from 0.
    P2p {
        sequence: u64,
        count: u64,
        function: u8,
        datatype: u8,
        peer: i32,
        group: EventId,
        group_depth: u8,
    },
    Api {
        stream: u64,
        count: u64,
        function: u8,
        datatype: u8,
        root: i32,
        user_tag: u64,
    },
    GroupApi {
        depth: i32,
    },
    KernelLaunch {
        stream: u64,
    },
    /// Channel id is in the header.
    ProxyOp {
        peer: i32,
        send: bool,
        steps: i32,
        chunk_bytes: i32,
        pid: i32,
    },
    ProxyStep {
        step: i32,
    },
    /// Channel id is in the header. GPU timer in its own units, 0 if NCCL gave none.
    KernelCh {
        timer: u64,
    },
    KernelPhase {
        timer: u64,
        phase: u8,
        name: u8,
    },
    NetPlugin {
        id: i64,
    },
    CeSync {
        complete: bool,
        ranks: i32,
    },
    CeBatch {
        operations: i32,
        bytes: u64,
        intra_sync: bool,
    },
    None,
}

impl Payload {
    /// The words 4 to 7 of a record.
    #[must_use]
    #[inline(always)]
    pub const fn words(self) -> [u64; 4] {
        match self {
            Self::Coll { sequence, count, function, datatype, algorithm, protocol, root, group, api_datatype } => [
                sequence,
                count,
                function as u64
                    | ((datatype as u64) << 8)
                    | ((algorithm as u64) << 16)
                    | ((protocol as u64) << 24)
                    | ((root as u32 as u64) << 32),
                (group.0 & LOCAL_MASK) | ((api_datatype as u64) << 50),
            ],
            Self::P2p { sequence, count, function, datatype, peer, group, group_depth } => [
                sequence,
                count,
                function as u64 | ((datatype as u64) << 8) | ((peer as u32 as u64) << 32),
                (group.0 & LOCAL_MASK) | ((group_depth as u64) << 50),
            ],
            Self::Api { stream, count, function, datatype, root, user_tag } => {
                [stream, count, function as u64 | ((datatype as u64) << 8) | ((root as u32 as u64) << 32), user_tag]
            }
            Self::GroupApi { depth } => [depth as u32 as u64, 0, 0, 0],
            Self::KernelLaunch { stream } => [stream, 0, 0, 0],
            Self::ProxyOp { peer, send, steps, chunk_bytes, pid } => [
                send as u64 | ((peer as u32 as u64) << 32),
                steps as u32 as u64 | ((chunk_bytes as u32 as u64) << 32),
                pid as u32 as u64,
                0,
            ],
            Self::ProxyStep { step } => [step as u32 as u64, 0, 0, 0],
            Self::KernelCh { timer } => [timer, 0, 0, 0],
            Self::KernelPhase { timer, phase, name } => [timer, phase as u64 | ((name as u64) << 8), 0, 0],
            Self::NetPlugin { id } => [id as u64, 0, 0, 0],
            Self::CeSync { complete, ranks } => [complete as u64 | ((ranks as u32 as u64) << 32), 0, 0, 0],
            Self::CeBatch { operations, bytes, intra_sync } => [operations as u32 as u64, bytes, intra_sync as u64, 0],
            Self::None => [0; 4],
        }
    }

    /// Payload of an extension record: the user's tag, name codes of the kernel variant and of the copy engine's sync
    /// strategy, its batch size and number of batches, its own sequence number, and the stream.
    #[must_use]
    #[inline(always)]
    pub const fn extension_words(
        user_tag: u64,
        variant: u8,
        strategy: u8,
        batch_size: u32,
        batches: u32,
        ce_sequence: u32,
        stream: u64,
    ) -> [u64; 4] {
        [
            user_tag,
            variant as u64 | ((strategy as u64) << 8) | ((batch_size as u64) << 32),
            batches as u64 | ((ce_sequence as u64) << 32),
            stream,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Detail;

    #[test]
    fn what_goes_in_comes_out() {
        let payload = Payload::Coll {
            sequence: u64::MAX,
            count: 1 << 60,
            function: 1,
            datatype: 2,
            algorithm: 3,
            protocol: 255,
            root: -1,
            group: EventId(LOCAL_MASK),
            api_datatype: 9,
        };
        let header = StartHeader {
            ticks: 5,
            id: EventId::new(9, 3, 7, Detail::CHANNELS, EventKind::Coll),
            parent: EventId::new(9, 3, 6, Detail(0), EventKind::CollApi),
            ordinal: (1 << 28) - 2,
            flags: RecordFlags(RecordFlags::IN_PLACE),
            channels: 8,
            warps: 16,
            communicator: u32::MAX,
        };
        let record = Record::start(header, payload.words());
        assert_eq!(record.payload(), payload);
        let back = record.header();
        assert_eq!(back.id.local(), header.id.local());
        assert_eq!(back.parent.local(), header.parent.local());
        assert_eq!((back.ordinal, back.channels, back.warps, back.communicator), ((1 << 28) - 2, 8, 16, u32::MAX));
        let state = Record::state(1, header.id, State::KERNEL_PHASE_STOP, u64::MAX, RecordFlags(128));
        assert_eq!(
            (state.record_type(), state.state_number(), state.argument()),
            (RecordType::State, State(31), u64::MAX)
        );
    }
}
