//! Everything odd that the drain can meet, by name.

macro_rules! anomalies {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// An oddity in what NCCL called. Each has a counter in every `stats` record.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Anomaly { $($(#[doc = $doc])+ $variant,)+ }

        impl Anomaly {
            /// All, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Name in outputs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// What it means, for the documentation.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc,)+),)+ }
            }
        }
    };
}

anomalies! {
    /// A stop or state for a handle that is not of this process.
    ForeignHandle = "foreign_handle",
    /// An event whose context is not of this process.
    ForeignContext = "foreign_context",
    /// An event whose parent handle is of another process (PXN): detached.
    ForeignParent = "foreign_parent",
    /// An event on a context that was already finalised.
    LateContext = "late_context",
    /// A stop or state for an event that is not known: never seen, long gone, or its record was overtaken.
    UnknownHandle = "unknown_handle",
    /// A stop of an event that was already stopped.
    DoubleStop = "double_stop",
    /// A state after the event's stop.
    StateAfterStop = "state_after_stop",
    /// A state number that does not belong to the kind of event.
    UnexpectedState = "unexpected_state",
    /// A child whose parent never came within two drain periods.
    OrphanChild = "orphan_child",
    /// A child of an operation that had already been closed.
    LateChild = "late_child",
    /// Fewer kernel channels than announced.
    ChannelsMissing = "channels_missing",
    /// More kernel channels than announced, or one channel twice.
    ChannelsExtra = "channels_extra",
    /// A kernel channel without a usable pair of GPU stamps: one is 0 or missing.
    GpuTimerMissing = "gpu_timer_missing",
    /// A GPU stop stamp before its start stamp.
    GpuTimerReversed = "gpu_timer_reversed",
    /// GPU stamps that do not fit the CPU stamps of the same operation: another operation's.
    GpuTimerMismatch = "gpu_timer_mismatch",
    /// A kernel stop that was seen before its start.
    KernelStopBeforeStart = "kernel_stop_before_start",
    /// A sequence number that did not advance (captured graphs).
    SequenceStandsStill = "sequence_stands_still",
    /// A sequence number that jumped: operations were hidden or lost.
    SequenceGap = "sequence_gap",
    /// A datatype of unknown size: bytes and bandwidth are null.
    UnknownDatatype = "unknown_datatype",
    /// An operation closed because its communicator was finalised or aborted.
    ClosedByFinalize = "closed_by_finalize",
    /// An operation closed because nothing happened to it for too long.
    ClosedByTimeout = "closed_by_timeout",
    /// An operation closed because the next replay of its graph began.
    ClosedByReplay = "closed_by_replay",
    /// An operation that can have no end that a profiler sees.
    Unobservable = "unobservable",
    /// An operation pushed out because too many were open.
    EvictedOpen = "evicted_open",
    /// A child pushed out because too many waited for their parent.
    EvictedOrphan = "evicted_orphan",
    /// Proxy step started and not stopped when its operation was closed.
    StepNeverStopped = "step_never_stopped",
    /// Proxy operation started and not stopped when its operation was closed.
    ProxyNeverStopped = "proxy_never_stopped",
    /// A proxy operation of another process (PXN).
    ForeignProxy = "foreign_proxy",
    /// An API call that was written as an operation of its own and whose operation came after all.
    ApiJoinedLate = "api_joined_late",
    /// A captured API call forgotten because too many were kept: its replays are not recognised.
    CapturedForgotten = "captured_forgotten",
    /// An event of a kind that this version of the interface does not have.
    UnknownKind = "unknown_kind",
    /// A name that did not fit the table of 254 names a process.
    NameTableFull = "name_table_full",
    /// Records overtaken in a ring before the drain read them.
    RecordsOvertaken = "records_overtaken",
    /// Events on threads that got no ring: beyond the memory bound, or a thread that was ending.
    EventsUnobserved = "events_unobserved",
    /// Communicators beyond the table: not observed.
    CommunicatorsUnobserved = "communicators_unobserved",
}

/// A counter for each anomaly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomalies([u64; Anomaly::ALL.len()]);

impl Default for Anomalies {
    fn default() -> Self {
        Self([0; Anomaly::ALL.len()])
    }
}

impl Anomalies {
    /// One more.
    #[inline]
    pub fn count(&mut self, anomaly: Anomaly) {
        self.0[anomaly as usize] += 1;
    }

    /// `n` more.
    #[inline]
    pub fn add(&mut self, anomaly: Anomaly, n: u64) {
        self.0[anomaly as usize] += n;
    }

    /// Sets a counter that is kept elsewhere.
    pub fn set(&mut self, anomaly: Anomaly, n: u64) {
        self.0[anomaly as usize] = n;
    }

    /// How many.
    #[must_use]
    pub fn get(&self, anomaly: Anomaly) -> u64 {
        self.0[anomaly as usize]
    }

    /// Those that are not zero.
    pub fn nonzero(&self) -> impl Iterator<Item = (Anomaly, u64)> {
        Anomaly::ALL.iter().map(|anomaly| (*anomaly, self.get(*anomaly))).filter(|(_, n)| *n > 0)
    }
}
