//! The few words that callbacks read: switches, communicators, plan tables. Written by our threads and by `init`.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use collander_event::{Collective, ContextId, EventKind, PLAN_COLLECTIVES, PLAN_SIZE_CLASSES, PLAN_WORDS, size_class};

use crate::clock::is_counter;

/// Peers of a communicator with P2P counts of their own.
const MOST_PEERS: usize = 65_536;

/// Communicators open at once; further ones are not observed (counted). Slots are used again after finalize.
pub(crate) const SLOTS: usize = 16_384;

/// Bits 0..16: kinds that give records although no class asked (groups, API, proxy control); ON, the flags below.
static SWITCHES: AtomicU32 = AtomicU32::new(0);

/// What the switches and the nonce are reached by.
#[derive(Debug)]
pub(crate) struct Hot {
    /// The process nonce, shifted to the top 14 bits.
    nonce: AtomicU64,
}

/// The one.
pub(crate) static HOT: Hot = Hot { nonce: AtomicU64::new(0) };

/// The plugin records.
pub(crate) const ON: u32 = 1 << 31;
/// API calls without a Coll are operations (Coll is in the mask).
pub(crate) const API_COLL: u32 = 1 << 30;
/// API calls without a P2p are operations (P2p is in the mask).
pub(crate) const API_P2P: u32 = 1 << 29;
/// On, and the clock is the CPU's counter: the common ways of `callbacks` may be taken.
pub(crate) const FAST: u32 = 1 << 28;

/// A CollApi that is not captured waits for its Coll and gives no record.
pub(crate) const WAITING_COLL_API: u32 = 1 << 27;

impl Hot {
    /// The switches. Relaxed: a change is seen within one call or two.
    #[inline(always)]
    pub(crate) fn word(&self) -> u32 {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        {
            let word: u32;
            // A relaxed load, by the distance: Rust would ask the global offset table for the address first.
            #[allow(unsafe_code, reason = "one load less a callback")]
            // SAFETY: reads our own static as `AtomicU32::load(Relaxed)` does; it is not exported, so the distance is fixed.
            unsafe {
                core::arch::asm!("mov {0:e}, dword ptr [rip + {1}]", out(reg) word, sym SWITCHES, options(nostack, preserves_flags, readonly));
            }
            word
        }
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        SWITCHES.load(Ordering::Relaxed)
    }

    /// The nonce in the top 14 bits.
    #[inline(always)]
    pub(crate) fn nonce(&self) -> u64 {
        self.nonce.load(Ordering::Relaxed)
    }

    pub(crate) fn set_nonce(&self, nonce: u16) {
        self.nonce.store(u64::from(nonce) << 50, Ordering::Relaxed);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.word() & ON != 0
    }

    /// Nothing is recorded any more; `startEvent` gives NULL. Cold.
    pub(crate) fn switch_off(&self) {
        SWITCHES.store(0, Ordering::Relaxed);
        // The common way of a Coll looks at its context only.
        for index in 0..SLOTS {
            if let Some(communicator) = published(index) {
                communicator.close();
            }
        }
    }

    /// Records, with these further bits. The clock was chosen before.
    pub(crate) fn switch_on(&self, bits: u32) {
        let fast = if is_counter() { FAST } else { 0 };
        let waiting = bits & (API_COLL | EventKind::CollApi.bit()) == API_COLL;
        let waiting = if waiting { WAITING_COLL_API } else { 0 };
        SWITCHES.store(ON | fast | waiting | bits, Ordering::Relaxed);
    }
}

/// What callbacks need of a communicator. Made by `init`, never freed: a late event may still look at it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct HotCommunicator {
    /// The context id while open, `CLOSED` otherwise.
    context: AtomicU64,
    /// The ordinal, where a record's word 3 has it.
    ordinal: AtomicU64,
    rank: AtomicU32,
    hash: AtomicU64,
    /// By what count × size is multiplied for a collective's class.
    factors: [AtomicU64; PLAN_COLLECTIVES],
    /// Plan words, see `collander_event::plan_index`.
    words: [[AtomicU64; PLAN_SIZE_CLASSES]; PLAN_COLLECTIVES],
    /// Our own counts for replays, by collective.
    replays: [AtomicU64; 16],
    /// P2P counts, two a peer (to it, from it); never freed, replaced by a larger one.
    p2p: AtomicPtr<Box<[AtomicU32]>>,
}

/// No context is that: ours are odd, NULL is 0.
const CLOSED: u64 = 2;

/// A communicator that never opens: what a thread remembers before its first.
pub(crate) static NOBODY: HotCommunicator = HotCommunicator::new();

static TABLE: [AtomicPtr<HotCommunicator>; SLOTS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];

/// What `init` tells of a communicator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenHot {
    pub ordinal: u32,
    pub rank: i32,
    pub hash: u64,
    pub ranks: u32,
}

impl HotCommunicator {
    const fn new() -> Self {
        Self {
            context: AtomicU64::new(CLOSED),
            ordinal: AtomicU64::new(0),
            rank: AtomicU32::new(0),
            hash: AtomicU64::new(0),
            factors: [const { AtomicU64::new(1) }; PLAN_COLLECTIVES],
            words: [const { [const { AtomicU64::new(0) }; PLAN_SIZE_CLASSES] }; PLAN_COLLECTIVES],
            replays: [const { AtomicU64::new(0) }; 16],
            p2p: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// Opens the slot: plan words first, the context last. Cold.
    pub(crate) fn open(&self, context: ContextId, open: OpenHot, plan: &[u64; PLAN_WORDS]) {
        self.ordinal.store(u64::from(open.ordinal) << 32, Ordering::Relaxed);
        self.rank.store(open.rank as u32, Ordering::Relaxed);
        self.hash.store(open.hash, Ordering::Relaxed);
        for (collective, factor) in Collective::ALL.into_iter().zip(&self.factors) {
            factor.store(collective.size_factor(open.ranks.max(1)), Ordering::Relaxed);
        }
        self.store_plan(plan);
        for count in &self.replays {
            count.store(0, Ordering::Relaxed);
        }
        // Beyond the bound peers share counts; whatever `init` says must not become memory.
        let peers = if open.ranks == 0 { 1024 } else { (open.ranks as usize).min(MOST_PEERS) };
        match self.p2p_counts() {
            Some(counts) if counts.len() >= peers * 2 => counts.iter().for_each(|c| c.store(0, Ordering::Relaxed)),
            _ => {
                let counts: Box<[AtomicU32]> = (0..peers * 2).map(|_| AtomicU32::new(0)).collect();
                // The older, smaller one is leaked on purpose: a callback may be reading it.
                self.p2p.store(Box::into_raw(Box::new(counts)), Ordering::Release);
            }
        }
        // Pairs with the Acquire load in `communicator`.
        self.context.store(context.0, Ordering::Release);
    }

    /// Closes the slot: later events with its context count as late. Cold.
    pub(crate) fn close(&self) {
        self.context.store(CLOSED, Ordering::Release);
    }

    /// Writes a new plan table, word by word. Any thread.
    pub(crate) fn store_plan(&self, plan: &[u64; PLAN_WORDS]) {
        for (place, word) in self.words.iter().flatten().zip(plan) {
            place.store(*word, Ordering::Relaxed);
        }
    }

    /// Writes one plan word. The drain.
    pub(crate) fn store_word(&self, index: usize, word: u64) {
        if let Some(place) = self.words.as_flattened().get(index) {
            place.store(word, Ordering::Relaxed);
        }
    }

    /// v1 to v3 tell hash and rank with the first operation. Cold.
    pub(crate) fn learn(&self, hash: u64, rank: i32) {
        self.hash.store(hash, Ordering::Relaxed);
        self.rank.store(rank as u32, Ordering::Relaxed);
    }

    /// Whether it is open, under this context.
    #[inline(always)]
    pub(crate) fn is_open_as(&self, context: u64) -> bool {
        // Pairs with the Release store in `open`.
        self.context.load(Ordering::Acquire) == context
    }

    #[inline(always)]
    pub(crate) fn ordinal(&self) -> u32 {
        (self.ordinal.load(Ordering::Relaxed) >> 32) as u32
    }

    /// The ordinal, where a record's word 3 has it.
    #[inline(always)]
    pub(crate) fn ordinal_bits(&self) -> u64 {
        self.ordinal.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn rank(&self) -> i32 {
        self.rank.load(Ordering::Relaxed) as i32
    }

    #[inline(always)]
    pub(crate) fn hash(&self) -> u64 {
        self.hash.load(Ordering::Relaxed)
    }

    /// The plan word of a class. `collective` is masked.
    #[inline(always)]
    pub(crate) fn plan(&self, collective: usize, rank_bytes: u64) -> u64 {
        let collective = collective & (PLAN_COLLECTIVES - 1);
        let factor = self.factors[collective].load(Ordering::Relaxed);
        let class = size_class(rank_bytes.wrapping_mul(factor)) & (PLAN_SIZE_CLASSES - 1);
        self.words[collective][class].load(Ordering::Relaxed)
    }

    /// Our own count of a collective (replays of captured graphs).
    #[inline(always)]
    pub(crate) fn next_replay(&self, collective: u8) -> u64 {
        self.replays.get(collective as usize & 15).map_or(0, |count| count.fetch_add(1, Ordering::Relaxed))
    }

    fn p2p_counts(&self) -> Option<&[AtomicU32]> {
        let pointer = self.p2p.load(Ordering::Acquire);
        if pointer.is_null() {
            return None;
        }
        #[allow(unsafe_code, reason = "published once, never freed")]
        // SAFETY: `open` stored a leaked Box; it is never freed.
        Some(unsafe { &*pointer })
    }

    /// Our count of P2P with a peer in a direction, from 0. Several threads may ask at once.
    #[inline(always)]
    pub(crate) fn next_p2p(&self, peer: i32, receives: bool) -> u64 {
        let Some(counts) = self.p2p_counts() else { return 0 };
        let index = ((peer as u32 as usize) * 2 + usize::from(receives)) % counts.len().max(1);
        counts.get(index).map_or(0, |count| u64::from(count.fetch_add(1, Ordering::Relaxed)))
    }
}

/// The communicator of a slot, made if it is new. Cold (`init`).
pub(crate) fn slot(index: usize) -> Option<&'static HotCommunicator> {
    let place = TABLE.get(index)?;
    let pointer = place.load(Ordering::Acquire);
    let pointer = if pointer.is_null() {
        let fresh = Box::into_raw(Box::new(HotCommunicator::new()));
        match place.compare_exchange(pointer, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => fresh,
            Err(other) => other,
        }
    } else {
        pointer
    };
    #[allow(unsafe_code, reason = "published once, never freed")]
    // SAFETY: made by `Box::into_raw` here or by another thread, and never freed.
    Some(unsafe { &*pointer })
}

/// The communicator of a slot, if one was ever made.
#[inline(always)]
fn published(index: usize) -> Option<&'static HotCommunicator> {
    let pointer = TABLE.get(index)?.load(Ordering::Acquire);
    #[allow(unsafe_code, reason = "published once, never freed")]
    // SAFETY: NULL, or made by `Box::into_raw` in `slot` and never freed.
    unsafe {
        pointer.as_ref()
    }
}

/// The open communicator of a context that is ours; None if it is closed, or no slot. Hot.
#[inline(always)]
pub(crate) fn communicator(context: u64) -> Option<&'static HotCommunicator> {
    published(ContextId(context).slot()).filter(|communicator| communicator.is_open_as(context))
}
