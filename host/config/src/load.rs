//! Where the configuration comes from.

use std::path::Path;

use crate::env::{self, Environment};
use crate::error::ConfigError;
use crate::merge::merge;
use crate::raw::{self, Raw, Source};
use crate::validate::validate;
use crate::validated::Config;

/// The configuration and what the operator should know about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// What holds.
    pub config: Config,
    /// What is done otherwise than Inspector's variables ask; empty without them.
    pub notes: Vec<String>,
}

/// Reads the file that `COLLANDER_CONFIG` names, if it names one, and this process's environment.
///
/// # Errors
/// The file cannot be read, or keys or values are wrong: every one is named.
pub fn load() -> Result<Config, ConfigError> {
    load_with_notes(&Environment::of_process()).map(|loaded| loaded.config)
}

/// As [`load`], from a given environment, with notes.
///
/// # Errors
/// As [`load`].
pub fn load_with_notes(environment: &Environment) -> Result<Loaded, ConfigError> {
    let Some(path) = environment.os("COLLANDER_CONFIG").filter(|path| !path.is_empty()).map(Path::new) else {
        return load_from(None, environment);
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| ConfigError::Unreadable { path: path.display().to_string(), reason: error.to_string() })?;
    load_from(Some((path, &text)), environment)
}

/// From the text of a file, if there is one, and an environment. The path is for messages only.
///
/// # Errors
/// Keys or values are wrong: every one is named.
pub fn load_from(file: Option<(&Path, &str)>, environment: &Environment) -> Result<Loaded, ConfigError> {
    let mut problems = Vec::new();
    let from_file = match file {
        Some((path, text)) => {
            let name = path.display().to_string();
            raw::read(&Source { name: &name, text, lines: true }, &mut problems)
        }
        None => Raw::default(),
    };
    let merged = merge(from_file, env::read(environment, &mut problems));
    let (config, notes) = validate(&merged, environment, &mut problems);
    if problems.is_empty() { Ok(Loaded { config, notes }) } else { Err(ConfigError::Invalid(problems)) }
}
