//! Lines of a file that may be compressed, torn or truncated.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use super::files::head;

/// No line of ours or Inspector's is longer; more is damage, and must not fill the memory.
const LONGEST: u64 = 64 << 20;

/// Opens a file through the decoder that its first bytes ask for.
///
/// # Errors
/// What the file system says.
pub fn open(mut file: File) -> io::Result<Box<dyn BufRead>> {
    let mut magic = [0; 4];
    let have = head(&mut file, &mut magic)?;
    let whole = Cursor::new(magic[..have].to_vec()).chain(file);
    let whole = BufReader::with_capacity(1 << 17, whole);
    Ok(match magic {
        [0x1f, 0x8b, ..] => Box::new(BufReader::with_capacity(1 << 17, MultiGzDecoder::new(whole))),
        [0x28, 0xb5, 0x2f, 0xfd] => {
            Box::new(BufReader::with_capacity(1 << 17, zstd::stream::read::Decoder::with_buffer(whole)?))
        }
        _ => Box::new(whole),
    })
}

/// Why a file ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The last frame (zstd) or member (gzip) is incomplete.
    TruncatedFrame,
    /// The decoder or the disk says so.
    Unreadable(String),
    /// A line without an end.
    EndlessLine,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TruncatedFrame => f.write_str("its last compressed frame is incomplete"),
            Self::Unreadable(why) => write!(f, "cannot be read to its end: {why}"),
            Self::EndlessLine => f.write_str("a line longer than 64 MiB"),
        }
    }
}

/// Line by line, without the line ends; one buffer for all. After a damage there are no more lines.
pub struct Lines {
    reader: Box<dyn BufRead>,
    line: Vec<u8>,
    done: bool,
    torn: bool,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("done", &self.done).finish_non_exhaustive()
    }
}

impl Lines {
    /// From an open file.
    pub fn new(reader: Box<dyn BufRead>) -> Self {
        Self { reader, line: Vec::with_capacity(4096), done: false, torn: false }
    }

    /// Whether the line that was given last had no line end: the file's last.
    pub fn is_torn(&self) -> bool {
        self.torn
    }

    /// The next line.
    pub fn next(&mut self) -> Option<Result<&[u8], Damage>> {
        if self.done {
            return None;
        }
        self.line.clear();
        match (&mut self.reader).take(LONGEST).read_until(b'\n', &mut self.line) {
            Ok(0) => {
                self.done = true;
                None
            }
            Ok(n) if self.line.last() != Some(&b'\n') => {
                self.done = true;
                if n as u64 == LONGEST {
                    return Some(Err(Damage::EndlessLine));
                }
                self.torn = true;
                Some(Ok(&self.line))
            }
            Ok(_) => {
                self.line.pop();
                Some(Ok(&self.line))
            }
            Err(error) => {
                self.done = true;
                Some(Err(match error.kind() {
                    io::ErrorKind::UnexpectedEof => Damage::TruncatedFrame,
                    _ => Damage::Unreadable(error.to_string()),
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    fn read(bytes: &[u8]) -> (Vec<String>, bool, Option<Damage>) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        let mut lines = Lines::new(open(file).unwrap());
        let mut texts = Vec::new();
        let mut damage = None;
        while let Some(line) = lines.next() {
            match line {
                Ok(line) => texts.push(String::from_utf8(line.to_vec()).unwrap()),
                Err(what) => damage = Some(what),
            }
        }
        (texts, lines.is_torn(), damage)
    }

    #[test]
    fn frames_follow_each_other() {
        let mut file = zstd::encode_all(&b"one\ntwo\n"[..], 3).unwrap();
        file.extend(zstd::encode_all(&b"three\n"[..], 3).unwrap());
        assert_eq!(read(&file), (vec!["one".into(), "two".into(), "three".into()], false, None));
    }

    #[test]
    fn a_truncated_frame_leaves_the_frames_before_it() {
        let mut file = zstd::encode_all(&b"one\ntwo\n"[..], 3).unwrap();
        let last = zstd::encode_all(&b"three\nfour\n"[..], 3).unwrap();
        file.extend(&last[..last.len() - 3]);
        let (texts, _, damage) = read(&file);
        assert_eq!(texts[..2], ["one", "two"]);
        assert_eq!(damage, Some(Damage::TruncatedFrame));
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"one\n").unwrap();
        let member = gzip.finish().unwrap();
        let mut file = member.clone();
        file.extend(&member[..member.len() / 2]);
        let (texts, _, damage) = read(&file);
        assert_eq!((texts[0].as_str(), damage), ("one", Some(Damage::TruncatedFrame)));
    }

    #[test]
    fn the_last_line_may_be_torn() {
        assert_eq!(read(b"one\ntw"), (vec!["one".into(), "tw".into()], true, None));
        assert_eq!(read(b""), (vec![], false, None));
    }
}
