//! The process's own region: makes rings, hands them to threads, reads them.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use collander_event::{Calibration, Communicator, NameTable, Record};

use crate::communicators;
use crate::layout::{DATA_OFFSET, FORMAT, MAGIC, NAMES, RINGS, RingControl, RingCounters, RingState};
use crate::memory::Mapping;
use crate::names;
use crate::producer::Producer;
use crate::protocol::{self, Copied};

/// Smallest ring that is made when memory runs short.
const SMALLEST_RING: u64 = 64 << 10;

/// The shared memory of one process. Made once, lives until the process ends.
#[derive(Debug)]
pub struct Region {
    mapping: Mapping,
    file: Option<File>,
    data_bytes: u64,
}

/// Counters of the region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionStats {
    /// Events on threads that got no ring.
    pub events_unobserved: u64,
    /// Communicators beyond the table.
    pub communicators_unobserved: u64,
    /// Names that did not fit the table.
    pub names_lost: u64,
    /// Bytes given to rings.
    pub allocated: u64,
}

impl Region {
    /// Creates the region for rings of `data_bytes` in all, for the process with this nonce, and leaks it: NCCL threads
    /// refer to it until the process ends. Allocates the tables (about 0.4 MiB), no ring yet. Cold.
    ///
    /// # Errors
    /// When the memory cannot be mapped.
    pub fn create(data_bytes: u64, nonce: u16) -> io::Result<&'static Self> {
        let data_bytes = data_bytes.next_multiple_of(4096);
        let len = DATA_OFFSET + data_bytes as usize;
        let (mapping, file) = Mapping::create(len)?;
        mapping.populate(file.as_ref(), 0, DATA_OFFSET)?;
        let header = mapping.header();
        header.pid.store(std::process::id(), Ordering::Relaxed);
        header.format.store(FORMAT, Ordering::Relaxed);
        header.total_bytes.store(len as u64, Ordering::Relaxed);
        header.data_offset.store(DATA_OFFSET as u64, Ordering::Relaxed);
        header.nonce.store(u32::from(nonce), Ordering::Relaxed);
        header.calibration_ns_per_tick.store(1.0_f64.to_bits(), Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        Ok(Box::leak(Box::new(Self { mapping, file, data_bytes })))
    }

    #[cfg(test)]
    pub(crate) fn file_for_tests(&self) -> File {
        self.file.as_ref().and_then(|f| f.try_clone().ok()).expect("a memfd")
    }

    /// Whether other processes can find it (a memfd); false: anonymous memory, no black box.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.file.is_some()
    }

    /// A ring for the calling thread: one that is ready with at least half of `bytes`, else a new one of `bytes`, or
    /// smaller when the bound is near (each takes at most a third of what is left beside 64 KiB for each ring that may still
    /// come). None: the bound is reached. Lock-free; the first event of a thread (it may allocate pages).
    pub fn acquire(&'static self, bytes: u64) -> Option<Producer> {
        let reserved = self.rings();
        for ring in 0..reserved {
            let control = &self.mapping.controls()[ring];
            let have = control.capacity.load(Ordering::Relaxed) * 64;
            if control.state.load(Ordering::Relaxed) == RingState::Ready as u32
                && have >= bytes / 2
                && have <= bytes.saturating_mul(2)
                && let Some(producer) = self.activate(control, ring)
            {
                return Some(producer);
            }
        }
        if let Some(ring) = self.make(bytes) {
            return self.activate(&self.mapping.controls()[ring], ring);
        }
        // Better a ring of the wrong size than none.
        (0..reserved).find_map(|ring| self.activate(&self.mapping.controls()[ring], ring))
    }

    fn activate(&'static self, control: &'static RingControl, ring: usize) -> Option<Producer> {
        let (ready, active) = (RingState::Ready as u32, RingState::Active as u32);
        // Acquire pairs with the Release stores that made it ready.
        control.state.compare_exchange(ready, active, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        let slots =
            self.mapping.slots(control.offset.load(Ordering::Relaxed), control.capacity.load(Ordering::Relaxed))?;
        control.generation.fetch_add(1, Ordering::Relaxed);
        // SAFETY: gettid has no preconditions.
        control.thread.store(unsafe { libc::gettid() } as u32, Ordering::Relaxed);
        Some(Producer::new(control, slots, ring as u8))
    }

    fn make(&'static self, wanted: u64) -> Option<usize> {
        let header = self.mapping.header();
        let mut bytes = wanted.next_power_of_two().max(SMALLEST_RING);
        let mut allocated = header.allocated.load(Ordering::Relaxed);
        let offset = loop {
            let left = self.data_bytes.checked_sub(allocated)?;
            // A smallest ring is kept back for each thread that may still come; of the rest one takes a third at most.
            let to_come = (RINGS - self.rings()).saturating_sub(1) as u64;
            let free = left.saturating_sub(to_come * SMALLEST_RING);
            while bytes > SMALLEST_RING && bytes > free / 3 {
                bytes /= 2;
            }
            if bytes > left {
                return None;
            }
            match header.allocated.compare_exchange_weak(
                allocated,
                allocated + bytes,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => break DATA_OFFSET as u64 + allocated,
                Err(now) => allocated = now,
            }
        };
        self.mapping.populate(self.file.as_ref(), offset as usize, bytes as usize).ok()?;
        let ring = header.rings_reserved.fetch_add(1, Ordering::AcqRel) as usize;
        if ring >= RINGS {
            header.rings_reserved.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        let control = &self.mapping.controls()[ring];
        control.offset.store(offset, Ordering::Relaxed);
        control.capacity.store(bytes / 64, Ordering::Relaxed);
        // Pairs with the compare-exchange in `activate`.
        control.state.store(RingState::Ready as u32, Ordering::Release);
        Some(ring)
    }

    /// How many ring controls are in use.
    #[must_use]
    pub fn rings(&self) -> usize {
        (self.mapping.header().rings_reserved.load(Ordering::Acquire) as usize).min(RINGS)
    }

    /// The counters of a ring; zeros for one that was never made.
    #[must_use]
    pub fn counters(&self, ring: usize) -> &RingCounters {
        &self.mapping.controls()[ring % RINGS].counters
    }

    /// Whether the ring's thread has gone, and if so makes it ready for another once `reader` has read it to its end.
    /// The drain.
    pub fn recycle(&self, ring: usize, reader: &RingReader) {
        let control = &self.mapping.controls()[ring % RINGS];
        // Pairs with the Release store in `Producer::retire`.
        if control.state.load(Ordering::Acquire) == RingState::Retired as u32
            && control.cursor.head.load(Ordering::Acquire) == reader.next
        {
            control.state.store(RingState::Ready as u32, Ordering::Release);
        }
    }

    /// Reads up to `limit` records of a ring to the end of `out`, with the number of records lost before them. The drain.
    pub fn read(&self, ring: usize, reader: &mut RingReader, limit: usize, out: &mut Vec<Record>) -> u64 {
        let control = &self.mapping.controls()[ring % RINGS];
        if control.state.load(Ordering::Acquire) == RingState::Empty as u32 {
            return 0;
        }
        let slots =
            self.mapping.slots(control.offset.load(Ordering::Relaxed), control.capacity.load(Ordering::Relaxed));
        let Some(slots) = slots else { return 0 };
        let Copied { next, lost } = protocol::copy_valid(&control.cursor, slots, reader.next, limit, out);
        reader.next = next;
        lost
    }

    /// Records written to a ring so far.
    #[must_use]
    pub fn head(&self, ring: usize) -> u64 {
        self.mapping.controls()[ring % RINGS].cursor.head.load(Ordering::Acquire)
    }

    /// Slots of a ring.
    #[must_use]
    pub fn capacity(&self, ring: usize) -> u64 {
        self.mapping.controls()[ring % RINGS].capacity.load(Ordering::Relaxed)
    }

    /// The code of a text (see `NameTable`), 255 when the table is full. Lock-free; cold part of any thread.
    #[must_use]
    pub fn intern(&self, text: &[u8]) -> u8 {
        names::intern(&self.mapping, text)
    }

    /// Learns names that are new since the last call. The drain.
    pub fn learn_names(&self, table: &mut NameTable) {
        learn(&self.mapping, table);
    }

    /// Writes a communicator's entry for the black box. Cold; any thread.
    pub fn write_communicator(&self, communicator: &Communicator, open: bool) {
        self.mapping.header().communicators.fetch_max(communicator.ordinal.saturating_add(1), Ordering::Relaxed);
        communicators::write(&self.mapping, communicator, open);
    }

    /// Publishes a clock calibration. One thread at a time (the drain; before it starts, init).
    pub fn calibrate(&self, calibration: Calibration) {
        let header = self.mapping.header();
        let sequence = header.calibration_sequence.load(Ordering::Relaxed);
        header.calibration_sequence.store(sequence + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        header.calibration_ticks.store(calibration.ticks, Ordering::Relaxed);
        header.calibration_unix_ns.store(calibration.unix_ns, Ordering::Relaxed);
        header.calibration_ns_per_tick.store(calibration.ns_per_tick.to_bits(), Ordering::Relaxed);
        header.calibration_sequence.store(sequence + 2, Ordering::Release);
    }

    /// Counter of events on threads that got no ring.
    #[must_use]
    pub fn events_unobserved(&self) -> &AtomicU64 {
        &self.mapping.header().events_unobserved
    }

    /// Counter of communicators beyond the table.
    #[must_use]
    pub fn communicators_unobserved(&self) -> &AtomicU64 {
        &self.mapping.header().communicators_unobserved
    }

    /// Counters of the region.
    #[must_use]
    pub fn stats(&self) -> RegionStats {
        let header = self.mapping.header();
        RegionStats {
            events_unobserved: header.events_unobserved.load(Ordering::Relaxed),
            communicators_unobserved: header.communicators_unobserved.load(Ordering::Relaxed),
            names_lost: header.names_lost.load(Ordering::Relaxed),
            allocated: header.allocated.load(Ordering::Relaxed),
        }
    }
}

pub(crate) fn learn(mapping: &Mapping, table: &mut NameTable) {
    let reserved = (mapping.header().names_reserved.load(Ordering::Acquire) as usize).min(NAMES - 2);
    if table.is_empty() {
        table.learn((NAMES - 1) as u8, "(name table full)");
    }
    for code in 1..=reserved {
        if table.text(code as u8).is_empty()
            && let Some(text) = names::read(mapping, code)
        {
            table.learn(code as u8, &text);
        }
    }
}

/// How far a reader has read one ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingReader {
    /// Number of the next record.
    pub next: u64,
}

#[cfg(test)]
mod tests;
