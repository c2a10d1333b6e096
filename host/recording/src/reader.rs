//! Files to calls.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use crate::call::{Call, Header};
use crate::error::{Problem, RecordingError};
use crate::parse::{self, Parser};

const BUFFER_BYTES: usize = 256 << 10;

/// Goes through a recording call by call, in bounded memory.
pub struct Reader {
    path: PathBuf,
    source: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    line_number: u64,
    parser: Parser,
    header: Header,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("path", &self.path).field("line", &self.line_number).finish_non_exhaustive()
    }
}

impl Reader {
    /// Opens a recording, plain or gzip, and reads its header.
    ///
    /// # Errors
    /// The file cannot be opened, or its first line is not a header that this program knows.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let cannot_open = |source| RecordingError::Open { path: path.to_owned(), source };
        let mut file = BufReader::with_capacity(BUFFER_BYTES, File::open(path).map_err(cannot_open)?);
        let gzip = file.fill_buf().map_err(cannot_open)?.starts_with(&[0x1f, 0x8b]);
        let source: Box<dyn BufRead + Send> = if gzip {
            Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(file)))
        } else {
            Box::new(file)
        };
        let mut reader = Self {
            path: path.to_owned(),
            source,
            line: Vec::with_capacity(1024),
            line_number: 0,
            parser: Parser::default(),
            header: Header::default(),
        };
        if !reader.next_line()? {
            return Err(reader.wrong(Problem::Empty));
        }
        reader.header = parse::header(&reader.line).map_err(|problem| reader.wrong(problem))?;
        Ok(reader)
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Line that was read last, from 1.
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.line_number
    }

    fn wrong(&self, problem: Problem) -> RecordingError {
        RecordingError::Line { path: self.path.clone(), line: self.line_number.max(1), problem }
    }

    /// Reads the next line that is not blank; false at the end.
    fn next_line(&mut self) -> Result<bool, RecordingError> {
        loop {
            self.line.clear();
            let read = self.source.read_until(b'\n', &mut self.line).map_err(|source| RecordingError::Read {
                path: self.path.clone(),
                line: self.line_number + 1,
                source,
            })?;
            if read == 0 {
                return Ok(false);
            }
            self.line_number += 1;
            if !self.line.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    fn next_call(&mut self) -> Result<Option<Call>, RecordingError> {
        if !self.next_line()? {
            return Ok(None);
        }
        self.parser.call(&self.line).map(Some).map_err(|problem| self.wrong(problem))
    }
}

impl Iterator for Reader {
    type Item = Result<Call, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_call().transpose()
    }
}

/// A whole recording: the calls of one process.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Where it came from.
    pub path: PathBuf,
    /// The first line.
    pub header: Header,
    /// The calls, in the order of their entry.
    pub calls: Vec<Call>,
}

impl Recording {
    /// Reads a recording whole: about 300 bytes of memory a call.
    ///
    /// # Errors
    /// As [`Reader::open`], and any line that is not a call.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        let reader = Reader::open(path)?;
        let header = reader.header().clone();
        Ok(Self { path: path.to_owned(), header, calls: reader.collect::<Result<_, _>>()? })
    }
}
