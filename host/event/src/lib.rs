//! Plain data that every part of collander shares.
//!
//! The 64-byte [`Record`] is what an NCCL thread writes; an [`Operation`] is what the drain makes of them. Nothing here
//! does I/O, holds a lock or knows NCCL's C types. All times are nanoseconds and all sizes bytes, unless said otherwise.
#![forbid(unsafe_code)]

mod accounting;
mod anomaly;
mod clock;
mod communicator;
mod ids;
mod kind;
mod names;
mod operation;
mod plan;
mod record;

pub use accounting::{Accounting, DropReason, Tally};
pub use anomaly::{Anomalies, Anomaly};
pub use clock::Calibration;
pub use communicator::Communicator;
pub use ids::{ContextId, EventId, LOCAL_BITS, LOCAL_MASK};
pub use kind::{Detail, EventKind, State};
pub use names::{Collective, Datatype, NameTable};
pub use operation::{
    Channel, Flags, OpKind, OpenOperation, Operation, Phase, ProxyOperation, ProxyStep, Timing, Waits,
};
pub use plan::{PLAN_COLLECTIVES, PLAN_SIZE_CLASSES, PLAN_WORDS, PlanWord, Rate, keeps, plan_index, size_class};
pub use record::{Payload, Record, RecordFlags, RecordType, StartHeader};
