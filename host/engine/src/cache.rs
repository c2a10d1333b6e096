//! Compiled filters on disk: native code that is loaded into a training job, so it is ours alone, checked, and replaced whole.
//!
//! A file's name is the SHA-256 of (fingerprint of engine, configuration and CPU; SHA-256 of the filter). Its content is a magic text,
//! the SHA-256 of the rest, the rest. A folder or file that is not ours, or that others may write, is not used;
//! whatever is odd about a file, the filter is compiled again.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

const MAGIC: &[u8; 16] = b"collander cwasm1";
/// Greatest file that is read.
const GREATEST: u64 = 256 << 20;
/// Files kept; the oldest go first.
const FILES: usize = 256;

/// A folder of compiled filters. Methods never fail: what does not work is as if it were not there.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    fingerprint: String,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The user that we are.
fn own_uid() -> Option<u32> {
    std::fs::metadata("/proc/self").ok().map(|metadata| metadata.uid())
}

/// Whether only we can write it.
fn is_ours(metadata: &std::fs::Metadata) -> bool {
    own_uid() == Some(metadata.uid()) && metadata.mode() & 0o022 == 0
}

impl Cache {
    /// `folder` is made, for its owner only, when something is first written.
    pub(crate) fn new(folder: PathBuf, fingerprint: String) -> Self {
        Self { folder, fingerprint }
    }

    pub(crate) fn path(&self, wasm: &[u8]) -> PathBuf {
        let mut key = Sha256::new();
        key.update(self.fingerprint.as_bytes());
        key.update([0]);
        key.update(Sha256::digest(wasm));
        self.folder.join(format!("{}.cwasm", hex(&key.finalize())))
    }

    fn folder_is_ours(&self) -> bool {
        std::fs::symlink_metadata(&self.folder).is_ok_and(|metadata| metadata.is_dir() && is_ours(&metadata))
    }

    /// The native code of a filter, if it is there and nothing is odd about it.
    pub(crate) fn read(&self, wasm: &[u8]) -> Option<Vec<u8>> {
        if !self.folder_is_ours() {
            return None;
        }
        let path = self.path(wasm);
        let mut file =
            OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC).open(path).ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || !is_ours(&metadata) || metadata.len() > GREATEST {
            return None;
        }
        let mut header = [0; 48];
        file.read_exact(&mut header).ok()?;
        let mut code = Vec::with_capacity(metadata.len() as usize);
        file.take(GREATEST).read_to_end(&mut code).ok()?;
        let intact = header[..16] == MAGIC[..] && header[16..] == Sha256::digest(&code)[..];
        intact.then_some(code)
    }

    /// Keeps the native code of a filter. Says what went wrong, once for the log; the filter works without.
    pub(crate) fn write(&self, wasm: &[u8], code: &[u8]) -> Result<(), String> {
        let at = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(|error| at(&self.folder, error))?;
        if !self.folder_is_ours() {
            return Err(format!("{}: others may write there, or it is another user's", self.folder.display()));
        }
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = self.folder.join(format!("{}-{number}.tmp", std::process::id()));
        let write = || {
            let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
            file.write_all(MAGIC)?;
            file.write_all(&Sha256::digest(code))?;
            file.write_all(code)?;
            drop(file);
            std::fs::rename(&temporary, self.path(wasm))
        };
        let written = write().map_err(|error| at(&temporary, error));
        if written.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        self.prune();
        written
    }

    /// Forgets a filter: its code was refused.
    pub(crate) fn forget(&self, wasm: &[u8]) {
        if self.folder_is_ours() {
            let _ = std::fs::remove_file(self.path(wasm));
        }
    }

    fn prune(&self) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return };
        let ours = |name: &std::ffi::OsStr| Path::new(name).extension().is_some_and(|e| e == "cwasm" || e == "tmp");
        let mut files: Vec<_> = entries
            .flatten()
            .filter(|entry| ours(&entry.file_name()))
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        files.sort();
        for (_, path) in files.iter().take(files.len().saturating_sub(FILES)) {
            let _ = std::fs::remove_file(path);
        }
    }
}
