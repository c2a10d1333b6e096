//! Names to one-byte codes: a pointer-keyed cache whose content is compared at every use, since the interface promises a
//! text only for the call.

mod same;

use std::ffi::{CStr, c_char};

use collander_event::{Collective, Datatype, LOCAL_BITS};

use self::same::{both, holds, same};
use crate::callbacks::whole;
use crate::guard::guarded;
use crate::startup;

/// Sets of the cache; a power of two. A job uses some twenty names: 7 in 100 jobs have one set that overflows.
const SETS: usize = 128;
/// Entries of a set.
const WAYS: usize = 2;
/// Remembered sets of four, and pairs; powers of two.
const FOURS: usize = 32;
const PAIRS: usize = 32;
/// An address that no text has.
const NOWHERE: usize = 1;
/// Longest text, with its NUL, that the cache compares where it stands.
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

/// Function and datatype of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Pair {
    pub function: u8,
    pub datatype: u8,
    pub collective: u8,
    pub size: u8,
}

impl Pair {
    pub(crate) const NONE: Self = Self { function: 0, datatype: 0, collective: 0, size: 0 };

    /// The datatype's code where a Coll's record has that of its API call.
    pub(crate) const fn datatype_bits(self) -> u64 {
        (self.datatype as u64) << LOCAL_BITS
    }

    #[inline(always)]
    pub(crate) const fn new(function: Name, datatype: Name) -> Self {
        Self { function: function.code, datatype: datatype.code, collective: function.collective, size: datatype.size }
    }
}

/// What a collective's four names come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Codes {
    /// Bytes an element.
    pub size: u64,
    pub collective: usize,
    /// function | datatype << 8 | algorithm << 16 | protocol << 24, as records have them.
    pub codes: u32,
}

/// Sixteen bytes of a text, and all ones in the bytes behind its NUL.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
struct Text {
    bytes: [u8; SHORT],
    beyond: [u8; SHORT],
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Entry {
    text: Text,
    /// The address; `NOWHERE`: free, or not to be compared where it stands.
    address: usize,
    name: Name,
}

/// Texts that were used together.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(256))]
struct Together<const N: usize, T> {
    texts: [Text; N],
    addresses: [usize; N],
    value: T,
}

/// One thread's cache.
#[derive(Debug)]
pub(crate) struct NameCache {
    fours: [Together<4, Codes>; FOURS],
    /// With the datatype's code from bit 50 on.
    pairs: [Together<2, (Pair, u64)>; PAIRS],
    sets: [[Entry; WAYS]; SETS],
}

impl Text {
    /// No text: every text has at least its NUL.
    const NONE: Self = Self { bytes: [0; SHORT], beyond: [u8::MAX; SHORT] };

    /// A short text with its NUL; None for a longer one.
    fn new(text: &[u8]) -> Option<Self> {
        let mut this = Self::NONE;
        if text.len() >= SHORT {
            return None;
        }
        this.bytes.get_mut(..text.len())?.copy_from_slice(text);
        this.beyond.get_mut(..=text.len())?.fill(0);
        Some(this)
    }
}

impl Entry {
    /// Whether the text at the entry's address is still the one that it was.
    ///
    /// # Safety
    /// The entry's address is that of a readable, NUL-terminated text.
    #[inline(always)]
    unsafe fn is_still(&self) -> bool {
        // SAFETY: the text's first byte is readable, so its whole page is; the cache takes in only addresses from which
        // sixteen bytes lie in one page.
        holds(unsafe { same(&self.text, self.address) })
    }
}

impl NameCache {
    pub(crate) const fn new() -> Self {
        let free = Entry { text: Text::NONE, address: NOWHERE, name: Name { code: 0, collective: 0, size: 0 } };
        let four = Together {
            texts: [Text::NONE; 4],
            addresses: [NOWHERE; 4],
            value: Codes { size: 0, collective: 0, codes: 0 },
        };
        let pair = Together { texts: [Text::NONE; 2], addresses: [NOWHERE; 2], value: (Pair::NONE, 0) };
        Self { sets: [[free; WAYS]; SETS], fours: [four; FOURS], pairs: [pair; PAIRS] }
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
        if entry.address == address && unsafe { entry.is_still() } {
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
            if entry.address == address && unsafe { entry.is_still() } {
                return entry.name;
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.slow(text) }
    }

    /// What the four names of a collective come to, if the same four were used not long ago. Hot: some forty instructions,
    /// no call.
    ///
    /// # Safety
    /// As `name`, for each.
    #[inline(always)]
    pub(crate) unsafe fn known_four(&self, texts: [*const c_char; 4]) -> Option<&Codes> {
        let [a, b, c, d] = texts.map(|text| text as usize);
        let four = whole(&self.fours[Self::four_index(a, b, c, d)]);
        let [at_a, at_b, at_c, at_d] = four.addresses;
        if at_a != a || at_b != b || at_c != c || at_d != d {
            return None;
        }
        let [text_a, text_b, text_c, text_d] = &four.texts;
        // SAFETY: the addresses are those asked for, whose texts are readable (the caller's promise), and such from which
        // sixteen bytes lie in one page: no others are taken in.
        let same = unsafe { both(both(both(same(text_a, a), same(text_b, b)), same(text_c, c)), same(text_d, d)) };
        holds(same).then_some(&four.value)
    }

    /// [`known_four`](Self::known_four), whatever it takes.
    ///
    /// # Safety
    /// As `name`, for each.
    #[inline(never)]
    pub(crate) unsafe fn four(&mut self, texts: [*const c_char; 4]) -> Codes {
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(codes) = self.known_four(texts) {
                return *codes;
            }
            let [function, datatype, algorithm, protocol] = texts.map(|text| self.name(text));
            let value = Codes {
                codes: u32::from_le_bytes([function.code, datatype.code, algorithm.code, protocol.code]),
                collective: usize::from(function.collective),
                size: u64::from(datatype.size),
            };
            if let Some(found) = self.entries(texts) {
                let [a, b, c, d] = texts.map(|text| text as usize);
                self.fours[Self::four_index(a, b, c, d)] = Together { texts: found, addresses: [a, b, c, d], value };
            }
            value
        }
    }

    /// What function and datatype come to, if the same two were used not long ago. Hot.
    ///
    /// # Safety
    /// As `name`, for each.
    #[inline(always)]
    pub(crate) unsafe fn known_pair(&self, function: *const c_char, datatype: *const c_char) -> Option<&(Pair, u64)> {
        let (a, b) = (function as usize, datatype as usize);
        let pair = whole(&self.pairs[Self::pair_index(a, b)]);
        let [at_a, at_b] = pair.addresses;
        if at_a != a || at_b != b {
            return None;
        }
        let [text_a, text_b] = &pair.texts;
        // SAFETY: as in `known_four`.
        holds(unsafe { both(same(text_a, a), same(text_b, b)) }).then_some(&pair.value)
    }

    /// [`known_pair`](Self::known_pair), whatever it takes.
    ///
    /// # Safety
    /// As `name`, for each.
    #[inline(never)]
    pub(crate) unsafe fn pair(&mut self, function: *const c_char, datatype: *const c_char) -> Pair {
        // SAFETY: the caller's promise.
        unsafe {
            if let Some((pair, _)) = self.known_pair(function, datatype) {
                return *pair;
            }
            let value = Pair::new(self.name(function), self.name(datatype));
            if let Some(found) = self.entries([function, datatype]) {
                let (a, b) = (function as usize, datatype as usize);
                let value = (value, value.datatype_bits());
                self.pairs[Self::pair_index(a, b)] = Together { texts: found, addresses: [a, b], value };
            }
            value
        }
    }

    /// The remembered texts at addresses, if all of them may be compared where they stand. They were just asked for.
    ///
    /// # Safety
    /// As `name`, for each.
    unsafe fn entries<const N: usize>(&self, texts: [*const c_char; N]) -> Option<[Text; N]> {
        let mut found = [Text::NONE; N];
        for (place, text) in found.iter_mut().zip(texts) {
            let address = text as usize;
            // An entry with what stood there before may have the same address.
            // SAFETY: as in `name`.
            let is_it = |entry: &&Entry| entry.address == address && unsafe { entry.is_still() };
            *place = self.sets[Self::set(address)].iter().find(is_it)?.text;
        }
        Some(found)
    }

    #[inline(always)]
    const fn four_index(a: usize, b: usize, c: usize, d: usize) -> usize {
        let sum = a.wrapping_add(b.wrapping_mul(2)).wrapping_add(c.wrapping_mul(4)).wrapping_add(d.wrapping_mul(8));
        Self::spread(sum) & (FOURS - 1)
    }

    #[inline(always)]
    const fn pair_index(a: usize, b: usize) -> usize {
        Self::spread(b.wrapping_add(a.wrapping_mul(2))) & (PAIRS - 1)
    }

    /// Bits that depend on the thirteen lowest of a sum of addresses; the shift is undone by the entries' size.
    #[inline(always)]
    const fn spread(sum: usize) -> usize {
        sum.wrapping_mul(0x1e37_79b1) >> 8
    }

    /// Fibonacci hashing: names lie a few bytes apart.
    #[inline(always)]
    const fn set(address: usize) -> usize {
        ((address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SETS.trailing_zeros())) as usize & (SETS - 1)
    }

    /// # Safety
    /// As `name`; not NULL.
    #[cold]
    #[inline(never)]
    unsafe fn slow(&mut self, text: *const c_char) -> Name {
        // SAFETY: the caller's promise.
        let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
        let address = text as usize;
        let Some(fresh) = Text::new(bytes) else {
            return guarded(Name::default(), || Self::intern(bytes));
        };
        let set = &mut self.sets[Self::set(address)];
        // At a page's end sixteen bytes could reach into an unmapped page: never cached, always compared here.
        let comparable = address & 4095 <= 4096 - SHORT;
        let known = set.iter_mut().find(|e| e.text.bytes == fresh.bytes && e.text.beyond == fresh.beyond);
        if let Some(entry) = known {
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
        set[0] = Entry { text: fresh, address, name };
        name
    }

    fn intern(bytes: &[u8]) -> Name {
        let code = startup::rings().map_or(0, |rings| rings.intern(bytes));
        let text = std::str::from_utf8(bytes).unwrap_or("");
        Name { code, collective: Collective::from_text(text) as u8, size: Datatype::from_text(text).size() }
    }
}

#[cfg(test)]
mod tests;
