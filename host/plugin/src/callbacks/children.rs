//! Group, KernelLaunch, ProxyCtrl; and the children of operations.

use collander_event::{Detail, EventId, EventKind, LOCAL_MASK, Payload, Record, RecordFlags, StartHeader};

use super::{find, give_id, is_of, new_id, parent_of};
use crate::clock::{counter, ticks};
use crate::hot::{HOT, HotCommunicator};
use crate::thread_slot::ThreadState;

/// A Group, KernelLaunch or ProxyCtrl starts: always an id, a record only if the kind is wanted.
#[inline(always)]
pub(crate) fn plain(thread: &mut ThreadState, context: u64, parent: u64, kind: EventKind, payload: Payload) -> u64 {
    let id = if matches!(kind, EventKind::Group) { thread.new_group(|_| ()) } else { new_id(thread, Detail(0), kind) };
    if HOT.word() & kind.bit() != 0 {
        return record_plain(thread, context, parent, id, payload, 0);
    }
    id
}

/// A Group, GroupApi or KernelLaunch starts and gives a record, in the common case: its context is the one asked for last,
/// and its parent is ours. False: nothing was done yet. `new_id` makes the id and gives it to NCCL.
#[inline(always)]
pub(crate) fn record_known(
    thread: &mut ThreadState,
    context: u64,
    parent: u64,
    payload: Payload,
    flags: u8,
    new_id: impl FnOnce(&mut ThreadState) -> u64,
) -> bool {
    let communicator = thread.communicator;
    if !communicator.is_open_as(context) || (parent != 0 && !is_of(thread, parent)) {
        return false;
    }
    let id = new_id(thread);
    // As `Record::start` does it; the payload of these kinds is one word.
    let draft = thread.producer.draft();
    draft.set::<0>(counter());
    draft.set::<1>(id & LOCAL_MASK);
    draft.set::<2>(parent & LOCAL_MASK);
    draft.set::<3>((u64::from(flags) << 8) | communicator.ordinal_bits());
    let [word, ..] = payload.words();
    draft.set::<4>(word);
    draft.publish();
    true
}

/// A KernelLaunch's id, which `give` gets.
#[inline(always)]
pub(crate) fn launch_id(thread: &mut ThreadState, give: impl FnOnce(u64)) -> u64 {
    give_id(&mut thread.producer, Detail(0), EventKind::KernelLaunch, give)
}

/// The record of a start without an operation's decision.
#[inline(never)]
pub(super) fn record_plain(
    thread: &mut ThreadState,
    context: u64,
    parent: u64,
    id: u64,
    payload: Payload,
    flags: u8,
) -> u64 {
    let ordinal = find(context, thread).map_or(u32::MAX, HotCommunicator::ordinal);
    let (parent, foreign) = parent_of(parent);
    let header = StartHeader {
        ticks: ticks(),
        id: EventId(id),
        parent,
        flags: RecordFlags(flags | foreign),
        communicator: ordinal,
        ..StartHeader::default()
    };
    thread.producer.push(&Record::start(header, payload.words()));
    id
}

/// A child that only matters if its parent's class asks for such children: NULL handle and not a store more otherwise.
#[inline(always)]
pub(crate) fn wanted_child(parent: u64, detail: Detail) -> bool {
    // A foreign parent's bits are another process's, which has the same wishes more often than not.
    (parent >> 4) & u64::from(detail.0) & 15 != 0
}

/// Any child event starts; `wanted_child` was asked.
#[inline(always)]
pub(crate) fn child(
    thread: &mut ThreadState,
    parent: u64,
    kind: EventKind,
    channel: u8,
    flags: u8,
    payload: Payload,
) -> u64 {
    if !is_of(thread, parent) {
        return rare_child(thread, parent, kind, channel, flags, payload.words());
    }
    // A child's children are wanted in the detail that the operation has.
    let id = new_id(thread, EventId(parent).detail(), kind);
    let header = StartHeader {
        ticks: counter(),
        id: EventId(id),
        parent: EventId(parent & LOCAL_MASK),
        flags: RecordFlags(flags),
        channels: channel,
        ..StartHeader::default()
    };
    let record = Record::start(header, payload.words());
    match payload {
        // One word of payload: the rest of the slot keeps what it had.
        Payload::ProxyStep { .. } => thread.producer.push_short::<5>(&record),
        _ => thread.producer.push(&record),
    }
    id
}

/// A KernelCh starts; `wanted_child` was asked. False: [`kernel`] must do it. `give` gets the handle.
///
/// The channels of one operation start in one sweep of NCCL's: while nothing else is recorded between them, they share the
/// clock reading of the first, which is most of what a record costs. Only if NCCL gives GPU times: without, each has its own.
#[inline(always)]
pub(crate) fn kernel_known(
    thread: &mut ThreadState,
    parent: u64,
    channel: u8,
    timer: u64,
    give: impl FnOnce(u64),
) -> bool {
    if !is_of(thread, parent) {
        return false;
    }
    let position = thread.producer.position();
    if thread.kernel_parent != parent || thread.kernel_position != position || timer == 0 {
        thread.kernel_parent = parent;
        thread.kernel_ticks = counter();
    }
    thread.kernel_position = position.wrapping_add(1);
    let id = give_id(&mut thread.producer, EventId(parent).detail(), EventKind::KernelCh, give);
    // As `Record::start` does it with `Payload::KernelCh`.
    let draft = thread.producer.draft();
    draft.set::<0>(thread.kernel_ticks);
    draft.set::<1>(id & LOCAL_MASK);
    draft.set::<2>(parent & LOCAL_MASK);
    draft.set::<3>(u64::from(channel) << 16);
    draft.set::<4>(timer);
    draft.publish();
    true
}

/// A KernelCh starts, the rare way.
#[cold]
#[inline(never)]
pub(crate) fn kernel(thread: &mut ThreadState, parent: u64, channel: u8, timer: u64) -> u64 {
    rare_child(thread, parent, EventKind::KernelCh, channel, 0, Payload::KernelCh { timer }.words())
}

/// A child of another process's event (PXN), which is detached; and any child where the CPU has no counter to read.
#[cold]
#[inline(never)]
fn rare_child(
    thread: &mut ThreadState,
    parent: u64,
    kind: EventKind,
    channel: u8,
    flags: u8,
    payload: [u64; 4],
) -> u64 {
    let (record_parent, foreign) = parent_of(parent);
    let detail = if foreign == 0 { EventId(parent).detail() } else { Detail(0) };
    let id = new_id(thread, detail, kind);
    let header = StartHeader {
        ticks: ticks(),
        id: EventId(id),
        parent: record_parent,
        flags: RecordFlags(flags | foreign),
        channels: channel,
        ..StartHeader::default()
    };
    thread.producer.push(&Record::start(header, payload));
    id
}
