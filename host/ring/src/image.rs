//! A region seen from outside: of a running process, of one that died while its rings were held, or saved to a file.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};

use collander_event::{Calibration, Communicator, NameTable, Record};

use crate::communicators;
use crate::layout::{DATA_OFFSET, FORMAT, MAGIC, MEMFD_NAME, RINGS, RingState};
use crate::memory::Mapping;
use crate::protocol;
use crate::region::learn;

/// Why a region cannot be read.
#[derive(Debug)]
pub enum ImageError {
    /// The process is not there, or not ours.
    Process(u32, io::Error),
    /// The process has no rings of collander.
    NoRings(u32),
    /// The file cannot be read.
    File(PathBuf, io::Error),
    /// It is no region, or a damaged one.
    Format(String),
}

impl std::fmt::Display for ImageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Process(pid, error) => {
                write!(f, "process {pid}: {error}; is it running, and is it the same user's?")
            }
            Self::NoRings(pid) => write!(
                f,
                "process {pid} has no rings of collander: it has not loaded the library, or has made no communicator yet"
            ),
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Format(what) => write!(f, "not a collander black box: {what}"),
        }
    }
}

impl std::error::Error for ImageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Process(_, error) | Self::File(_, error) => Some(error),
            _ => None,
        }
    }
}

/// What is known of one ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingInfo {
    /// Its number.
    pub ring: u8,
    /// What it is doing.
    pub state: RingState,
    /// Kernel thread id of its (last) producer.
    pub thread: u32,
    /// Slots.
    pub capacity: u64,
    /// Records written since its birth.
    pub written: u64,
    /// Operation starts recorded since its birth.
    pub kept: u64,
}

/// A read-only view of a region.
#[derive(Debug)]
pub struct Image {
    mapping: Mapping,
    file: Option<File>,
}

impl Image {
    /// The region of a running process. The image stays readable after the process has died, also by kill -9.
    ///
    /// # Errors
    /// When the process is not there, not accessible, or has no rings.
    pub fn open_pid(pid: u32) -> Result<Self, ImageError> {
        let folder = PathBuf::from(format!("/proc/{pid}/fd"));
        let entries = fs::read_dir(&folder).map_err(|e| ImageError::Process(pid, e))?;
        let wanted = format!("/memfd:{MEMFD_NAME}");
        let mut newest = None;
        for entry in entries.flatten() {
            let Ok(target) = fs::read_link(entry.path()) else { continue };
            if target.to_string_lossy().starts_with(&wanted) {
                // A forked child has its parent's, too: take the one that says our pid, else any.
                let file = File::open(entry.path()).map_err(|e| ImageError::Process(pid, e))?;
                let image = Self::from_descriptor(file)?;
                if image.pid() == pid {
                    return Ok(image);
                }
                newest = Some(image);
            }
        }
        newest.ok_or(ImageError::NoRings(pid))
    }

    fn from_descriptor(file: File) -> Result<Self, ImageError> {
        let len = file.metadata().map_err(|e| ImageError::Format(e.to_string()))?.len() as usize;
        if len < DATA_OFFSET {
            return Err(ImageError::Format(format!("{len} bytes are too few")));
        }
        let mapping = Mapping::map(Some(&file), len, false, true)
            .map_err(|e| ImageError::Format(format!("cannot map it: {e}")))?;
        Self { mapping, file: Some(file) }.checked()
    }

    #[cfg(test)]
    pub(crate) fn from_descriptor_of_self(region: &crate::Region) -> Result<Self, ImageError> {
        Self::from_descriptor(region.file_for_tests())
    }

    /// An image that was saved.
    ///
    /// # Errors
    /// When it cannot be read or is no image.
    pub fn from_file(path: &Path) -> Result<Self, ImageError> {
        let failed = |e| ImageError::File(path.to_owned(), e);
        let mut file = File::open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len() as usize;
        if len < DATA_OFFSET {
            return Err(ImageError::Format(format!("{}: {len} bytes are too few", path.display())));
        }
        // A copy: a file on disk can shrink under a mapping, which would raise SIGBUS.
        let mut mapping = Mapping::map(None, len, true, true).map_err(failed)?;
        file.read_exact(&mut mapping.bytes_mut()[..len]).map_err(failed)?;
        Self { mapping, file: None }.checked()
    }

    fn checked(self) -> Result<Self, ImageError> {
        let header = self.mapping.header();
        if header.magic.load(Ordering::Acquire) != MAGIC {
            return Err(ImageError::Format("the magic number is missing".into()));
        }
        let format = header.format.load(Ordering::Relaxed);
        if format != FORMAT {
            return Err(ImageError::Format(format!(
                "format {format}; this program reads format {FORMAT}: use the program of the same version as the library"
            )));
        }
        let total = header.total_bytes.load(Ordering::Relaxed);
        if total != self.mapping.len() as u64 {
            return Err(ImageError::Format(format!("{total} bytes announced, {} found", self.mapping.len())));
        }
        Ok(self)
    }

    /// Saves the whole image. Rings that were never used stay holes.
    ///
    /// # Errors
    /// What the file system says.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let mut out = File::create(path)?;
        let used = DATA_OFFSET as u64 + self.mapping.header().allocated.load(Ordering::Relaxed);
        let used = used.min(self.mapping.len() as u64);
        if let Some(file) = &self.file {
            let mut file = file.try_clone()?;
            file.seek(SeekFrom::Start(0))?;
            io::copy(&mut file.take(used), &mut out)?;
        } else {
            for chunk in self.copy_words(used as usize).chunks(8192) {
                let bytes: Vec<u8> = chunk.iter().flat_map(|w| w.to_ne_bytes()).collect();
                out.write_all(&bytes)?;
            }
        }
        out.set_len(self.mapping.len() as u64)
    }

    fn copy_words(&self, bytes: usize) -> Vec<u64> {
        self.mapping.words()[..bytes / 8].iter().map(|w| w.load(Ordering::Relaxed)).collect()
    }

    /// The process that wrote it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.mapping.header().pid.load(Ordering::Relaxed)
    }

    /// Its nonce in event ids.
    #[must_use]
    pub fn nonce(&self) -> u16 {
        self.mapping.header().nonce.load(Ordering::Relaxed) as u16
    }

    /// The newest clock calibration.
    #[must_use]
    pub fn calibration(&self) -> Calibration {
        let header = self.mapping.header();
        let mut calibration = Calibration::UNIX_NANOSECONDS;
        for _ in 0..64 {
            let before = header.calibration_sequence.load(Ordering::Acquire);
            calibration = Calibration {
                ticks: header.calibration_ticks.load(Ordering::Relaxed),
                unix_ns: header.calibration_unix_ns.load(Ordering::Relaxed),
                ns_per_tick: f64::from_bits(header.calibration_ns_per_tick.load(Ordering::Relaxed)),
            };
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && header.calibration_sequence.load(Ordering::Relaxed) == before {
                break;
            }
            std::hint::spin_loop();
        }
        calibration
    }

    /// The name table.
    #[must_use]
    pub fn names(&self) -> NameTable {
        let mut table = NameTable::default();
        learn(&self.mapping, &mut table);
        table
    }

    /// The communicators that are still in the table (the last 1024), each with whether it is open.
    #[must_use]
    pub fn communicators(&self) -> Vec<(Communicator, bool)> {
        communicators::read_all(&self.mapping)
    }

    /// Events that found no ring.
    #[must_use]
    pub fn events_unobserved(&self) -> u64 {
        self.mapping.header().events_unobserved.load(Ordering::Relaxed)
    }

    /// The rings that were ever used.
    #[must_use]
    pub fn rings(&self) -> Vec<RingInfo> {
        let reserved = (self.mapping.header().rings_reserved.load(Ordering::Acquire) as usize).min(RINGS);
        let controls = self.mapping.controls()[..reserved].iter().enumerate();
        controls
            .map(|(ring, c)| RingInfo {
                ring: ring as u8,
                state: RingState::from_u32(c.state.load(Ordering::Relaxed)),
                thread: c.thread.load(Ordering::Relaxed),
                capacity: c.capacity.load(Ordering::Relaxed),
                written: c.cursor.head.load(Ordering::Relaxed),
                kept: c.counters.kept.load(Ordering::Relaxed),
            })
            .filter(|info| info.written > 0)
            .collect()
    }

    /// The valid records of one ring, oldest first, at most the last `limit`. Empty for a damaged control.
    #[must_use]
    pub fn records_of(&self, ring: u8, limit: usize) -> Vec<Record> {
        let control = &self.mapping.controls()[ring as usize];
        let slots =
            self.mapping.slots(control.offset.load(Ordering::Relaxed), control.capacity.load(Ordering::Relaxed));
        let mut records = Vec::new();
        if let Some(slots) = slots {
            let from = control.cursor.head.load(Ordering::Acquire).saturating_sub(limit.min(slots.len()) as u64);
            protocol::copy_valid(&control.cursor, slots, from, limit.min(slots.len()), &mut records);
        }
        records
    }

    /// The valid records of all rings, ring by ring, each oldest first.
    #[must_use]
    pub fn records(&self) -> Vec<(u8, Vec<Record>)> {
        self.rings().iter().map(|info| (info.ring, self.records_of(info.ring, usize::MAX))).collect()
    }
}
