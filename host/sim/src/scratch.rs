//! Memory for the strings of one call, overwritten right after it: a plugin that keeps a pointer sees garbage.

use std::cell::Cell;
use std::ffi::c_char;

const BYTES: usize = 8 << 10;
const GARBAGE: u8 = b'#';

/// One per calling thread. The last byte stays NUL for ever, so that a stale pointer reads garbage and not beyond.
pub(crate) struct Scratch {
    bytes: Box<[Cell<u8>]>,
    used: Cell<usize>,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        let mut bytes = vec![Cell::new(GARBAGE); BYTES].into_boxed_slice();
        bytes[BYTES - 1] = Cell::new(0);
        Self { bytes, used: Cell::new(0) }
    }

    /// Copies a text, NUL-terminated; what does not fit is cut off. NULL for None.
    pub(crate) fn put(&self, text: Option<&[u8]>) -> *const c_char {
        let Some(text) = text else { return std::ptr::null() };
        let start = self.used.get().min(BYTES - 1);
        let room = BYTES - 1 - start;
        let length = text.len().min(room.saturating_sub(1));
        for (cell, byte) in self.bytes[start..].iter().zip(&text[..length]) {
            cell.set(*byte);
        }
        self.bytes[start + length].set(0);
        self.used.set((start + length + 1).min(BYTES - 1));
        self.bytes.as_ptr().wrapping_add(start).cast()
    }

    /// Overwrites what was put since the last time.
    pub(crate) fn wipe(&self) {
        for cell in &self.bytes[..self.used.get()] {
            cell.set(GARBAGE);
        }
        self.used.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_gone_after_the_call_and_too_long_ones_are_cut() {
        let scratch = Scratch::new();
        assert!(scratch.put(None).is_null());
        assert!(!scratch.put(Some(b"AllReduce")).is_null());
        assert!(!scratch.put(Some(&[b'x'; 2 * BYTES])).is_null());
        assert!(!scratch.put(Some(b"no room")).is_null());
        assert_eq!(scratch.bytes[9].get(), 0);
        assert_eq!(scratch.bytes[0].get(), b'A');
        assert_eq!(scratch.bytes[BYTES - 1].get(), 0);
        scratch.wipe();
        assert!(scratch.bytes[..BYTES - 1].iter().all(|cell| cell.get() == GARBAGE));
        assert_eq!(scratch.bytes[BYTES - 1].get(), 0);
    }
}
