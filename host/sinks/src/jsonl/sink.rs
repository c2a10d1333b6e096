//! The sink: when to write, and what to count when it does not work.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use collander_config::{Job, JsonFormat, Jsonl, sanitise};
use collander_event::{Accounting, Operation};
use collander_pipeline::{Sink, SinkAccount, Snapshot};

use super::encode::{Encoder, suffix};
use super::files::{Files, Naming, Room};
use super::format_collander::{self, CollanderFormat, Identity, Stats, counts};
use super::format_inspector::InspectorFormat;
use super::storage::Storage;
use crate::{ProcessInfo, SharedAccount};

/// Text that asks for a flush before its time.
const FLUSH_TEXT: u64 = 1 << 20;
/// Longest wait after a failure before the disk is tried again.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Messages to the operator in a sink's life.
const MESSAGES: u32 = 16;
/// By how much a frame may grow when it is made again with other counts.
const SLACK: u64 = 64;

enum Format {
    Collander(CollanderFormat),
    Inspector(Box<InspectorFormat>),
}

/// Stats records beside Inspector's file, in one that is replaced at each flush.
#[derive(Default)]
struct Sidecar {
    path: Option<PathBuf>,
}

/// JSON Lines files, written on the I/O thread.
pub(crate) struct JsonlSink {
    identity: Identity,
    format: Format,
    encoder: Option<Encoder>,
    config: Jsonl,
    files: Files,
    sidecar: Sidecar,
    account: Arc<SharedAccount>,
    /// Text, then frame, of one flush.
    text: Vec<u8>,
    frame: Vec<u8>,
    /// Operations in the text that waits.
    pending: u64,
    flushes: u64,
    flushed_at: Instant,
    /// Text at which a flush is wanted; twice that is written without waiting for one.
    flush_text: usize,
    last_account: Option<Accounting>,
    /// Set while writing fails.
    retry_at: Option<Instant>,
    lost_since_failure: u64,
    told_deleted: bool,
    messages: VecDeque<String>,
    messages_left: u32,
}

impl JsonlSink {
    /// A sink; touches nothing on disk.
    pub fn new(name: &str, config: &Jsonl, job: &Job, process: &ProcessInfo, storage: Box<dyn Storage>) -> Self {
        let identity = Identity { sink: name.to_owned(), job: job.clone(), process: process.clone() };
        let directory = directory(&config.directory, job, process.pid);
        let host = file_name(&job.host);
        let (format, names) = match config.format {
            JsonFormat::Collander => {
                let stem = format!("{host}-{}-{}", process.pid, process.session);
                let extension = format!(".jsonl{}", suffix(config.compression));
                (Format::Collander(CollanderFormat::default()), (stem, extension, Naming::Numbered))
            }
            JsonFormat::Inspector40 | JsonFormat::Inspector42 => {
                let stem = format!("{host}-pid{}", process.pid);
                let extension = format!(".log{}", suffix(config.compression));
                let format = Format::Inspector(Box::new(InspectorFormat::new(config, &identity)));
                (format, (stem, extension, Naming::FirstPlain))
            }
        };
        Self {
            format,
            encoder: Encoder::new(config.compression, config.level).ok(),
            files: Files::new(storage, directory, names, (config.rotate_bytes, config.max_bytes)),
            sidecar: Sidecar::default(),
            account: Arc::default(),
            text: Vec::new(),
            frame: Vec::new(),
            pending: 0,
            flushes: 0,
            flushed_at: Instant::now(),
            flush_text: FLUSH_TEXT.min(config.max_bytes / 4).max(1) as usize,
            last_account: None,
            retry_at: None,
            lost_since_failure: 0,
            told_deleted: false,
            messages: VecDeque::new(),
            messages_left: MESSAGES,
            config: config.clone(),
            identity,
        }
    }

    /// The counters, for another thread.
    pub fn shared_account(&self) -> Arc<SharedAccount> {
        Arc::clone(&self.account)
    }

    /// Bytes of text that wait.
    pub fn pending_bytes(&self) -> usize {
        match &self.format {
            Format::Collander(format) => format.pending_bytes(),
            Format::Inspector(format) => format.pending_bytes(),
        }
    }

    fn waits_for_disk(&self) -> bool {
        self.retry_at.is_some_and(|at| Instant::now() < at)
    }

    /// Writes what is pending, with a stats record if there is a snapshot.
    fn write(&mut self, snapshot: Option<(&Snapshot, bool)>) {
        self.flushes += u64::from(snapshot.is_some());
        match self.try_write(snapshot) {
            Ok(()) => {
                self.account.written(self.pending);
                self.pending = 0;
                if self.retry_at.take().is_some() {
                    let lost = std::mem::take(&mut self.lost_since_failure);
                    self.tell(format!(
                        "writing works again: {}; {lost} operations were lost",
                        self.files.path().display()
                    ));
                }
                if let Some((snapshot, _)) = snapshot {
                    self.last_account = Some(snapshot.account(&self.account.read()));
                }
            }
            Err(error) => {
                if self.retry_at.is_none() {
                    let path = self.files.path();
                    self.tell(format!("cannot write {}: {error}; operations are dropped and counted", path.display()));
                }
                self.retry_at = Some(Instant::now() + self.config.flush.min(LONGEST_WAIT));
                self.last_account = None;
                self.lose();
            }
        }
        if let (Format::Inspector(_), Some((snapshot, last))) = (&self.format, snapshot) {
            self.write_sidecar(snapshot, last);
        }
    }

    fn try_write(&mut self, snapshot: Option<(&Snapshot, bool)>) -> io::Result<()> {
        // Twice at most: making room changes the counts, and can close the file.
        for _ in 0..3 {
            let vanished = self.files.open()?;
            let (number, new_file) = self.files.current().map_or((0, true), |(_, number, new)| (number, new));
            if new_file {
                self.new_file(vanished);
            }
            self.build(snapshot, number, new_file);
            if self.text.is_empty() {
                return Ok(());
            }
            if self.encoder.is_none() {
                self.encoder = Some(Encoder::new(self.config.compression, self.config.level)?);
            }
            if let Some(encoder) = &mut self.encoder {
                encoder.encode(&mut self.text, &mut self.frame)?;
            }
            match self.files.make_room(self.frame.len() as u64 + SLACK) {
                Room::Enough => {
                    self.files.append(&self.frame, self.pending)?;
                    match &mut self.format {
                        Format::Collander(format) => format.written(new_file),
                        Format::Inspector(format) => format.written(),
                    }
                    return Ok(());
                }
                Room::Deleted(operations) => {
                    self.account.deleted(operations);
                    if !self.told_deleted {
                        self.told_deleted = true;
                        let bound = self.config.max_bytes;
                        self.tell(format!(
                            "the oldest files are deleted to stay within max_bytes = {bound}, and counted"
                        ));
                    }
                }
                Room::Never => break,
            }
        }
        Err(io::Error::other("what one flush writes is larger than max_bytes"))
    }

    fn new_file(&mut self, vanished: bool) {
        if vanished {
            self.tell(format!("the file vanished; the next is {}", self.files.path().display()));
        }
        let first = match self.files.current() {
            Some((path, number, _)) if matches!(self.format, Format::Inspector(_)) => Some((path.to_owned(), number)),
            _ => None,
        };
        if let (Some((path, number)), None) = (first, &self.sidecar.path) {
            if number > 0 {
                self.tell(format!("an earlier file has Inspector's name; this one is {}", path.display()));
            }
            self.sidecar.path = Some(free_name(&path));
        }
    }

    fn build(&mut self, snapshot: Option<(&Snapshot, bool)>, number: u32, new_file: bool) {
        self.text.clear();
        let now = unix_ns();
        match &self.format {
            Format::Collander(format) => {
                let account = snapshot.map(|(snapshot, _)| snapshot.account(&after(&self.account.read())));
                let stats = match (snapshot, &account) {
                    (Some((snapshot, last)), Some(account)) => {
                        Some((self.identity.sink.as_str(), Stats { snapshot, account, flush: self.flushes, last }))
                    }
                    _ => None,
                };
                format.build(&mut self.text, new_file.then_some((&self.identity, number, now)), stats);
            }
            Format::Inspector(format) => format.build(&mut self.text, now),
        }
    }

    /// Counts what waits as lost.
    fn lose(&mut self) {
        match &mut self.format {
            Format::Collander(format) => format.lost(),
            Format::Inspector(format) => format.lost(),
        }
        self.account.write_failed(self.pending);
        self.lost_since_failure += self.pending;
        self.pending = 0;
    }

    fn write_sidecar(&mut self, snapshot: &Snapshot, last: bool) {
        let Some(path) = self.sidecar.path.clone() else { return };
        let account = snapshot.account(&self.account.read());
        self.text.clear();
        format_collander::header(&mut self.text, &self.identity, 0, unix_ns(), None);
        let stats = Stats { snapshot, account: &account, flush: self.flushes, last };
        format_collander::write_stats(&mut self.text, &self.identity.sink, &stats);
        let mut temporary = path.clone().into_os_string();
        temporary.push(".tmp");
        if let Err(error) = self.files.storage().replace(&path, Path::new(&temporary), &self.text)
            && self.retry_at.is_none()
        {
            self.tell(format!("cannot write {}: {error}", path.display()));
        }
    }

    fn tell(&mut self, message: String) {
        if self.messages_left > 0 {
            self.messages_left -= 1;
            self.messages.push_back(message);
        }
    }

    /// Whether a stats record would say something that the last one did not.
    fn has_news(&self, snapshot: &Snapshot) -> bool {
        if self.pending > 0 || self.pending_bytes() > 0 {
            return true;
        }
        let account = snapshot.account(&self.account.read());
        match &self.last_account {
            Some(last) => *last != account,
            None => account != Accounting::default(),
        }
    }
}

impl Sink for JsonlSink {
    fn name(&self) -> &str {
        &self.identity.sink
    }

    fn accept(&mut self, operation: &Operation) {
        let counted = counts(operation);
        match &mut self.format {
            Format::Collander(format) => format.accept(operation),
            Format::Inspector(format) => {
                if !counted {
                    return;
                }
                if !format.accept(operation) {
                    self.account.accepted();
                    return self.account.not_representable();
                }
            }
        }
        if counted {
            self.account.accepted();
            self.pending += 1;
        }
        if self.pending_bytes() >= 2 * self.flush_text {
            // A batch larger than the buffer: its lines go out now, the stats record follows with the flush.
            if self.waits_for_disk() { self.lose() } else { self.write(None) }
        }
    }

    fn flush(&mut self, snapshot: &Snapshot, last: bool) {
        self.flushed_at = Instant::now();
        if !last {
            if self.waits_for_disk() {
                if self.pending_bytes() >= self.flush_text {
                    self.lose();
                }
                return;
            }
            if !self.has_news(snapshot) {
                return;
            }
        }
        self.write(Some((snapshot, last)));
        if last {
            self.files.close();
        }
    }

    fn wants_flush(&self) -> bool {
        self.pending_bytes() >= self.flush_text || self.flushed_at.elapsed() >= self.config.flush
    }

    fn account(&self) -> SinkAccount {
        self.account.read()
    }

    fn take_message(&mut self) -> Option<String> {
        self.messages.pop_front()
    }

    fn location(&self) -> String {
        self.files.path().display().to_string()
    }
}

/// The account once what is pending is written.
fn after(account: &SinkAccount) -> SinkAccount {
    SinkAccount { written: account.written + account.pending, pending: 0, dropped: account.dropped }
}

/// The folder with its names replaced, absolute.
fn directory(template: &Path, job: &Job, pid: u32) -> PathBuf {
    let text = template.to_string_lossy();
    let path = if text.contains('{') {
        let host = sanitise(&job.host);
        PathBuf::from(text.replace("{job}", &job.id).replace("{host}", &host).replace("{pid}", &pid.to_string()))
    } else {
        template.to_owned()
    };
    std::path::absolute(&path).unwrap_or(path)
}

/// A host's name as part of a file's.
fn file_name(host: &str) -> String {
    host.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' }).collect()
}

/// A name for the stats beside `path` that no file has.
fn free_name(path: &Path) -> PathBuf {
    let named = |end: String| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let mut candidate = named(".stats.jsonl".to_owned());
    let mut number = 1;
    while candidate.exists() && number < 10_000 {
        candidate = named(format!(".stats-{number}.jsonl"));
        number += 1;
    }
    candidate
}

fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
