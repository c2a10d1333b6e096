//! The shared communicator table, for readers in other processes.

use std::sync::atomic::{Ordering, fence};

use collander_event::Communicator;

use crate::layout::{COMMUNICATOR_NAME_BYTES, COMMUNICATORS, CommunicatorEntry};
use crate::memory::Mapping;

/// Writes a communicator's entry. Cold; any thread. If another thread writes the same entry at this moment (two
/// communicators 1024 apart), this one is left out of the table: the table only serves the black box.
pub(crate) fn write(mapping: &Mapping, communicator: &Communicator, open: bool) {
    let entry = &mapping.communicators()[communicator.ordinal as usize % COMMUNICATORS];
    let sequence = entry.sequence.load(Ordering::Relaxed);
    if sequence % 2 == 1
        || entry.sequence.compare_exchange(sequence, sequence + 1, Ordering::Acquire, Ordering::Relaxed).is_err()
    {
        return;
    }
    fence(Ordering::Release);
    let relaxed = Ordering::Relaxed;
    entry.ordinal.store(communicator.ordinal, relaxed);
    entry.rank.store(communicator.rank as u32, relaxed);
    entry.ranks.store(communicator.ranks.unwrap_or(0), relaxed);
    entry.nodes.store(communicator.nodes.unwrap_or(0), relaxed);
    entry.hash.store(communicator.hash, relaxed);
    entry.opened_ns.store(communicator.opened_ns, relaxed);
    entry.api.store(u32::from(communicator.api), relaxed);
    entry.open.store(u32::from(open), relaxed);
    let mut len = communicator.name.len().min(COMMUNICATOR_NAME_BYTES);
    while !communicator.name.is_char_boundary(len) {
        len -= 1;
    }
    let name = &communicator.name.as_bytes()[..len];
    entry.name_len.store(len as u64, relaxed);
    for (place, chunk) in entry.name.iter().zip(name.chunks(8)) {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        place.store(u64::from_le_bytes(bytes), relaxed);
    }
    // Pairs with the loads in `read`.
    entry.sequence.store(sequence + 2, Ordering::Release);
}

/// All that are there, by ordinal, each with whether it is open.
pub(crate) fn read_all(mapping: &Mapping) -> Vec<(Communicator, bool)> {
    let mut all: Vec<_> = mapping.communicators().iter().filter_map(read).collect();
    all.sort_by_key(|(communicator, _)| communicator.ordinal);
    all
}

fn read(entry: &CommunicatorEntry) -> Option<(Communicator, bool)> {
    for _ in 0..64 {
        // Pairs with the Release store in `write`.
        let before = entry.sequence.load(Ordering::Acquire);
        if before == 0 {
            return None;
        }
        let relaxed = Ordering::Relaxed;
        let mut name: Vec<u8> = entry.name.iter().flat_map(|w| w.load(relaxed).to_le_bytes()).collect();
        name.truncate(entry.name_len.load(relaxed) as usize);
        let known = |n: u32| (n > 0).then_some(n);
        let communicator = Communicator {
            ordinal: entry.ordinal.load(relaxed),
            hash: entry.hash.load(relaxed),
            name: String::from_utf8_lossy(&name).into_owned(),
            label: String::new(),
            rank: entry.rank.load(relaxed) as i32,
            ranks: known(entry.ranks.load(relaxed)),
            nodes: known(entry.nodes.load(relaxed)),
            api: entry.api.load(relaxed) as u8,
            opened_ns: entry.opened_ns.load(relaxed),
        };
        let open = entry.open.load(relaxed) == 1;
        fence(Ordering::Acquire);
        if before.is_multiple_of(2) && entry.sequence.load(relaxed) == before {
            return Some((communicator, open));
        }
        std::hint::spin_loop();
    }
    None
}
