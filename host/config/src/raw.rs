//! The configuration as it was written: known keys, values not yet checked, each with the place where it stands.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::Problem;
use crate::keys::{self, ARRAYS, KEYS};

/// A value as TOML has it, or as text from a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// true or false.
    Bool(bool),
    /// A list.
    List(Vec<Value>),
    /// A table.
    Table(Vec<(String, Value)>),
}

impl Value {
    /// As one would write it, for messages.
    pub fn show(&self) -> String {
        match self {
            Self::Text(text) => format!("{text:?}"),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Bool(value) => value.to_string(),
            Self::List(list) => format!("[{}]", list.iter().map(Self::show).collect::<Vec<_>>().join(", ")),
            Self::Table(table) => {
                format!(
                    "{{{}}}",
                    table.iter().map(|(k, v)| format!("{k} = {}", v.show())).collect::<Vec<_>>().join(", ")
                )
            }
        }
    }
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The value.
    pub value: Value,
    /// `FILE:LINE`, or the variable.
    pub place: String,
}

/// One table: name of a key to its value.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Where the table begins.
    pub place: String,
    /// Values by the key's name.
    pub values: BTreeMap<&'static str, Leaf>,
}

/// Everything that one source (a file, the environment) says.
#[derive(Clone, Debug, Default)]
pub struct Raw {
    /// Plain sections by name; "" is the top.
    pub sections: BTreeMap<&'static str, Section>,
    /// `[[label]]`, `[[sample]]`, `[[sink]]`, if the source has them.
    pub arrays: BTreeMap<&'static str, Vec<Section>>,
}

/// Where text stands, to name lines.
#[derive(Clone, Copy, Debug)]
pub struct Source<'s> {
    /// Path of a file, or a variable.
    pub name: &'s str,
    /// Its text.
    pub text: &'s str,
    /// Whether lines are named too.
    pub lines: bool,
}

impl Source<'_> {
    fn place(&self, at: usize) -> String {
        if !self.lines {
            return self.name.to_owned();
        }
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        format!("{}:{}", self.name, 1 + before.iter().filter(|byte| **byte == b'\n').count())
    }
}

/// Reads TOML text. What is wrong with its keys goes to `problems`; the rest is still returned.
pub fn read(source: &Source<'_>, problems: &mut Vec<Problem>) -> Raw {
    let mut raw = Raw::default();
    let table = match DeTable::parse(source.text) {
        Ok(table) => table.into_inner(),
        Err(error) => {
            let place = source.place(error.span().map_or(0, |span| span.start));
            problems.push(Problem { place, what: format!("not valid TOML: {}", error.message()) });
            return raw;
        }
    };
    for (key, value) in table {
        let place = source.place(key.span().start);
        let name = key.into_inner();
        if let Some(array) = ARRAYS.into_iter().find(|array| *array == name) {
            read_array(source, array, value, place, &mut raw, problems);
        } else if let Some(section) = KEYS.iter().map(|key| key.section).find(|s| !s.is_empty() && *s == name) {
            match value.into_inner() {
                DeValue::Table(table) => {
                    let read = read_section(source, section, table, place, problems);
                    raw.sections.insert(section, read);
                }
                other => problems.push(Problem {
                    place,
                    what: format!("`{section}` is {}; expected a table: [{section}]", other.type_str()),
                }),
            }
        } else if let Some(key) = keys::find("", &name) {
            let leaf = Leaf { value: convert(value.get_ref()), place };
            raw.sections.entry("").or_default().values.insert(key.name, leaf);
        } else {
            let known: Vec<&str> = top_names().collect();
            problems.push(unknown(place, &name, "at the top", &known));
        }
    }
    raw
}

fn read_array(
    source: &Source<'_>,
    array: &'static str,
    value: Spanned<DeValue<'_>>,
    place: String,
    raw: &mut Raw,
    problems: &mut Vec<Problem>,
) {
    let DeValue::Array(elements) = value.into_inner() else {
        let what = format!("`{array}` is no list of tables; expected [[{array}]]");
        return problems.push(Problem { place, what });
    };
    let mut sections = Vec::new();
    for element in elements.into_iter() {
        let place = source.place(element.span().start);
        match element.into_inner() {
            DeValue::Table(table) => sections.push(read_section(source, array, table, place, problems)),
            other => problems.push(Problem {
                place,
                what: format!("an entry of `{array}` is {}; expected a table", other.type_str()),
            }),
        }
    }
    raw.arrays.insert(array, sections);
}

fn read_section(
    source: &Source<'_>,
    section: &'static str,
    table: DeTable<'_>,
    place: String,
    problems: &mut Vec<Problem>,
) -> Section {
    let mut read = Section { place, values: BTreeMap::new() };
    for (key, value) in table {
        let place = source.place(key.span().start);
        let name = key.into_inner();
        match keys::find(section, &name) {
            None => {
                let known: Vec<&str> = KEYS.iter().filter(|key| key.section == section).map(|key| key.name).collect();
                problems.push(unknown(place, &name, &format!("in [{section}]"), &known));
            }
            Some(key) => {
                if read
                    .values
                    .insert(key.name, Leaf { value: convert(value.get_ref()), place: place.clone() })
                    .is_some()
                {
                    problems.push(Problem { place, what: format!("`{}` is there twice", key.name) });
                }
            }
        }
    }
    read
}

fn unknown(place: String, name: &str, at: &str, known: &[&str]) -> Problem {
    let hint =
        keys::nearest(name, known.iter().copied()).map_or(String::new(), |near| format!("did you mean `{near}`? "));
    Problem { place, what: format!("unknown key `{name}` {at}; {hint}expected one of: {}", known.join(", ")) }
}

/// Names that may stand at the top of a file.
pub fn top_names() -> impl Iterator<Item = &'static str> {
    let mut seen = Vec::new();
    KEYS.iter().map(|key| if key.section.is_empty() { key.name } else { key.section }).filter(move |name| {
        let new = !seen.contains(name);
        seen.push(*name);
        new
    })
}

/// TOML's value as ours; a number that does not fit stays text.
pub fn convert(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(value) => Value::Integer(value),
            Err(_) => Value::Text(number.as_str().to_owned()),
        },
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(value) => Value::Float(value),
            Err(_) => Value::Text(number.as_str().to_owned()),
        },
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(time) => Value::Text(time.to_string()),
        DeValue::Array(list) => Value::List(list.iter().map(|element| convert(element.get_ref())).collect()),
        DeValue::Table(table) => Value::Table(
            table.iter().map(|(key, value)| (key.get_ref().to_string(), convert(value.get_ref()))).collect(),
        ),
    }
}
