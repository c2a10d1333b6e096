//! Reads the files of the format `collander-jsonl`, as `docs/output-fields.md` describes them: its own reader, so that the
//! tests do not check a program by itself.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// One file.
#[derive(Clone, Debug)]
pub struct File {
    /// Where.
    pub path: PathBuf,
    /// Its whole lines.
    pub lines: Vec<Value>,
    /// The last line or frame is torn.
    pub torn: bool,
}

/// All files of a folder.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// By name.
    pub files: Vec<File>,
}

/// What one life of the library in one process wrote.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// The first header.
    pub header: Value,
    /// What was last known of each communicator, by `comm`.
    pub communicators: BTreeMap<u64, Value>,
    /// Operations, without inferred groups, in the order of the files.
    pub operations: Vec<Value>,
    /// Inferred groups.
    pub inferred: Vec<Value>,
    /// Stats, in the order of `flush`, each with the number of operations that stand before it.
    pub stats: Vec<(Value, u64)>,
}

impl File {
    /// Reads a file, compressed or not; tolerates a torn end.
    ///
    /// # Errors
    /// It cannot be read; a whole line is not an object.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path)?;
        let (mut text, mut torn) = (Vec::new(), false);
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("zst") => torn = zstd::stream::Decoder::new(&bytes[..])?.read_to_end(&mut text).is_err(),
            Some("gz") => torn = flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut text).is_err(),
            _ => text = bytes,
        }
        let mut lines = Vec::new();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if let Some(line) = line.strip_suffix(b"\n") {
                let value: Value = serde_json::from_slice(line)
                    .with_context(|| format!("{}: {}", path.display(), String::from_utf8_lossy(line)))?;
                ensure!(value.is_object(), "{}: a line that is no object", path.display());
                lines.push(value);
            } else {
                torn = true;
            }
        }
        Ok(Self { path: path.to_owned(), lines, torn })
    }
}

impl Output {
    /// Reads all of our files in a folder. A folder that is not there is empty.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn read(folder: &Path) -> Result<Self> {
        let Ok(entries) = fs::read_dir(folder) else { return Ok(Self::default()) };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.to_string_lossy().contains(".jsonl"));
        paths.sort();
        Ok(Self { files: paths.iter().map(|path| File::read(path)).collect::<Result<_>>()? })
    }

    /// By process id and session.
    ///
    /// # Errors
    /// A file does not begin with its header, or an operation comes before its communicator.
    pub fn sessions(&self) -> Result<BTreeMap<(u64, u64), Session>> {
        let mut files: Vec<(u64, u64, u64, &File)> = Vec::new();
        for file in self.files.iter().filter(|file| !file.lines.is_empty()) {
            let header = &file.lines[0];
            ensure!(header["type"] == "header", "{}: no header first", file.path.display());
            ensure!(header["format"] == "collander-jsonl" && header["version"] == 1, "{header}");
            files.push((number(header, "pid")?, number(header, "session")?, number(header, "file")?, file));
        }
        files.sort_by_key(|(pid, session, n, _)| (*pid, *session, *n));
        let mut sessions: BTreeMap<(u64, u64), Session> = BTreeMap::new();
        for (pid, session, _, file) in files {
            let session = sessions.entry((pid, session)).or_default();
            let mut described = Vec::new();
            for line in &file.lines {
                match line["type"].as_str() {
                    Some("header") if session.header.is_null() => session.header = line.clone(),
                    Some("communicator") => {
                        described.push(line["comm"].clone());
                        session.communicators.insert(number(line, "comm")?, line.clone());
                    }
                    Some("op") => {
                        ensure!(described.contains(&line["comm"]), "before its communicator: {line}");
                        let inferred = line["kind"] == "inferred_group";
                        if inferred { &mut session.inferred } else { &mut session.operations }.push(line.clone());
                    }
                    Some("stats") => session.stats.push((line.clone(), session.operations.len() as u64)),
                    _ => {}
                }
            }
        }
        Ok(sessions)
    }

    /// The only session.
    ///
    /// # Errors
    /// There is another number of them.
    pub fn session(&self) -> Result<Session> {
        let mut sessions: Vec<Session> = self.sessions()?.into_values().collect();
        ensure!(sessions.len() == 1, "{} sessions in {} files", sessions.len(), self.files.len());
        sessions.pop().context("a session")
    }
}

impl Session {
    /// The last stats record.
    ///
    /// # Errors
    /// There is none.
    pub fn last(&self) -> Result<&Value> {
        self.stats.last().map(|(stats, _)| stats).context("no stats record")
    }

    /// Checks that every stats record balances and agrees with the lines before it, and that the last is final, with nothing
    /// open. Files that were deleted make the lines fewer. Returns the last.
    ///
    /// # Errors
    /// What does not balance.
    pub fn check_final(&self) -> Result<&Value> {
        self.check_each()?;
        let last = self.last()?;
        ensure!(last["final"] == true, "not final: {last}");
        ensure!(last["open"] == 0, "open at the end: {last}");
        Ok(last)
    }

    /// Checks that every stats record balances and agrees with the lines before it.
    ///
    /// # Errors
    /// What does not.
    pub fn check_each(&self) -> Result<()> {
        let mut flush = 0;
        for (stats, before) in &self.stats {
            let total = |key: &str| number(&stats[key], "total");
            let sum = |key: &str| -> Result<u64> {
                let parts = stats[key].as_object().context("an object")?;
                Ok(parts.iter().filter(|(name, _)| *name != "total").filter_map(|(_, n)| n.as_u64()).sum())
            };
            for key in ["seen", "dropped", "sampled_out"] {
                ensure!(total(key)? == sum(key)?, "{key} does not add up: {stats}");
            }
            let (written, open, deleted) =
                (number(stats, "written")?, number(stats, "open")?, number(stats, "deleted")?);
            let accounted = written + total("dropped")? + total("sampled_out")? + open;
            ensure!(total("seen")? == accounted, "seen is not {accounted}: {stats}");
            ensure!(deleted > 0 || written == *before, "{before} lines stand before {stats}");
            ensure!(number(stats, "flush")? > flush, "flushes go back: {stats}");
            flush = number(stats, "flush")?;
        }
        Ok(())
    }

    /// A communicator by its hash and rank.
    #[must_use]
    pub fn communicator_of(&self, operation: &Value) -> Option<&Value> {
        self.communicators.get(&operation["comm"].as_u64()?)
    }

    /// A number of the last stats record: `["dropped", "ring_overrun"]`. 0 for an anomaly that is not there.
    ///
    /// # Errors
    /// There is no stats record, or no such number.
    pub fn count(&self, path: &[&str]) -> Result<u64> {
        let mut value = self.last()?;
        for key in path {
            value = &value[*key];
        }
        match value.as_u64() {
            Some(count) => Ok(count),
            None if path[0] == "anomalies" => Ok(0),
            None => bail!("no {path:?} in {}", self.last()?),
        }
    }
}

fn number(value: &Value, key: &str) -> Result<u64> {
    value[key].as_u64().with_context(|| format!("no number `{key}` in {value}"))
}
