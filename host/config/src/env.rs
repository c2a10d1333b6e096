//! Environment variables: every key, and the arrays as a whole.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use toml::de::DeValue;

use crate::error::Problem;
use crate::keys::{self, ARRAYS, KEYS, Kind, OTHER_VARIABLES, PREFIX, TEST_PREFIX};
use crate::raw::{self, Leaf, Raw, Section, Source, Value};

/// The environment, copied: names to values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// A copy of this process's.
    #[must_use]
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// A variable's value, if it is set.
    #[must_use]
    pub fn os(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// A variable's value, if it is set, valid UTF-8 and not empty.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.os(name)?.to_str().filter(|text| !text.is_empty())
    }

    /// Names that begin with our prefix.
    fn ours(&self) -> impl Iterator<Item = (String, &OsStr)> {
        self.0
            .iter()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.as_os_str()))
            .filter(|(name, _)| name.starts_with(PREFIX) && !name.starts_with(TEST_PREFIX))
    }
}

impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// What the environment says; the scalar `COLLANDER_SINK_…` apart, since they change a sink that may come from the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct FromEnvironment {
    /// Sections and arrays.
    pub raw: Raw,
    /// `COLLANDER_SINK_…`.
    pub first_sink: Section,
}

/// Every variable that is understood, in the order of the table.
pub fn variables() -> Vec<String> {
    let scalars = KEYS.iter().filter_map(keys::Key::variable);
    let arrays = ARRAYS.iter().map(|array| array_variable(array));
    scalars.chain(arrays).chain(OTHER_VARIABLES.iter().map(|(name, _)| (*name).to_owned())).collect()
}

/// Variable of an array: `COLLANDER_SAMPLE`.
pub fn array_variable(array: &str) -> String {
    format!("{PREFIX}{}", array.to_uppercase())
}

/// Reads the variables with our prefix.
pub(crate) fn read(environment: &Environment, problems: &mut Vec<Problem>) -> FromEnvironment {
    let mut read = FromEnvironment::default();
    for (variable, value) in environment.ours() {
        let key = KEYS.iter().find(|key| key.variable().as_deref() == Some(&variable));
        let array = ARRAYS.into_iter().find(|array| array_variable(array) == variable);
        if OTHER_VARIABLES.iter().any(|(name, _)| *name == variable) {
            continue;
        }
        if key.is_none() && array.is_none() {
            let known = variables();
            let what = match keys::nearest(&variable, known.iter().map(String::as_str)) {
                Some(near) => format!("no such setting; did you mean {near}?"),
                None => "no such setting; docs/reference/config.md lists all".to_owned(),
            };
            problems.push(Problem { place: variable, what });
            continue;
        }
        let Some(text) = value.to_str() else {
            problems.push(Problem { place: variable, what: format!("{value:?} is not valid UTF-8") });
            continue;
        };
        if let Some(array) = array {
            let text = format!("{array} = {text}");
            let source = Source { name: &variable, text: &text, lines: false };
            let mut part = raw::read(&source, problems);
            read.raw.arrays.append(&mut part.arrays);
        } else if let Some(key) = key {
            match convert(key.kind, text) {
                Ok(value) => {
                    let section = match key.section {
                        "sink" => &mut read.first_sink,
                        name => read.raw.sections.entry(name).or_default(),
                    };
                    section.values.insert(key.name, Leaf { value, place: variable });
                }
                Err(what) => problems.push(Problem { place: variable, what }),
            }
        }
    }
    read
}

/// A variable's text as a value: lists `a,b` or a TOML list, tables `a=b,c=d` or a TOML table, anything else text.
fn convert(kind: Kind, text: &str) -> Result<Value, String> {
    let trimmed = text.trim();
    let structured = matches!(kind, Kind::Texts | Kind::Choices(_) | Kind::Range | Kind::Sizes | Kind::TextTable);
    if structured && trimmed.starts_with(['[', '{']) {
        return match DeValue::parse(trimmed) {
            Ok(value) => Ok(raw::convert(value.get_ref())),
            Err(error) => Err(format!("{text:?} is not valid TOML: {}", error.message())),
        };
    }
    let parts = || trimmed.split(',').map(str::trim).filter(|part| !part.is_empty());
    match kind {
        Kind::Texts | Kind::Choices(_) => Ok(Value::List(parts().map(|part| Value::Text(part.to_owned())).collect())),
        Kind::TextTable => parts()
            .map(|part| match part.split_once('=') {
                Some((name, value)) => Ok((name.trim().to_owned(), Value::Text(value.trim().to_owned()))),
                None => Err(format!("{part:?}: expected name=value, with commas between them")),
            })
            .collect::<Result<Vec<_>, _>>()
            .map(Value::Table),
        _ => Ok(Value::Text(text.to_owned())),
    }
}
