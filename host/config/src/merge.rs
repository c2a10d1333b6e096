//! Precedence: a variable beats the file.

use crate::env::FromEnvironment;
use crate::raw::{Raw, Section, Value};

/// The file's values with the environment's over them. An array from a variable replaces the file's whole array; then the
/// `COLLANDER_SINK_…` scalars change its first JSON Lines sink, which is made if there is none.
pub(crate) fn merge(mut file: Raw, environment: FromEnvironment) -> Raw {
    for (name, section) in environment.raw.sections {
        overlay(file.sections.entry(name).or_default(), section);
    }
    file.arrays.extend(environment.raw.arrays);
    if !environment.first_sink.values.is_empty() {
        let sinks = file.arrays.entry("sink").or_default();
        match sinks.iter_mut().find(|sink| is_jsonl(sink)) {
            Some(sink) => overlay(sink, environment.first_sink),
            None => {
                let place =
                    environment.first_sink.values.values().next().map_or(String::new(), |leaf| leaf.place.clone());
                sinks.push(Section { place, ..environment.first_sink });
            }
        }
    }
    file
}

fn is_jsonl(sink: &Section) -> bool {
    sink.values.get("type").is_none_or(|leaf| leaf.value == Value::Text("jsonl".to_owned()))
}

fn overlay(below: &mut Section, above: Section) {
    below.values.extend(above.values);
}
