//! Exit codes of the program, documented in `docs/cli.md` and in `--help`.

use std::fmt;

/// What the program tells the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Ok = 0,
    /// Could not do what was asked.
    Failed = 1,
    /// The command line, a scenario or a configuration cannot be understood.
    Usage = 2,
    /// `doctor` found something that fails.
    Problems = 3,
    /// There is nothing to show: no such file, operation or process.
    NothingFound = 4,
    /// A worker of `sim` or `demo` crashed, hung or could not drive the library.
    WorkerFailed = 5,
    /// `show --check`: the accounting does not balance, or a file could not be read to its end.
    Unbalanced = 6,
}

impl Exit {
    /// All, in order.
    pub const ALL: [Self; 7] =
        [Self::Ok, Self::Failed, Self::Usage, Self::Problems, Self::NothingFound, Self::WorkerFailed, Self::Unbalanced];

    /// What it means, a line.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "done; also when the reader of our output went away",
            Self::Failed => "could not do what was asked; the message on stderr says why",
            Self::Usage => "the command line, a scenario or a configuration cannot be understood",
            Self::Problems => "`doctor` found at least one thing that fails",
            Self::NothingFound => "nothing to show: no such file, operation, process or black box",
            Self::WorkerFailed => "a worker of `sim` or `demo` crashed, hung or could not drive the library",
            Self::Unbalanced => "`show --check`: the accounting does not balance or a file is damaged",
        }
    }

    /// The table for `--help`.
    pub fn help() -> String {
        let mut text = String::from("Exit codes:\n");
        for exit in Self::ALL {
            text.push_str(&format!("  {}  {}\n", exit as u8, exit.meaning()));
        }
        text.push_str("\nColour appears only on a terminal, and not if NO_COLOR is set.");
        text
    }
}

/// An error with its own exit code.
#[derive(Debug)]
pub struct ExitError {
    /// The code.
    pub exit: Exit,
    message: String,
}

impl fmt::Display for ExitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ExitError {}

/// An error that makes the program end with `exit`.
pub fn error(exit: Exit, message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(ExitError { exit, message: message.into() })
}

/// The exit code that an error asks for.
pub fn code_of(error: &anyhow::Error) -> Exit {
    if error.chain().any(is_broken_pipe) {
        return Exit::Ok;
    }
    error.chain().find_map(|cause| cause.downcast_ref::<ExitError>()).map_or(Exit::Failed, |cause| cause.exit)
}

/// Whether an error only says that the reader of our output went away.
pub fn is_broken_pipe(cause: &(dyn std::error::Error + 'static)) -> bool {
    let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
    kind.or(json) == Some(std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_carry_their_code() {
        let plain = anyhow::anyhow!("x");
        assert_eq!(code_of(&plain), Exit::Failed);
        let usage = error(Exit::Usage, "bad").context("while reading");
        assert_eq!(code_of(&usage), Exit::Usage);
        let pipe = anyhow::Error::new(std::io::Error::from(std::io::ErrorKind::BrokenPipe)).context("writing");
        assert_eq!(code_of(&pipe), Exit::Ok);
    }

    #[test]
    fn codes_are_their_place() {
        for (place, exit) in Exit::ALL.into_iter().enumerate() {
            assert_eq!(place, exit as usize);
        }
    }
}
