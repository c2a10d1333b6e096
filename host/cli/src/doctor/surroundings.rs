//! The environment variables as NCCL sees them: the process's, then its configuration files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Variables and where they come from.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    variables: BTreeMap<String, (String, String)>,
}

impl Surroundings {
    /// Of this process: the environment wins, then NCCL_CONF_FILE or ~/.nccl.conf, then /etc/nccl.conf.
    pub fn of_process() -> Self {
        let environment = std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()));
        let mut own = Self::from_pairs(environment);
        let personal = own
            .get("NCCL_CONF_FILE")
            .map(PathBuf::from)
            .or_else(|| own.get("HOME").map(|home| Path::new(home).join(".nccl.conf")));
        for file in personal.into_iter().chain([PathBuf::from("/etc/nccl.conf")]) {
            if let Ok(text) = std::fs::read_to_string(&file) {
                own.add_file(&file, &text);
            }
        }
        own
    }

    /// From pairs, as an environment has them.
    pub fn from_pairs<N: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        let from = |(name, value): (N, V)| (name.into(), (value.into(), "the environment".to_owned()));
        Self { variables: pairs.into_iter().map(from).collect() }
    }

    /// NAME=VALUE lines of an nccl.conf; what is set already stays.
    pub fn add_file(&mut self, path: &Path, text: &str) {
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some((name, value)) = line.split_once('=') {
                let entry = (value.to_owned(), path.display().to_string());
                self.variables.entry(name.to_owned()).or_insert(entry);
            }
        }
    }

    /// A value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(|(value, _)| value.as_str())
    }

    /// Where a value comes from.
    pub fn source(&self, name: &str) -> &str {
        self.variables.get(name).map_or("", |(_, source)| source)
    }

    /// Names that begin with a prefix.
    pub fn names(&self, prefix: &str) -> Vec<&str> {
        self.variables.keys().filter(|name| name.starts_with(prefix)).map(String::as_str).collect()
    }
}
