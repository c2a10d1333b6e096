//! `stopEvent` and `recordEventState`.

use collander_event::{EventId, EventKind, Record, RecordFlags, RecordType, State};
use collander_ring::RingCounters;

use super::api::emit_all_stashed;
use super::{is_of, is_ours, opaque};
use crate::clock::{counter, ticks};
use crate::hot::HOT;
use crate::thread_slot::{RECORDED_GROUP, attach, current};

/// `stopEvent`. The rare rest is called last, so that the common ways save no registers; hence the results.
#[inline(always)]
pub(crate) fn stop<R>(handle: u64, done: R, rare: impl FnOnce() -> R, end_of_group: impl FnOnce() -> R) -> R {
    // One bit tells a GroupApi from all kinds but the API calls and launches, which are no thread's `group_api`.
    if handle & EventKind::GroupApi as u64 != 0
        && let Some(thread) = current()
        && thread.group_api == handle
    {
        thread.group_api = 0;
        if thread.pending != 0 {
            return end_of_group();
        }
        return done;
    }
    // The other kinds always give a record, whatever their bit 4, which is 0 in plain ones.
    if ((HOT.word() | !PLAIN_KINDS) >> (handle & 31)) & 1 == 0 {
        return done;
    }
    let Some(thread) = current() else { return rare() };
    if handle == thread.stopped_kernel {
        thread.stopped_kernel = 0;
        return done;
    }
    if !is_of(thread, handle) {
        return rare();
    }
    let draft = thread.producer.draft();
    // As `Record::stop` does it.
    draft.set::<0>(counter());
    draft.set::<1>(EventId(handle).local());
    draft.set::<2>(0);
    draft.set::<3>(RecordType::Stop as u64);
    draft.publish();
    done
}

/// The stop of a group that gave a record, or whose API calls wait for operations that did not come.
#[cold]
#[inline(never)]
pub(crate) fn end_of_group(handle: u64) {
    let Some(thread) = current() else { return };
    let pending = thread.pending;
    if pending != RECORDED_GROUP {
        emit_all_stashed(thread);
    }
    thread.pending = 0;
    if pending & RECORDED_GROUP != 0 {
        thread.producer.push(&Record::stop(ticks(), EventId(handle)));
    }
}

/// A stop on a thread that has no ring yet, or of a foreign handle.
#[cold]
#[inline(never)]
pub(crate) fn rare_stop(handle: u64) {
    let Some(thread) = current().or_else(|| attach(handle & 15 == EventKind::KernelCh as u64)) else { return };
    if handle == thread.group_api && handle != 0 {
        thread.group_api = 0;
        if thread.pending != 0 {
            emit_all_stashed(thread);
        }
    }
    if is_ours(handle) {
        thread.producer.push(&Record::stop(ticks(), EventId(handle)));
    } else {
        RingCounters::bump(&thread.producer.counters().foreign_handles);
    }
}

/// Kinds whose events give a record only if the switches ask for it.
const PLAIN_KINDS: u32 = EventKind::Group.bit()
    | EventKind::GroupApi.bit()
    | EventKind::CollApi.bit()
    | EventKind::P2pApi.bit()
    | EventKind::KernelLaunch.bit()
    | EventKind::ProxyCtrl.bit();

/// Whether a handle's kind gives records only if the switches ask for it. Their ids have no detail: bit 4 is 0, and five
/// bits may be looked at, which is one instruction, where four are two.
#[inline(always)]
const fn is_plain(handle: u64) -> bool {
    (PLAIN_KINDS | (PLAIN_KINDS << 16)) >> (handle & 31) & 1 != 0
}

/// `recordEventState`; `argument` gives the first eight bytes of the arguments, None if they are NULL.
#[inline(always)]
pub(crate) fn state<R>(
    handle: u64,
    number: i32,
    argument: impl FnOnce() -> Option<u64>,
    done: R,
    rare: impl FnOnce() -> R,
) -> R {
    if is_plain(handle) {
        if (HOT.word() >> (opaque(handle) & 31)) & 1 != 0 {
            return rare();
        }
        return done;
    }
    let Some(thread) = current() else { return rare() };
    if !is_of(thread, handle) || (number as u32) >= 63 {
        return rare();
    }
    let Some(argument) = argument() else { return rare() };
    if number == i32::from(State::KERNEL_CH_STOP.0) {
        // NCCL calls stopEvent right after it, on the same thread: that needs no record.
        thread.stopped_kernel = handle;
    }
    // As `Record::state` does it.
    let draft = thread.producer.draft();
    draft.set::<0>(counter());
    draft.set::<1>(EventId(handle).local());
    draft.set::<2>(argument);
    draft.set::<3>(RecordType::State as u64 | (u64::from(number as u32) << 2));
    draft.publish();
    done
}

/// The rare rest: no ring yet, a foreign handle, no arguments, a number that is no state of any version, or a parent that
/// gives records.
#[cold]
#[inline(never)]
pub(crate) fn rare_state(handle: u64, number: i32, argument: Option<u64>) {
    let Some(thread) = current().or_else(|| attach(!is_plain(handle))) else { return };
    if !is_ours(handle) {
        RingCounters::bump(&thread.producer.counters().foreign_handles);
        return;
    }
    if number == i32::from(State::KERNEL_CH_STOP.0) {
        thread.stopped_kernel = handle;
    }
    let flags = if argument.is_none() { RecordFlags::NULL_OR_FOREIGN } else { 0 };
    let number = if (0..63).contains(&number) { number as u8 } else { 63 };
    let record = Record::state(ticks(), EventId(handle), State(number), argument.unwrap_or(0), RecordFlags(flags));
    thread.producer.push(&record);
}
