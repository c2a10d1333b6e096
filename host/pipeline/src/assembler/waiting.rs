//! Records that came before what they belong to: a child whose parent's ring was not read yet, a stop on another thread.

use collander_event::Record;
use rustc_hash::FxHashMap;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Waiter {
    record: Record,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct Awaited {
    id: u64,
    first: u32,
    last: u32,
    pass: u64,
}

/// Records by the id that they wait for. Bounded; the oldest go first.
#[derive(Debug)]
pub(super) struct Waiting {
    slab: Vec<Waiter>,
    free: Vec<u32>,
    /// Index of the queue entry, counted from the first ever.
    by_id: FxHashMap<u64, u64>,
    queue: std::collections::VecDeque<Awaited>,
    popped: u64,
    count: usize,
    bound: usize,
}

impl Waiting {
    pub(super) fn new(bound: usize) -> Self {
        Self {
            slab: Vec::new(),
            free: Vec::new(),
            by_id: FxHashMap::default(),
            queue: std::collections::VecDeque::new(),
            popped: 0,
            count: 0,
            bound: bound.max(1),
        }
    }

    /// Whether nothing waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Lets a record wait for `id`. Beyond the bound, the records that wait for the oldest id are pushed out: how many.
    pub(super) fn add(&mut self, id: u64, record: Record, pass: u64) -> u64 {
        let mut evicted = 0;
        while self.count >= self.bound
            && let Some(oldest) = self.pop_front()
        {
            evicted += self.release(oldest.first, |_| ());
        }
        let waiter = Waiter { record, next: NONE };
        let index = match self.free.pop() {
            Some(index) => {
                self.slab[index as usize] = waiter;
                index
            }
            None => {
                self.slab.push(waiter);
                (self.slab.len() - 1) as u32
            }
        };
        self.count += 1;
        let known = self.by_id.get(&id).and_then(|at| self.queue.get_mut((at - self.popped) as usize));
        match known {
            Some(awaited) => {
                self.slab[awaited.last as usize].next = index;
                awaited.last = index;
            }
            None => {
                self.by_id.insert(id, self.popped + self.queue.len() as u64);
                self.queue.push_back(Awaited { id, first: index, last: index, pass });
            }
        }
        evicted
    }

    /// Takes what waits for `id`, in order.
    pub(super) fn take(&mut self, id: u64, out: &mut Vec<Record>) {
        let Some(at) = self.by_id.remove(&id) else { return };
        let Some(awaited) = self.queue.get_mut((at - self.popped) as usize) else { return };
        let first = std::mem::replace(&mut awaited.first, NONE);
        self.release(first, |record| out.push(record));
    }

    /// Takes what has waited since before `pass`.
    pub(super) fn expire(&mut self, pass: u64, out: &mut Vec<Record>) {
        while self.queue.front().is_some_and(|oldest| oldest.first == NONE || oldest.pass < pass) {
            if let Some(oldest) = self.pop_front() {
                self.release(oldest.first, |record| out.push(record));
            }
        }
        if self.count == 0 && self.slab.capacity() > 4096 {
            (self.slab, self.free) = (Vec::new(), Vec::new());
        }
    }

    fn pop_front(&mut self) -> Option<Awaited> {
        let oldest = self.queue.pop_front()?;
        if oldest.first != NONE {
            self.by_id.remove(&oldest.id);
        }
        self.popped += 1;
        Some(oldest)
    }

    fn release(&mut self, first: u32, mut each: impl FnMut(Record)) -> u64 {
        let (mut at, mut count) = (first, 0);
        while at != NONE {
            let waiter = self.slab[at as usize];
            each(waiter.record);
            self.free.push(at);
            at = waiter.next;
            count += 1;
        }
        self.count -= count as usize;
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(n: u64) -> Record {
        Record([n, 0, 0, 0, 0, 0, 0, 0])
    }

    #[test]
    fn in_order_by_id_bounded_and_expiring() {
        let mut waiting = Waiting::new(4);
        let mut out = Vec::new();
        for (id, n) in [(7, 1), (8, 2), (7, 3)] {
            assert_eq!(waiting.add(id, record(n), 1), 0);
        }
        waiting.take(7, &mut out);
        waiting.take(7, &mut out);
        assert_eq!(out.drain(..).map(|r| r.0[0]).collect::<Vec<_>>(), [1, 3]);
        for n in 4..=6 {
            assert_eq!(waiting.add(9, record(n), 2), 0);
        }
        assert_eq!(waiting.add(10, record(7), 3), 1, "the record for 8 goes");
        waiting.expire(3, &mut out);
        assert_eq!(out.drain(..).map(|r| r.0[0]).collect::<Vec<_>>(), [4, 5, 6]);
        waiting.expire(4, &mut out);
        assert_eq!(out.drain(..).map(|r| r.0[0]).collect::<Vec<_>>(), [7]);
        assert!(waiting.is_empty() && waiting.by_id.is_empty() && waiting.queue.is_empty());
    }
}
