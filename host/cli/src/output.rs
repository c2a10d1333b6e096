//! How we write: stdout is data, stderr is messages, colour only where someone sees it.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How this run writes.
#[derive(Clone, Copy, Debug)]
pub struct Ui {
    /// Data as JSON.
    pub json: bool,
    /// Paint for stdout.
    pub paint: Paint,
    /// Columns that a table may take; None: as many as it needs.
    pub width: Option<usize>,
    /// Whether a person watches stderr (progress bars).
    pub progress: bool,
}

impl Ui {
    /// From the options and the environment.
    pub fn new(json: bool, color: ColorChoice) -> Self {
        let terminal = io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let on = match color {
            ColorChoice::Auto => terminal && !no_color && !dumb,
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        };
        let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        let width = if terminal { columns.or_else(terminal_columns).or(Some(80)) } else { columns };
        Self { json, paint: Paint { on }, width, progress: io::stderr().is_terminal() && !json && !dumb }
    }

    /// Writes a value to stdout as JSON, indented, with a line end.
    pub fn write_json(&self, value: &impl Serialize) -> Result<()> {
        let mut out = stdout();
        serde_json::to_writer_pretty(&mut out, value)?;
        out.write_all(b"\n")?;
        out.flush()?;
        Ok(())
    }
}

/// Buffered stdout. Flush it at the end: errors on drop are lost.
pub fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// A message on stderr. A stderr that cannot be written to is no reason to fail.
pub fn message(text: impl AsRef<str>) {
    let _ = writeln!(io::stderr().lock(), "collander: {}", text.as_ref());
}

fn terminal_columns() -> Option<usize> {
    rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| size.ws_col as usize).filter(|columns| *columns > 0)
}

/// Colours, or none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paint {
    /// Whether to colour.
    pub on: bool,
}

impl Paint {
    /// No colours.
    #[cfg(test)]
    pub const PLAIN: Self = Self { on: false };

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Headings.
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// What matters less.
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// What is right.
    pub fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }

    /// What deserves a look.
    pub fn yellow(self, text: &str) -> String {
        self.wrap("33", text)
    }

    /// What is wrong.
    pub fn red(self, text: &str) -> String {
        self.wrap("31", text)
    }
}

/// Text from a file or a process, safe to show on a terminal: control characters become U+FFFD.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
