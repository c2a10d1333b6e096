//! Where the configuration comes from.

use std::io::Read as _;
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
    let unreadable = |reason: String| ConfigError::Unreadable { path: path.display().to_string(), reason };
    let text = read_bounded(path).map_err(unreadable)?;
    load_from(Some((path, &text)), environment)
}

/// Longest configuration file, bytes.
const LONGEST: u64 = 1 << 20;

/// The text of a regular file. `init` reads it, in the job: a pipe that nobody writes, or a device without an end, must not
/// hold it up.
fn read_bounded(path: &Path) -> Result<String, String> {
    let meta = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !meta.is_file() {
        return Err("it is no regular file; name a TOML file".to_owned());
    }
    if meta.len() > LONGEST {
        return Err(format!("{} bytes are more than a configuration has ({LONGEST})", meta.len()));
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(LONGEST).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
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
