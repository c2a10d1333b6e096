//! Which files there are to read, and whose lines they hold.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::inspector;
use super::lines::{Lines, open};
use super::record::{self, Header};

/// A file that we can read.
#[derive(Clone, Debug)]
pub struct Input {
    /// Where.
    pub path: PathBuf,
    /// Whose lines.
    pub kind: Kind,
}

/// Whose lines a file holds.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Ours.
    Collander(Header),
    /// NVIDIA Inspector's: host and process.
    Inspector(String, u32),
}

/// What was found under the paths.
#[derive(Debug, Default)]
pub struct Found {
    /// Files to read, in the order of their paths.
    pub inputs: Vec<Input>,
    /// Files that are not ours: path and why.
    pub skipped: Vec<(PathBuf, String)>,
}

/// Looks through files and folders (recursively, links to folders not followed).
///
/// # Errors
/// A path that does not exist or cannot be listed.
pub fn find(paths: &[PathBuf]) -> io::Result<Found> {
    let mut candidates = Vec::new();
    for path in paths {
        let meta = fs::metadata(path).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
        if meta.is_dir() {
            walk(path, &mut candidates)?;
        } else {
            candidates.push((path.clone(), true));
        }
    }
    let mut seen = HashSet::new();
    let mut found = Found::default();
    for (path, named) in candidates {
        let identity = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        if !seen.insert(identity) {
            continue;
        }
        // Opening a pipe that nobody writes would wait for ever.
        let kind = if path.is_file() { classify(&path) } else { Err("no regular file".to_owned()) };
        match kind {
            Ok(kind) => found.inputs.push(Input { path, kind }),
            // A folder may hold all sorts of logs: only what looks like ours is worth a word.
            Err(why) if named || is_ours_by_name(&path) => found.skipped.push((path, why)),
            Err(_) => {}
        }
    }
    Ok(found)
}

fn walk(folder: &Path, into: &mut Vec<(PathBuf, bool)>) -> io::Result<()> {
    let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", folder.display()));
    let mut entries = fs::read_dir(folder).map_err(named)?.collect::<io::Result<Vec<_>>>().map_err(named)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let kind = entry.file_type().map_err(named)?;
        if kind.is_dir() {
            walk(&path, into)?;
        } else if is_readable_by_name(&path) && path.is_file() {
            into.push((path, false));
        }
    }
    Ok(())
}

fn is_readable_by_name(path: &Path) -> bool {
    let name = path.to_string_lossy();
    is_ours_by_name(path) || [".log", ".log.gz", ".log.zst"].iter().any(|end| name.ends_with(end))
}

fn is_ours_by_name(path: &Path) -> bool {
    let name = path.to_string_lossy();
    [".jsonl", ".jsonl.zst", ".jsonl.gz"].iter().any(|end| name.ends_with(end))
}

/// Reads the first line. The error is a reason in words.
fn classify(path: &Path) -> Result<Kind, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let mut lines = Lines::new(open(file).map_err(|e| e.to_string())?);
    let first = match lines.next() {
        Some(Ok(line)) => line.to_vec(),
        Some(Err(damage)) => return Err(damage.to_string()),
        None => return Err("it holds no line yet".into()),
    };
    if let Some(header) = record::parse_header(&first) {
        let header = header?;
        return Ok(Kind::Collander(header));
    }
    if let Some((host, pid)) = inspector::writer_of(&first) {
        return Ok(Kind::Inspector(host, pid));
    }
    if first.starts_with(b"{\"recording\"") {
        return Err("a recording of NCCL's calls: replay it with `collander sim --recording`".into());
    }
    Err("neither collander's lines nor Inspector's".into())
}

/// The first bytes of a file, as many as there are.
pub fn head(file: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while have < bytes.len() {
        match file.read(&mut bytes[have..]) {
            Ok(0) => break,
            Ok(n) => have += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(have)
}
