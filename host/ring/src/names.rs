//! The shared name table: texts that NCCL passes, each with a one-byte code.

use std::sync::atomic::Ordering;

use crate::layout::{NAME_BYTES, NAMES};
use crate::memory::Mapping;

/// Code of what did not fit.
pub(crate) const OVERFLOW: u8 = (NAMES - 1) as u8;

/// The code of a text, reserving one if it is new. Lock-free; any thread. Two threads that meet a new text at once may give
/// it two codes, which is harmless. Texts longer than [`NAME_BYTES`] are cut. 255: the table is full.
pub(crate) fn intern(mapping: &Mapping, text: &[u8]) -> u8 {
    if text.is_empty() {
        return 0;
    }
    let text = &text[..text.len().min(NAME_BYTES)];
    let header = mapping.header();
    let entries = mapping.names();
    let known = (header.names_reserved.load(Ordering::Acquire) as usize).min(NAMES - 2);
    if let Some(code) = (1..=known).find(|code| matches(mapping, *code, text)) {
        return code as u8;
    }
    let code = header.names_reserved.fetch_add(1, Ordering::AcqRel) as usize + 1;
    if code >= NAMES - 1 {
        header.names_reserved.fetch_sub(1, Ordering::AcqRel);
        header.names_lost.fetch_add(1, Ordering::Relaxed);
        return OVERFLOW;
    }
    let entry = &entries[code];
    for (place, chunk) in entry.words.iter().zip(text.chunks(8)) {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        place.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
    }
    // Pairs with the Acquire load in `read`.
    entry.len.store(text.len() as u64, Ordering::Release);
    code as u8
}

fn matches(mapping: &Mapping, code: usize, text: &[u8]) -> bool {
    let entry = &mapping.names()[code];
    entry.len.load(Ordering::Acquire) == text.len() as u64
        && entry.words.iter().zip(text.chunks(8)).all(|(place, chunk)| {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            place.load(Ordering::Relaxed) == u64::from_le_bytes(bytes)
        })
}

/// The text of a code, made valid UTF-8; None if it is not there (yet).
pub(crate) fn read(mapping: &Mapping, code: usize) -> Option<String> {
    let entry = mapping.names().get(code)?;
    // Pairs with the Release store in `intern`.
    let len = entry.len.load(Ordering::Acquire) as usize;
    if len == 0 || len > NAME_BYTES {
        return None;
    }
    let mut bytes: Vec<u8> = entry.words.iter().flat_map(|w| w.load(Ordering::Relaxed).to_le_bytes()).collect();
    bytes.truncate(len);
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
