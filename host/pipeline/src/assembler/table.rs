//! From event ids to what is open, by the counter in the id: ids of one ring are dense.
//!
//! Each ring has a direct-mapped window over its counters. An entry that is still needed when its place is taken by a newer
//! id moves to a hash map; one that is over is forgotten then. So the common case costs one look at one place, and "it was
//! already stopped" can be told from "never seen" for as long as the place is not taken.

use collander_event::EventId;
use rustc_hash::FxHashMap;

/// Entries of a ring's window; a power of two.
const WINDOW: usize = 4096;

/// What an id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub(super) enum Role {
    /// Nothing.
    #[default]
    Vacant,
    /// An open operation; `slot` is its slot.
    Operation,
    /// An open child; `slot` is the child's slot.
    Child,
    /// A closed operation. `mark`: 1 if its own stop had come.
    ClosedOperation,
    /// A kernel whose stop state came; `slot`, `generation` are the operation's, `mark` the channel.
    EndedKernel,
    /// A child that was stopped; as `EndedKernel`. `mark` of a proxy operation: 1 if it sends.
    Stopped,
}

impl Role {
    const fn is_live(self) -> bool {
        matches!(self, Self::Operation | Self::Child)
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub id: u64,
    pub slot: u32,
    /// Low bits of the operation's generation.
    pub generation: u16,
    pub role: Role,
    pub mark: u8,
}

#[derive(Debug)]
pub(super) struct IdTable {
    rings: Vec<Option<Box<[Entry; WINDOW]>>>,
    overflow: FxHashMap<u64, Entry>,
}

const fn place(id: u64) -> usize {
    (id >> 8) as usize & (WINDOW - 1)
}

impl IdTable {
    pub(super) fn new() -> Self {
        Self { rings: (0..256).map(|_| None).collect(), overflow: FxHashMap::default() }
    }

    /// The entry of a local id; `Vacant` if it is not known.
    #[inline]
    pub(super) fn find(&self, id: u64) -> Entry {
        if let Some(Some(window)) = self.rings.get(usize::from(EventId(id).ring())) {
            let entry = window[place(id)];
            if entry.id == id {
                return entry;
            }
        }
        if self.overflow.is_empty() { Entry::default() } else { self.overflow.get(&id).copied().unwrap_or_default() }
    }

    /// Stores the entry of a new id.
    #[inline]
    pub(super) fn insert(&mut self, entry: Entry) {
        let Some(window) = self.rings.get_mut(usize::from(EventId(entry.id).ring())) else { return };
        let window = window.get_or_insert_with(|| Box::new([Entry::default(); WINDOW]));
        let old = &mut window[place(entry.id)];
        if old.role.is_live() && old.id != entry.id {
            self.overflow.insert(old.id, *old);
        }
        *old = entry;
        if !self.overflow.is_empty() {
            self.overflow.remove(&entry.id);
        }
    }

    /// Changes an entry; one that is over and has lost its place is forgotten.
    #[inline]
    pub(super) fn update(&mut self, entry: Entry) {
        if let Some(Some(window)) = self.rings.get_mut(usize::from(EventId(entry.id).ring())) {
            let old = &mut window[place(entry.id)];
            if old.id == entry.id {
                *old = entry;
                return;
            }
        }
        if entry.role.is_live() {
            self.overflow.insert(entry.id, entry);
        } else {
            self.overflow.remove(&entry.id);
        }
    }

    #[cfg(test)]
    pub(super) fn overflowed(&self) -> usize {
        self.overflow.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use collander_event::{Detail, EventKind};

    #[test]
    fn live_entries_survive_a_lap_and_others_do_not() {
        let id = |counter| EventId::new(0, 7, counter, Detail(1), EventKind::Coll).local();
        let entry = |counter, role| Entry { id: id(counter), slot: counter as u32, role, ..Entry::default() };
        let mut table = IdTable::new();
        for counter in 1..=10_000 {
            table.insert(entry(counter, Role::Operation));
        }
        assert_eq!(table.overflowed(), 10_000 - WINDOW);
        for counter in 1..=10_000 {
            assert_eq!((table.find(id(counter)).slot, table.find(id(counter)).role), (counter as u32, Role::Operation));
            table.update(entry(counter, Role::ClosedOperation));
        }
        assert_eq!(table.overflowed(), 0);
        assert_eq!(table.find(id(10_000)).role, Role::ClosedOperation);
        assert_eq!(table.find(id(1)).role, Role::Vacant);
        assert_eq!(table.find(id(10_001)).role, Role::Vacant);
    }
}
