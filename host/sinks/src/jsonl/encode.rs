//! One flush as one frame.

use std::io::{self, Write};

use collander_config::Compression;

/// Compresses whole frames; keeps its tables between them.
pub(crate) enum Encoder {
    /// As it is.
    Plain,
    /// A gzip member.
    Gzip(flate2::Compression),
    /// A zstd frame, with checksum.
    Zstd(Box<zstd::bulk::Compressor<'static>>),
}

impl Encoder {
    /// An encoder; None if zstd has no memory for one.
    pub fn new(compression: Compression, level: i32) -> io::Result<Self> {
        Ok(match compression {
            Compression::Plain => Self::Plain,
            Compression::Gzip => Self::Gzip(flate2::Compression::new(level.clamp(1, 9).unsigned_abs())),
            Compression::Zstd => {
                let mut compressor = zstd::bulk::Compressor::new(level.clamp(1, 19))?;
                compressor.include_checksum(true)?;
                Self::Zstd(Box::new(compressor))
            }
        })
    }

    /// Makes a frame of `text` in `frame`, replacing what is there.
    pub fn encode(&mut self, text: &mut Vec<u8>, frame: &mut Vec<u8>) -> io::Result<()> {
        frame.clear();
        match self {
            Self::Plain => std::mem::swap(text, frame),
            Self::Gzip(level) => {
                let mut encoder = flate2::write::GzEncoder::new(std::mem::take(frame), *level);
                encoder.write_all(text)?;
                *frame = encoder.finish()?;
            }
            Self::Zstd(compressor) => {
                frame.reserve(zstd::zstd_safe::compress_bound(text.len()));
                compressor.compress_to_buffer(text.as_slice(), frame)?;
            }
        }
        Ok(())
    }
}

/// What follows the name of a file.
pub(crate) fn suffix(compression: Compression) -> &'static str {
    match compression {
        Compression::Plain => "",
        Compression::Gzip => ".gz",
        Compression::Zstd => ".zst",
    }
}
