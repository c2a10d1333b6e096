//! What can be wrong with a configuration.

use std::fmt;

/// One thing that is wrong: where, what it says there, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `FILE:LINE`, or the environment variable.
    pub place: String,
    /// What is wrong, with the value and what was expected.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Why there is no configuration. Its text is one line and names every problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file that `COLLANDER_CONFIG` names cannot be read.
    #[error("COLLANDER_CONFIG: cannot read {path}: {reason}")]
    Unreadable {
        /// The path as given.
        path: String,
        /// The operating system's reason.
        reason: String,
    },
    /// Keys or values are wrong. Never empty.
    #[error("{}", join(.0))]
    Invalid(Vec<Problem>),
}

impl ConfigError {
    /// The problems one by one, as text.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Unreadable { .. } => vec![self.to_string()],
            Self::Invalid(problems) => problems.iter().map(ToString::to_string).collect(),
        }
    }
}

fn join(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
