//! Names to one-byte codes: a pointer-keyed cache whose content is compared at every use, since the interface promises a
//! text only for the call.

use std::ffi::{CStr, c_char};

use collander_event::{Collective, Datatype};

use crate::guard::guarded;
use crate::startup;

/// Sets of the cache; a power of two. A job uses some twenty names: 7 in 100 jobs have one set that overflows.
const SETS: usize = 128;
/// Entries of a set.
const WAYS: usize = 2;
/// Remembered sets of four; a power of two.
const FOURS: usize = 32;
/// An address that no text has.
const NOWHERE: usize = 1;
/// Longest text, with its NUL, that the cache compares in registers.
const SHORT: usize = 16;

/// A name as callbacks use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Name {
    /// Code in the shared name table; 0: NULL or empty.
    pub code: u8,
    /// As a function: `Collective as u8`.
    pub collective: u8,
    /// As a datatype: bytes an element, 0 if unknown.
    pub size: u8,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Entry {
    /// The address; `NOWHERE`: free, or not to be compared where it stands.
    address: usize,
    /// First eight bytes, and the eight bytes at `tail`, under `mask`.
    first: u64,
    last: u64,
    mask: u64,
    tail: usize,
    name: Name,
}

/// One thread's cache.
#[derive(Debug)]
pub(crate) struct NameCache {
    sets: [[Entry; WAYS]; SETS],
    fours: [[Entry; 4]; FOURS],
}

impl Entry {
    /// Zero if the text at the entry's address is still the one that it was.
    ///
    /// # Safety
    /// The entry's address is that of a readable, NUL-terminated text.
    #[inline(always)]
    unsafe fn differs(&self) -> u64 {
        // SAFETY: the text's first byte is readable, so its whole page is; the cache takes in only addresses from which
        // sixteen bytes lie in one page, and `tail` is at most 8.
        let (first, last) = unsafe { (load8(self.address), load8(self.address.wrapping_add(self.tail))) };
        ((first ^ self.first) | (last ^ self.last)) & self.mask
    }

    /// # Safety
    /// As `differs`.
    #[inline(always)]
    unsafe fn holds(&self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.differs() == 0 }
    }
}

/// Eight bytes at an address.
///
/// # Safety
/// `address .. address + 8` must lie in mapped, readable memory.
#[inline(always)]
unsafe fn load8(address: usize) -> u64 {
    let value: u64;
    // The bytes after a text's NUL may belong to no object that Rust knows: hence assembly, not a load of Rust's.
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller promises that the memory is readable; nothing else is touched.
    unsafe {
        core::arch::asm!("mov {}, qword ptr [{}]", out(reg) value, in(reg) address, options(nostack, preserves_flags, readonly, pure));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        core::arch::asm!("ldr {}, [{}]", out(reg) value, in(reg) address, options(nostack, preserves_flags, readonly, pure));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    // SAFETY: as above.
    let value = {
        value = unsafe { (address as *const u64).read_unaligned() };
        value
    };
    value
}

impl NameCache {
    pub(crate) const fn new() -> Self {
        let free =
            Entry { address: NOWHERE, first: 0, last: 0, mask: 0, tail: 0, name: Name { code: 0, collective: 0, size: 0 } };
        Self { sets: [[free; WAYS]; SETS], fours: [[free; 4]; FOURS] }
    }

    /// The name at an address. Hot: about fifteen instructions when it is known and short.
    ///
    /// # Safety
    /// `text` is NULL or a NUL-terminated text that stays for the call.
    #[inline(always)]
    pub(crate) unsafe fn name(&mut self, text: *const c_char) -> Name {
        let address = text as usize;
        let entry = &self.sets[Self::set(address)][0];
        // SAFETY: an entry's address is the one asked for, whose text is readable (the caller's promise).
        if entry.address == address && unsafe { entry.holds() } {
            return entry.name;
        }
        // SAFETY: the caller's promise.
        unsafe { self.second(text) }
    }

    /// The other entries, and new texts.
    ///
    /// # Safety
    /// As `name`.
    #[inline(never)]
    unsafe fn second(&mut self, text: *const c_char) -> Name {
        let address = text as usize;
        if address == 0 {
            return Name::default();
        }
        for entry in &self.sets[Self::set(address)][1..] {
            // SAFETY: as in `name`.
            if entry.address == address && unsafe { entry.holds() } {
                return entry.name;
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.slow(text) }
    }

    /// The four names of a collective at once: most have the same as one shortly before.
    ///
    /// # Safety
    /// As `name`, for each.
    #[inline(always)]
    pub(crate) unsafe fn four(&mut self, texts: [*const c_char; 4]) -> [Name; 4] {
        let [a, b, c, d] = texts.map(|text| text as usize);
        let hash = a.wrapping_add(b.wrapping_mul(3)).wrapping_add(c.wrapping_mul(5)).wrapping_add(d.wrapping_mul(9));
        let four = &self.fours[Self::four_index(hash)];
        let [ea, eb, ec, ed] = four;
        let same = (ea.address ^ a) | (eb.address ^ b) | (ec.address ^ c) | (ed.address ^ d) == 0;
        // SAFETY: as in `name`; an entry of `fours` is only made of texts that may be compared so.
        if same && unsafe { ea.differs() | eb.differs() | ec.differs() | ed.differs() } == 0 {
            return [ea.name, eb.name, ec.name, ed.name];
        }
        // SAFETY: the caller's promise.
        unsafe { self.four_slow(texts, hash) }
    }

    /// # Safety
    /// As `four`.
    #[inline(never)]
    unsafe fn four_slow(&mut self, texts: [*const c_char; 4], hash: usize) -> [Name; 4] {
        // SAFETY: the caller's promise.
        let names = texts.map(|text| unsafe { self.name(text) });
        let entries = texts.map(|text| {
            let address = text as usize;
            self.sets[Self::set(address)].iter().find(|entry| entry.address == address).copied()
        });
        if let [Some(a), Some(b), Some(c), Some(d)] = entries {
            self.fours[Self::four_index(hash)] = [a, b, c, d];
        }
        names
    }

    #[inline(always)]
    const fn four_index(hash: usize) -> usize {
        (hash ^ (hash >> 5)) & (FOURS - 1)
    }

    #[inline(always)]
    const fn set(address: usize) -> usize {
        // Fibonacci hashing: names lie a few bytes apart.
        (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SETS.trailing_zeros())) & (SETS - 1)
    }

    /// # Safety
    /// As `name`; not NULL.
    #[cold]
    #[inline(never)]
    unsafe fn slow(&mut self, text: *const c_char) -> Name {
        // SAFETY: the caller's promise.
        let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
        let address = text as usize;
        let fresh = Self::compare_words(bytes);
        let Some((first, last, mask, tail)) = fresh else {
            return guarded(Name::default(), || Self::intern(bytes));
        };
        let set = &mut self.sets[Self::set(address)];
        // At a page's end two loads of eight bytes could reach into an unmapped page: never cached, always compared here.
        let comparable = address & 4095 <= 4096 - SHORT;
        let same =
            set.iter_mut().find(|e| e.mask != 0 && (e.first, e.last, e.mask, e.tail) == (first, last, mask, tail));
        if let Some(entry) = same {
            // A known text: at a page's end, or the memory was used again.
            if comparable {
                entry.address = address;
            }
            return entry.name;
        }
        let name = guarded(Name::default(), || Self::intern(bytes));
        // The newest comes first; the last of the set goes.
        set.rotate_right(1);
        let address = if comparable { address } else { NOWHERE };
        set[0] = Entry { address, first, last, mask, tail, name };
        name
    }

    /// (first eight bytes, eight bytes at the tail, mask, tail) of a short text with its NUL; None for a longer one.
    fn compare_words(text: &[u8]) -> Option<(u64, u64, u64, usize)> {
        let len = text.len() + 1;
        if len > SHORT {
            return None;
        }
        let mut padded = [0; SHORT];
        padded[..text.len()].copy_from_slice(text);
        let word = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&padded[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        let tail = len.saturating_sub(8);
        let mask = if len >= 8 { u64::MAX } else { (1 << (len * 8)) - 1 };
        Some((word(0), word(tail), mask, tail))
    }

    fn intern(bytes: &[u8]) -> Name {
        let code = startup::rings().map_or(0, |rings| rings.intern(bytes));
        let text = std::str::from_utf8(bytes).unwrap_or("");
        Name { code, collective: Collective::from_text(text) as u8, size: Datatype::from_text(text).size() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides_not_the_address() {
        startup::rings_for_tests();
        let mut cache = NameCache::new();
        let mut scratch = [0u8; 64];
        let mut at = |cache: &mut NameCache, text: &str| {
            scratch[..text.len()].copy_from_slice(text.as_bytes());
            scratch[text.len()] = 0;
            // SAFETY: a NUL-terminated text in `scratch`.
            unsafe { cache.name(scratch.as_ptr().cast()) }
        };
        let texts =
            ["AllReduce", "AllGather", "AllGatherV", "LL", "LL128", "Send", "ncclBfloat16", "ncclFloat8e4m3", "x", ""];
        let first: Vec<Name> = texts.iter().map(|t| at(&mut cache, t)).collect();
        for round in 0..3 {
            for (n, text) in texts.iter().enumerate() {
                assert_eq!(at(&mut cache, text), first[n], "{text} in round {round}");
                assert_eq!(at(&mut cache, text), first[n], "{text} again");
            }
        }
        for (n, a) in first.iter().enumerate() {
            assert!(first.iter().skip(n + 1).all(|b| a.code != b.code), "{:?}", texts[n]);
        }
        assert_eq!(first[0].collective, Collective::AllReduce as u8);
        assert_eq!(first[6].size, 2);
        assert_eq!(first[9].code, 0);
        let long = "a name that is longer than sixteen bytes";
        assert_eq!(at(&mut cache, long), at(&mut cache, long));
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { cache.name(std::ptr::null()) }, Name::default());
    }

    #[test]
    fn a_text_at_the_end_of_a_page_is_read_no_further() {
        startup::rings_for_tests();
        let mut cache = NameCache::new();
        // SAFETY: two fresh pages, the second without access; the text lies whole in the first.
        unsafe {
            let pages = libc::mmap(
                std::ptr::null_mut(),
                8192,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(pages, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(pages.byte_add(4096), 4096, libc::PROT_NONE), 0);
            for text in ["Ring", "AllReduce", "LL"] {
                let place = pages.cast::<u8>().add(4096 - text.len() - 1);
                std::ptr::copy_nonoverlapping(text.as_ptr(), place, text.len());
                place.add(text.len()).write(0);
                let once = cache.name(place.cast());
                assert_eq!(cache.name(place.cast()), once);
                assert_ne!(once.code, 0);
            }
        }
    }
}
