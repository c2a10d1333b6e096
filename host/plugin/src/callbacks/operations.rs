//! Coll, CeColl, P2p.

use collander_event::{EventId, EventKind, Payload, PlanWord, Record, RecordFlags, StartHeader, keeps};
use collander_ring::RingCounters;

use super::{CollEvent, CollSource, More, P2pEvent, decide, find, give_id, new_id, parent_of, whole_mut};
use crate::clock::{counter, ticks};
use crate::hot::{HOT, ON};
use crate::thread_slot::{FREE, STASH, ThreadState};

/// A Coll starts, in the common case: names, context and plan are known, its API call waits, it is not symmetric and has no extension. False:
/// nothing was done yet, and [`coll`] must do it. `give` gets the handle.
///
/// # Safety
/// The source's texts are NULL or NUL-terminated for the call.
#[inline(always)]
pub(crate) unsafe fn coll_known<S: CollSource>(
    thread: &mut ThreadState,
    context: u64,
    source: S,
    give: impl FnOnce(u64),
) -> bool {
    // Remembered only where the clock is the counter; closed when all goes off.
    let communicator = thread.communicator;
    if !communicator.is_open_as(context) {
        return false;
    }
    // SAFETY: the caller's promise, here and below.
    // SAFETY: the caller's promise.
    let Some(names) = (unsafe { thread.names.known_four(source.texts()) }) else { return false };
    let parent = source.parent();
    let place = whole_mut(&mut thread.stash[(parent >> 8) as usize & (STASH - 1)]);
    if place.id != parent || source.is_unusual() {
        return false;
    }
    place.id = FREE;
    let group_and_datatype = place.group;
    thread.pending = thread.pending.wrapping_sub(1);
    let word = PlanWord(communicator.plan(names.collective, source.count().wrapping_mul(names.size)));
    if word.0 & 1 == 0 {
        // Read again, so that the other way holds no copy.
        // SAFETY: a shared reference's member.
        let collective = unsafe { (&raw const names.collective).read_volatile() } as u64;
        let key = communicator.hash() ^ (collective << 56);
        // Rate::None has no bit set; the other one is `Rate::OneIn`.
        if word.0 & 2 == 0 || !keeps((word.0 >> 2) as u8 & 63, key, source.sequence()) {
            RingCounters::bump(&thread.producer.counters().sampled_coll);
            give(0);
            return true;
        }
    }
    let id = give_id(&mut thread.producer, word.detail(), EventKind::Coll, give);
    // Word by word, in `Record::start`'s and `Payload::Coll`'s layout: few of them are in registers at a time. The parent
    // is a handle of this process: without the nonce it is a local id.
    let (draft, ordinal) = thread.producer.draft_operation();
    let ordinal = u64::from(ordinal);
    let id_word = (id ^ thread.nonce[0]) | (ordinal << 50);
    let parent_word = (parent ^ thread.nonce[1]) | ((ordinal >> 14) << 50);
    draft.set::<1>(id_word);
    draft.set::<2>(parent_word);
    draft.set::<7>(group_and_datatype);
    draft.set::<6>(u64::from(names.codes) | (u64::from(source.root() as u32) << 32));
    let flags = u64::from(source.in_place()) * u64::from(RecordFlags::IN_PLACE);
    draft.set::<3>((flags << 8) | (u64::from(source.channels_and_warps()) << 16) | communicator.ordinal_bits());
    draft.set::<4>(source.sequence());
    draft.set::<5>(source.count());
    draft.set::<0>(counter());
    draft.publish();
    true
}

/// A Coll starts. Returns its handle, 0 for none.
///
/// # Safety
/// The texts are NULL or NUL-terminated for the call.
#[inline(always)]
pub(crate) unsafe fn coll(thread: &mut ThreadState, context: u64, event: CollEvent, kind: EventKind) -> u64 {
    if HOT.word() & ON == 0 {
        return 0;
    }
    let Some(communicator) = find(context, thread) else { return 0 };
    // SAFETY: the caller's promise.
    let names = unsafe { thread.names.four([event.function, event.datatype, event.algorithm, event.protocol]) };
    let collective = names.collective as u8;
    let (parent, mut flags) = parent_of(event.parent);
    let mut api_datatype = 0;
    if event.has_api {
        match take_api(thread, event.parent) {
            Some(datatype) => api_datatype = datatype,
            None => flags |= RecordFlags::NO_API,
        }
    }
    let bytes = event.count.wrapping_mul(names.size);
    let word = PlanWord(communicator.plan(names.collective, bytes));
    let counters = thread.producer.counters();
    let left_out = if matches!(kind, EventKind::CeColl) { &counters.sampled_ce } else { &counters.sampled_coll };
    let key = communicator.hash() ^ (u64::from(collective) << 56);
    let replay = flags & RecordFlags::NO_API != 0;
    let k = || if replay { communicator.next_replay(collective) } else { event.sequence };
    if !decide(word, key, k, left_out) {
        return 0;
    }
    if event.in_place {
        flags |= RecordFlags::IN_PLACE;
    }
    if event.more.symmetric {
        flags |= RecordFlags::SYMMETRIC;
    }
    let more = event.more.user_tag != 0 || !event.more.variant.is_null() || matches!(kind, EventKind::CeColl);
    if more {
        flags |= RecordFlags::EXTENDED;
    }
    let group = if thread.group_api != 0 { thread.group_api } else { event.parent_group };
    let id = new_id(thread, word.detail(), kind);
    let header = StartHeader {
        ticks: ticks(),
        id: EventId(id),
        parent,
        ordinal: thread.producer.next_ordinal(),
        flags: RecordFlags(flags),
        channels: event.channels,
        warps: event.warps,
        communicator: communicator.ordinal(),
    };
    let [function, datatype, algorithm, protocol] = names.codes.to_le_bytes();
    let payload = Payload::Coll {
        sequence: event.sequence,
        count: event.count,
        function,
        datatype,
        algorithm,
        protocol,
        root: event.root,
        group: EventId(group),
        api_datatype,
    };
    thread.producer.push(&Record::start(header, payload.words()));
    if more {
        // SAFETY: the caller's promise.
        unsafe { extend(thread, id, event.more) };
    }
    id
}

/// # Safety
/// As `coll`.
#[cold]
#[inline(never)]
unsafe fn extend(thread: &mut ThreadState, id: u64, more: More) {
    // SAFETY: the caller's promise.
    let (variant, strategy) = unsafe { (thread.names.name(more.variant), thread.names.name(more.strategy)) };
    let words = Payload::extension_words(
        more.user_tag,
        variant.code,
        strategy.code,
        more.batch_size,
        more.batches,
        more.ce_sequence,
        more.stream,
    );
    thread.producer.push(&Record::extension(ticks(), EventId(id), words));
}

/// Takes the API call that waits for an operation; its datatype's code, or None if it is not there.
#[inline(always)]
fn take_api(thread: &mut ThreadState, parent: u64) -> Option<u8> {
    let place = &mut thread.stash[(parent >> 8) as usize & (STASH - 1)];
    if !place.is(parent) {
        return None;
    }
    place.id = FREE;
    thread.pending = thread.pending.wrapping_sub(1);
    Some(place.names.datatype)
}

/// A P2p starts.
///
/// # Safety
/// The texts are NULL or NUL-terminated for the call.
#[inline(always)]
pub(crate) unsafe fn p2p(thread: &mut ThreadState, context: u64, event: P2pEvent) -> u64 {
    if HOT.word() & ON == 0 {
        return 0;
    }
    let Some(communicator) = find(context, thread) else { return 0 };
    // SAFETY: the caller's promise.
    let names = unsafe { thread.names.pair(event.function, event.datatype) };
    let (parent, mut flags) = parent_of(event.parent);
    if event.has_api && take_api(thread, event.parent).is_none() {
        flags |= RecordFlags::NO_API;
    }
    let receives = names.collective == collander_event::Collective::Recv as u8;
    let number = communicator.next_p2p(event.peer, receives);
    let bytes = event.count.wrapping_mul(u64::from(names.size));
    let word = PlanWord(communicator.plan(names.collective as usize, bytes));
    let (own, peer) = (communicator.rank() as u32, event.peer as u32);
    let (from, to) = if receives { (peer, own) } else { (own, peer) };
    let key = communicator.hash() ^ ((u64::from(from) << 32) | u64::from(to));
    if !decide(word, key, || number, &thread.producer.counters().sampled_p2p) {
        return 0;
    }
    let more = event.user_tag != 0;
    if more {
        flags |= RecordFlags::EXTENDED;
    }
    let group = if thread.group_api != 0 { thread.group_api } else { event.parent_group };
    let id = new_id(thread, word.detail(), EventKind::P2p);
    let header = StartHeader {
        ticks: ticks(),
        id: EventId(id),
        parent,
        ordinal: thread.producer.next_ordinal(),
        flags: RecordFlags(flags),
        channels: event.channels,
        warps: 0,
        communicator: communicator.ordinal(),
    };
    let payload = Payload::P2p {
        sequence: number,
        count: event.count,
        function: names.function,
        datatype: names.datatype,
        peer: event.peer,
        group: EventId(group),
        group_depth: if thread.group_api != 0 { thread.group_depth } else { 0 },
    };
    thread.producer.push(&Record::start(header, payload.words()));
    if more {
        // SAFETY: no texts are passed.
        unsafe { extend(thread, id, More { user_tag: event.user_tag, ..More::NONE }) };
    }
    id
}
