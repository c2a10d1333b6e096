//! The disk, behind a trait so that tests can make it fail at a chosen call.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// What a sink asks of a file system.
pub(crate) trait Storage: Send {
    /// Makes a folder with its parents (0755); fine if it is there.
    fn make_directory(&self, path: &Path) -> io::Result<()>;
    /// Makes a file (0644) that must not be there yet.
    fn create(&self, path: &Path) -> io::Result<Box<dyn StoredFile>>;
    /// Deletes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Puts a whole file in place of another, at once, by way of `temporary`.
    fn replace(&self, path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()>;
}

/// An open file.
pub(crate) trait StoredFile: Send {
    /// Writes at an offset; may write less.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Cuts it off.
    fn truncate(&self, length: u64) -> io::Result<()>;
    /// Whether `path` still leads to it.
    fn is_at(&self, path: &Path) -> bool;
}

/// The real one.
#[derive(Debug)]
pub(crate) struct Disk;

impl Storage for Disk {
    fn make_directory(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o755).create(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn StoredFile>> {
        Ok(Box::new(OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)?))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn replace(&self, path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
        std::fs::write(temporary, bytes)?;
        std::fs::rename(temporary, path)
    }
}

impl StoredFile for File {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, offset)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn is_at(&self, path: &Path) -> bool {
        match (self.metadata(), std::fs::symlink_metadata(path)) {
            (Ok(own), Ok(there)) => own.ino() == there.ino() && own.dev() == there.dev(),
            _ => false,
        }
    }
}
