//! GroupApi, CollApi, P2pApi.

use collander_event::{
    Detail, EventId, EventKind, LOCAL_MASK, Payload, PlanWord, Rate, Record, RecordFlags, StartHeader,
};
use collander_ring::RingCounters;

use super::children::record_plain;
use super::{ApiEvent, ApiSource, find, is_of, new_id, whole_mut};
use crate::clock::{counter, ticks};
use crate::hot::{API_COLL, API_P2P, HOT, WAITING_COLL_API};
use crate::intern::Pair;
use crate::thread_slot::{FREE, RECORDED_GROUP, STASH, StashedApi, ThreadState};

/// A GroupApi starts and gives no record. `give` gets the handle.
#[inline(always)]
pub(crate) fn group_api(thread: &mut ThreadState, depth: i32, give: impl FnOnce(u64)) -> u64 {
    let id = thread.new_group_api(give);
    thread.group_depth = depth as u8;
    id
}

/// [`group_api`], of a GroupApi that gives a record: so does its stop.
#[inline(always)]
pub(crate) fn wanted_group_api(thread: &mut ThreadState, depth: i32, give: impl FnOnce(u64)) -> u64 {
    thread.pending |= RECORDED_GROUP;
    group_api(thread, depth, give)
}

/// A GroupApi starts and gives a record.
#[inline(never)]
pub(crate) fn recorded_group_api(
    thread: &mut ThreadState,
    context: u64,
    parent: u64,
    depth: i32,
    captured: bool,
) -> u64 {
    let id = wanted_group_api(thread, depth, |_| ());
    let flags = if captured { RecordFlags::GRAPH_CAPTURED } else { 0 };
    record_plain(thread, context, parent, id, Payload::GroupApi { depth }, flags)
}

/// A CollApi starts, in the common case: its names are known, it waits for its operation, and gives no record; or one, if
/// `RECORDED`. False: nothing was done yet, and [`api`] must do it. `give` gets the handle.
///
/// # Safety
/// The source's texts are NULL or NUL-terminated for the call.
#[inline(always)]
pub(crate) unsafe fn api_known<S: ApiSource, const RECORDED: bool>(
    thread: &mut ThreadState,
    context: u64,
    source: S,
    give: impl FnOnce(u64),
) -> bool {
    const BOTH: u32 = API_COLL | EventKind::CollApi.bit();
    let as_expected = if RECORDED { HOT.word() & BOTH == BOTH } else { HOT.word() & WAITING_COLL_API != 0 };
    if !as_expected || source.captured() {
        return false;
    }
    let communicator = thread.communicator;
    if RECORDED && !(communicator.is_open_as(context) && is_of(thread, source.parent())) {
        return false;
    }
    if thread.group_api == 0 {
        return false;
    }
    // SAFETY: the caller's promise.
    let Some((names, datatype)) = (unsafe { thread.names.known_pair(source.function(), source.datatype()) }) else {
        return false;
    };
    let id = thread.producer.peek_id() | EventKind::CollApi as u64;
    let place = whole_mut(&mut thread.stash[(id >> 8) as usize & (STASH - 1)]);
    if place.id != FREE {
        return false;
    }
    place.group = (thread.group_api ^ thread.nonce[0]) | datatype;
    place.count = source.count();
    place.stream = source.stream();
    place.user_tag = source.user_tag();
    place.context = context;
    place.names = *names;
    place.root = source.root();
    thread.pending = thread.pending.wrapping_add(1);
    place.id = id;
    give(id);
    if RECORDED {
        // As `Record::start` does it with `Payload::Api`.
        let draft = thread.producer.draft();
        draft.set::<0>(counter());
        draft.set::<1>(id & LOCAL_MASK);
        draft.set::<2>(source.parent() & LOCAL_MASK);
        draft.set::<3>(communicator.ordinal_bits());
        draft.set::<4>(source.stream());
        draft.set::<5>(source.count());
        let codes = u64::from(names.function) | (u64::from(names.datatype) << 8);
        draft.set::<6>(codes | (u64::from(source.root() as u32) << 32));
        draft.set::<7>(source.user_tag());
        draft.publish();
    }
    thread.producer.next_id(|_| ());
    true
}

/// A CollApi or P2pApi starts: it waits for its operation, which takes its datatype along; if none follows in its group, it
/// becomes an operation itself.
///
/// # Safety
/// The texts are NULL or NUL-terminated for the call.
#[inline(always)]
pub(crate) unsafe fn api(thread: &mut ThreadState, context: u64, event: ApiEvent, kind: EventKind) -> u64 {
    let word = HOT.word();
    // SAFETY: the caller's promise.
    let names = unsafe { thread.names.pair(event.function, event.datatype) };
    let id = new_id(thread, Detail(0), kind);
    if event.captured || word & kind.bit() != 0 {
        record_api(thread, context, id, names, event);
    }
    let wanted = if matches!(kind, EventKind::P2pApi) { API_P2P } else { API_COLL };
    if !event.captured && word & wanted != 0 {
        let at = (id >> 8) as usize & (STASH - 1);
        if thread.stash[at].id != FREE {
            emit_stashed(thread, at);
        }
        thread.stash[at] = StashedApi {
            id: if thread.group_api == 0 { !id } else { id },
            group: (thread.group_api & LOCAL_MASK) | names.datatype_bits(),
            count: event.count,
            stream: event.stream,
            user_tag: event.user_tag,
            context,
            names,
            root: event.root,
        };
        thread.pending = thread.pending.wrapping_add(1);
    }
    id
}

#[inline(never)]
fn record_api(thread: &mut ThreadState, context: u64, id: u64, names: Pair, event: ApiEvent) {
    let payload = Payload::Api {
        stream: event.stream,
        count: event.count,
        function: names.function,
        datatype: names.datatype,
        root: event.root,
        user_tag: event.user_tag,
    };
    let flags = if event.captured { RecordFlags::GRAPH_CAPTURED } else { 0 };
    record_plain(thread, context, event.parent, id, payload, flags);
}

/// Writes a waiting API call as an operation of its own.
#[cold]
#[inline(never)]
fn emit_stashed(thread: &mut ThreadState, at: usize) {
    let api = thread.stash[at & (STASH - 1)];
    if api.id == FREE {
        return;
    }
    thread.stash[at & (STASH - 1)].id = FREE;
    thread.pending = thread.pending.wrapping_sub(1);
    let Some(communicator) = find(api.context, thread) else { return };
    let word =
        PlanWord(communicator.plan(api.names.collective as usize, api.count.wrapping_mul(u64::from(api.names.size))));
    if matches!(word.rate(), Rate::None) {
        RingCounters::bump(&thread.producer.counters().sampled_coll);
        return;
    }
    let header = StartHeader {
        ticks: ticks(),
        id: EventId(api.handle()),
        parent: EventId(api.group),
        ordinal: thread.producer.next_ordinal(),
        flags: RecordFlags(RecordFlags::API_ONLY),
        communicator: communicator.ordinal(),
        ..StartHeader::default()
    };
    let payload = Payload::Api {
        stream: api.stream,
        count: api.count,
        function: api.names.function,
        datatype: api.names.datatype,
        root: api.root,
        user_tag: api.user_tag,
    };
    thread.producer.push(&Record::start(header, payload.words()));
}

#[cold]
#[inline(never)]
pub(super) fn emit_all_stashed(thread: &mut ThreadState) {
    // In the order in which they were called. There are few; `sort` could panic.
    let first = |thread: &ThreadState| {
        let waiting = thread.stash.iter().enumerate().filter(|(_, api)| api.id != FREE);
        waiting.min_by_key(|(_, api)| api.handle()).map(|(at, _)| at)
    };
    while let Some(at) = first(thread) {
        emit_stashed(thread, at);
    }
    thread.pending = 0;
}
