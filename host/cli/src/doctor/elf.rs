//! As much of an ELF file as tells whether NCCL can use it: machine, needed libraries, exported symbols. No code of the
//! file runs.

use std::path::Path;

/// What a shared library says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elf {
    /// `e_machine`.
    pub machine: u16,
    /// DT_NEEDED.
    pub needed: Vec<String>,
    /// Names of the symbols that it defines.
    pub exports: Vec<String>,
}

/// `e_machine` of this program.
pub const OWN_MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

impl Elf {
    /// Name of the machine.
    pub fn machine_name(&self) -> String {
        match self.machine {
            3 => "x86 (32 bit)".into(),
            21 => "ppc64".into(),
            62 => "x86-64".into(),
            183 => "aarch64".into(),
            243 => "RISC-V".into(),
            other => format!("ELF machine {other}"),
        }
    }

    /// Whether it is linked against musl, which the C library of NCCL's process (glibc) cannot load.
    pub fn needs_musl(&self) -> bool {
        self.needed.iter().any(|name| name.contains("musl"))
    }

    /// Versions of the profiler interface that it exports, ascending.
    pub fn profiler_versions(&self) -> Vec<u8> {
        (1..=9).filter(|n| self.exports.iter().any(|name| *name == format!("ncclProfiler_v{n}"))).collect()
    }
}

/// Reads a file.
///
/// # Errors
/// Why it is no shared library that we understand, in words.
pub fn read(path: &Path) -> Result<Elf, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    parse(&bytes)
}

/// Parses a 64-bit little-endian shared library.
///
/// # Errors
/// As [`read`].
pub fn parse(bytes: &[u8]) -> Result<Elf, String> {
    if !bytes.starts_with(b"\x7fELF") {
        return Err("it is no ELF file".into());
    }
    if bytes.get(4) != Some(&2) || bytes.get(5) != Some(&1) {
        return Err("it is no 64-bit little-endian ELF file".into());
    }
    parse_64(bytes).ok_or_else(|| "its ELF headers are damaged or truncated".to_owned())
}

fn parse_64(bytes: &[u8]) -> Option<Elf> {
    let mut elf = Elf { machine: u16_at(bytes, 18)?, ..Elf::default() };
    let sections = usize::try_from(u64_at(bytes, 40)?).ok()?;
    let (size, count) = (u16_at(bytes, 58)? as usize, u16_at(bytes, 60)? as usize);
    let section = |n: usize| bytes.get(sections.checked_add(n.checked_mul(size)?)?..);
    for n in 0..count {
        let header = section(n)?;
        let kind = u32_at(header, 4)?;
        // 11: SHT_DYNSYM, 6: SHT_DYNAMIC
        if kind != 11 && kind != 6 {
            continue;
        }
        let (offset, length) = (u64_at(header, 24)? as usize, u64_at(header, 32)? as usize);
        let content = bytes.get(offset..offset.checked_add(length)?)?;
        let strings = section(u32_at(header, 40)? as usize)?;
        let (text_offset, text_length) = (u64_at(strings, 24)? as usize, u64_at(strings, 32)? as usize);
        let text = bytes.get(text_offset..text_offset.checked_add(text_length)?)?;
        if kind == 11 {
            for symbol in content.chunks_exact(24) {
                let (info, place) = (symbol[4], u16_at(symbol, 6)?);
                // Defined, and global or weak.
                if place != 0 && matches!(info >> 4, 1 | 2) {
                    elf.exports.push(text_at(text, u32_at(symbol, 0)? as usize)?);
                }
            }
        } else {
            for entry in content.chunks_exact(16).take_while(|entry| u64_at(entry, 0) != Some(0)) {
                if u64_at(entry, 0)? == 1 {
                    elf.needed.push(text_at(text, u64_at(entry, 8)? as usize)?);
                }
            }
        }
    }
    Some(elf)
}

fn text_at(text: &[u8], at: usize) -> Option<String> {
    let rest = text.get(at..)?;
    let end = rest.iter().position(|b| *b == 0)?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_read() {
        let elf = read(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!(elf.machine, OWN_MACHINE);
        assert!(elf.needed.iter().any(|name| name.starts_with("libc.so")), "{:?}", elf.needed);
        assert!(!elf.needs_musl());
        assert!(elf.profiler_versions().is_empty());
    }

    #[test]
    fn damage_is_said_and_never_panics() {
        assert_eq!(parse(b"#!/bin/sh"), Err("it is no ELF file".into()));
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        for cut in [4, 16, 63, 64, 4096, whole.len() / 2] {
            assert!(parse(&whole[..cut]).is_err(), "{cut}");
        }
        let mut wild = whole[..8192].to_vec();
        for at in 16..64 {
            wild[at] = 0xff;
            let _ = parse(&wild);
        }
    }
}
