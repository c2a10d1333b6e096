//! The files of one sink: one open, older ones remembered so that the oldest can be deleted.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use super::storage::{Storage, StoredFile};

/// Numbers tried for a file's name before giving up until the next flush.
const TRIES: u32 = 100_000;

/// How files are called.
#[derive(Clone, Debug)]
pub(crate) enum Naming {
    /// `<stem>-<n><extension>`, n from 1.
    Numbered,
    /// `<stem><extension>`, then `<stem>-<n><extension>`, n from 1, as Inspector's name demands.
    FirstPlain,
}

/// A file that is closed.
struct Old {
    path: PathBuf,
    bytes: u64,
    operations: u64,
}

/// The file that is open.
struct Current {
    path: PathBuf,
    number: u32,
    file: Box<dyn StoredFile>,
    /// Where its last good frame ends.
    end: u64,
    operations: u64,
}

/// What making room for a frame did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// There was room.
    Enough,
    /// Files with so many operations were deleted.
    Deleted(u64),
    /// No frame of this size can ever fit.
    Never,
}

/// All files of one sink in one session.
pub(crate) struct Files {
    storage: Box<dyn Storage>,
    directory: PathBuf,
    stem: String,
    extension: String,
    naming: Naming,
    rotate_bytes: u64,
    max_bytes: u64,
    next: u32,
    current: Option<Current>,
    old: VecDeque<Old>,
}

impl Files {
    /// None yet. `directory` should be absolute: the process may change its own.
    pub fn new(
        storage: Box<dyn Storage>,
        directory: PathBuf,
        (stem, extension, naming): (String, String, Naming),
        (rotate_bytes, max_bytes): (u64, u64),
    ) -> Self {
        let next = if matches!(naming, Naming::FirstPlain) { 0 } else { 1 };
        Self {
            storage,
            directory,
            stem,
            extension,
            naming,
            rotate_bytes,
            max_bytes,
            next,
            current: None,
            old: VecDeque::new(),
        }
    }

    /// The storage, for files beside these.
    pub fn storage(&self) -> &dyn Storage {
        self.storage.as_ref()
    }

    /// Where the next file, or the open one, is.
    pub fn path(&self) -> PathBuf {
        self.current.as_ref().map_or_else(|| self.name(self.next), |current| current.path.clone())
    }

    /// Path and number of the open file, if there is one; whether nothing is in it yet.
    pub fn current(&self) -> Option<(&Path, u32, bool)> {
        self.current.as_ref().map(|current| (current.path.as_path(), current.number, current.end == 0))
    }

    fn name(&self, number: u32) -> PathBuf {
        let (stem, extension) = (&self.stem, &self.extension);
        self.directory.join(match (&self.naming, number) {
            (Naming::FirstPlain, 0) => format!("{stem}{extension}"),
            _ => format!("{stem}-{number}{extension}"),
        })
    }

    /// Sees to it that a file is open and is still where it was made. True if the one before had vanished.
    pub fn open(&mut self) -> io::Result<bool> {
        let mut vanished = false;
        if let Some(current) = &self.current {
            if current.file.is_at(&current.path) {
                return Ok(false);
            }
            vanished = true;
            self.current = None;
        }
        self.storage.make_directory(&self.directory)?;
        for _ in 0..TRIES {
            let (number, path) = (self.next, self.name(self.next));
            match self.storage.create(&path) {
                Ok(file) => {
                    self.next += 1;
                    self.current = Some(Current { path, number, file, end: 0, operations: 0 });
                    return Ok(vanished);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.next += 1,
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "every number tried for a new file is taken"))
    }

    /// Deletes the oldest files until a frame fits within the bound. May close the open file.
    pub fn make_room(&mut self, frame: u64) -> Room {
        if frame > self.max_bytes {
            return Room::Never;
        }
        let mut deleted = None;
        loop {
            let open = self.current.as_ref().map_or(0, |current| current.end);
            let all = self.old.iter().map(|old| old.bytes).sum::<u64>() + open;
            if all + frame <= self.max_bytes {
                return deleted.map_or(Room::Enough, Room::Deleted);
            }
            if self.old.is_empty() {
                self.close();
            }
            if let Some(old) = self.old.pop_front() {
                // A file that cannot be deleted is most likely gone; it is not tried again.
                let _ = self.storage.remove(&old.path);
                deleted = Some(deleted.unwrap_or(0) + old.operations);
            }
        }
    }

    /// Writes a frame behind the last good one. If that fails, nothing of it stays in the file.
    pub fn append(&mut self, frame: &[u8], operations: u64) -> io::Result<()> {
        let Some(current) = &mut self.current else { return Err(io::ErrorKind::NotFound.into()) };
        match write_all(current.file.as_ref(), frame, current.end) {
            Ok(()) => {
                current.end += frame.len() as u64;
                current.operations += operations;
                if current.end >= self.rotate_bytes {
                    self.close();
                }
                Ok(())
            }
            Err(error) => {
                // A torn frame would hide every later one: never write behind it.
                if current.file.truncate(current.end).is_err() {
                    self.close();
                }
                Err(error)
            }
        }
    }

    /// Closes the open file; an empty one is deleted.
    pub fn close(&mut self) {
        let Some(current) = self.current.take() else { return };
        let Current { path, file, end, operations, .. } = current;
        drop(file);
        if end == 0 && matches!(self.naming, Naming::Numbered) {
            let _ = self.storage.remove(&path);
        } else {
            self.old.push_back(Old { path, bytes: end, operations });
        }
    }
}

fn write_all(file: &dyn StoredFile, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                bytes = &bytes[n..];
                offset += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
