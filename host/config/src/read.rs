//! Values of the kinds in the table, from what was written. Every problem names the place, the value and what was expected.

use std::time::Duration;

use collander_event::{Collective, Detail};

use crate::error::Problem;
use crate::keys::{self, Key, Kind};
use crate::raw::{Leaf, Section, Value};
use crate::units;
use crate::validated::Keep;

/// Reads one section and collects what is wrong.
pub(crate) struct Reader<'r> {
    /// The section's name in the table.
    pub section: &'static str,
    /// What was written; empty if nothing was.
    pub values: &'r Section,
    /// What is wrong so far.
    pub problems: &'r mut Vec<Problem>,
}

impl Reader<'_> {
    fn leaf(&self, name: &str) -> Option<(&'static Key, &Leaf)> {
        let key = keys::find(self.section, name)?;
        Some((key, self.values.values.get(key.name)?))
    }

    /// Whether the key was written.
    pub fn has(&self, name: &str) -> bool {
        self.leaf(name).is_some()
    }

    /// Where the key stands, or its table.
    pub fn place(&self, name: &str) -> String {
        self.leaf(name).map_or_else(|| self.values.place.clone(), |(_, leaf)| leaf.place.clone())
    }

    /// Notes a problem with a key.
    pub fn problem(&mut self, name: &str, what: String) {
        let place = self.place(name);
        self.problems.push(Problem { place, what });
    }

    /// The value that `parse` makes of a key, None if it was not written or is wrong, which is noted.
    fn get<T>(&mut self, name: &str, parse: impl FnOnce(&Key, &Value) -> Result<T, String>) -> Option<T> {
        let (key, leaf) = self.leaf(name)?;
        match parse(key, &leaf.value) {
            Ok(value) => Some(value),
            Err(expected) => {
                let what = format!("{} = {}: expected {expected}", key.path(), leaf.value.show());
                self.problem(name, what);
                None
            }
        }
    }

    /// true or false.
    pub fn bool(&mut self, name: &str) -> Option<bool> {
        self.get(name, |_, value| match value {
            Value::Bool(value) => Ok(*value),
            Value::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Ok(true),
                "false" | "0" | "no" | "off" => Ok(false),
                _ => Err("true or false".to_owned()),
            },
            _ => Err("true or false".to_owned()),
        })
    }

    /// A span of time in the key's range.
    pub fn duration(&mut self, name: &str) -> Option<Duration> {
        self.get(name, |key, value| {
            let Kind::Duration { min, max, zero } = key.kind else { return Err("a span of time".to_owned()) };
            let show = |ns| units::show_duration(Duration::from_nanos(ns));
            let expected = || {
                format!(
                    "a span of time like \"10ms\", {} to {}{}",
                    show(min),
                    show(max),
                    if zero { ", or 0" } else { "" }
                )
            };
            let span = match value {
                Value::Integer(number) => u64::try_from(*number).ok().and_then(|n| units::duration(&n.to_string())),
                Value::Float(number) => units::duration(&number.to_string()),
                Value::Text(text) => units::duration(text),
                _ => None,
            };
            let span = span.ok_or_else(expected)?;
            let ns = span.as_nanos();
            let fits = (ns >= u128::from(min) && ns <= u128::from(max)) || (zero && ns == 0);
            if fits { Ok(span) } else { Err(expected()) }
        })
    }

    /// A size in the key's range.
    pub fn bytes(&mut self, name: &str) -> Option<u64> {
        self.get(name, |key, value| {
            let Kind::Bytes { min, max, power_of_two } = key.kind else { return Err("a size".to_owned()) };
            let range = format!("{} to {}", units::show_bytes(min), units::show_bytes(max));
            let size = size(value).filter(|size| *size >= min && *size <= max);
            let size = size.ok_or_else(|| format!("a size like \"4MiB\", {range}"))?;
            if power_of_two && !size.is_power_of_two() {
                return Err(format!("a power of two ({range}), {}", nearest_powers(size, units::show_bytes)));
            }
            Ok(size)
        })
    }

    /// A whole number in the key's range.
    pub fn integer(&mut self, name: &str) -> Option<u64> {
        self.get(name, |key, value| {
            let Kind::Integer { min, max } = key.kind else { return Err("a whole number".to_owned()) };
            integer(value).filter(|n| *n >= min && *n <= max).ok_or_else(|| format!("a whole number, {min} to {max}"))
        })
    }

    /// Text.
    pub fn text(&mut self, name: &str) -> Option<String> {
        self.get(name, |_, value| match value {
            Value::Text(text) if !text.trim().is_empty() => Ok(text.clone()),
            Value::Integer(number) => Ok(number.to_string()),
            _ => Err("text that is not empty".to_owned()),
        })
    }

    /// One text or more.
    pub fn texts(&mut self, name: &str) -> Option<Vec<String>> {
        self.get(name, |_, value| {
            texts(value).filter(|list| !list.is_empty()).ok_or_else(|| "a text or a list of texts".to_owned())
        })
    }

    /// Globs: texts with closed brackets.
    pub fn globs(&mut self, name: &str) -> Vec<String> {
        let globs = self.texts(name).unwrap_or_default();
        if let Some(open) = globs.iter().find(|glob| glob.rfind('[').is_some_and(|at| !glob[at..].contains(']'))) {
            let what = format!("{open:?}: expected a `]` for its `[`");
            self.problem(name, what);
        }
        globs
    }

    /// One of the key's words; its index.
    pub fn choice(&mut self, name: &str) -> Option<usize> {
        self.get(name, |key, value| {
            let Kind::Choice(words) = key.kind else { return Err("a word".to_owned()) };
            let Value::Text(text) = value else { return Err(format!("one of: {}", words.join(", "))) };
            words
                .iter()
                .position(|word| word.eq_ignore_ascii_case(text.trim()))
                .ok_or_else(|| format!("one of: {}", words.join(", ")))
        })
    }

    /// A detail, with what it implies.
    pub fn detail(&mut self, name: &str) -> Option<Detail> {
        const BITS: [Detail; 8] = [
            Detail::CHANNELS,
            Detail::PROXY_OPERATIONS,
            Detail::PROXY_STEPS,
            Detail::PHASES,
            Detail::CHANNEL_LIST,
            Detail::PROXY_LIST,
            Detail::STEP_LIST,
            Detail::API,
        ];
        self.get(name, |_, value| {
            let expected = || format!("a list of: {}", keys::DETAILS.join(", "));
            let mut detail = Detail::default();
            for word in texts(value).ok_or_else(expected)? {
                let at =
                    keys::DETAILS.iter().position(|known| known.eq_ignore_ascii_case(&word)).ok_or_else(expected)?;
                detail = detail.union(BITS[at]);
            }
            Ok(detail.completed())
        })
    }

    /// Functions.
    pub fn collectives(&mut self, name: &str) -> Option<Vec<Collective>> {
        self.get(name, |_, value| {
            let expected = || {
                let known: Vec<&str> = Collective::ALL[1..].iter().map(|c| c.name()).collect();
                format!("a function or a list of them: {}", known.join(", "))
            };
            texts(value)
                .filter(|list| !list.is_empty())
                .ok_or_else(expected)?
                .iter()
                .map(|text| match Collective::from_text(text) {
                    Collective::Unknown => Err(expected()),
                    known => Ok(known),
                })
                .collect()
        })
    }

    /// Whole numbers from, to, both inclusive.
    pub fn range(&mut self, name: &str) -> Option<(u32, u32)> {
        self.get(name, |_, value| {
            let expected = || "a number, [from, to], \"2..8\", \"2..\" or \"..8\" (both ends belong to it)".to_owned();
            let number = |value: &Value| integer(value).and_then(|n| u32::try_from(n).ok());
            let (from, to) = match value {
                Value::List(list) if list.len() == 2 => (number(&list[0]), number(&list[1])),
                Value::Text(text) if text.contains("..") => ends(text, |end| end.parse().ok(), 0, u32::MAX),
                value => (number(value), number(value)),
            };
            match (from, to) {
                (Some(from), Some(to)) if from <= to => Ok((from, to)),
                _ => Err(expected()),
            }
        })
    }

    /// Sizes from, inclusive, to, exclusive.
    pub fn sizes(&mut self, name: &str) -> Option<(u64, u64)> {
        self.get(name, |_, value| {
            let expected = || {
                "\"1MiB..\", \"..64KiB\", \"1KiB..1MiB\" or [from, to] (the upper end does not belong to it)".to_owned()
            };
            let (from, to) = match value {
                Value::List(list) if list.len() == 2 => (size(&list[0]), size(&list[1])),
                Value::Text(text) if text.contains("..") => ends(text, units::bytes, 0, u64::MAX),
                value => (size(value), size(value).and_then(|size| size.checked_add(1))),
            };
            match (from, to) {
                (Some(from), Some(to)) if from < to => Ok((from, to)),
                _ => Err(expected()),
            }
        })
    }

    /// `keep`, `one_in` and `per_second` together.
    pub fn keep(&mut self) -> Keep {
        let given: Vec<&str> = ["keep", "one_in", "per_second"].into_iter().filter(|name| self.has(name)).collect();
        if given.len() > 1 {
            self.problem(given[1], format!("{} and {} exclude each other", given[0], given[1]));
        }
        if let Some(n) = self.integer("one_in") {
            return self.one_in("one_in", n).unwrap_or(Keep::All);
        }
        if let Some(rate) = self.integer("per_second") {
            return Keep::PerSecond(u32::try_from(rate).unwrap_or(u32::MAX));
        }
        let keep = self.get("keep", |_, value| {
            let expected = || "\"all\", \"none\", \"1/16\" or \"100/s\"".to_owned();
            let Value::Text(text) = value else { return Err(expected()) };
            let text = text.trim();
            match text.split_once('/') {
                None if text.eq_ignore_ascii_case("all") => Ok((Keep::All, None)),
                None if text.eq_ignore_ascii_case("none") => Ok((Keep::None, None)),
                Some(("1", n)) if n.trim().parse::<u64>().is_ok_and(|n| (1..=1 << 40).contains(&n)) => {
                    Ok((Keep::All, n.trim().parse().ok()))
                }
                Some((rate, "s")) => match rate.trim().parse() {
                    Ok(rate) if rate > 0 => Ok((Keep::PerSecond(rate), None)),
                    _ => Err(expected()),
                },
                _ => Err(expected()),
            }
        });
        match keep {
            Some((_, Some(n))) => self.one_in("keep", n).unwrap_or(Keep::All),
            Some((keep, None)) => keep,
            None => Keep::All,
        }
    }

    fn one_in(&mut self, name: &str, n: u64) -> Option<Keep> {
        if !n.is_power_of_two() {
            let powers = nearest_powers(n, |n| n.to_string());
            self.problem(name, format!("{}.{name}: one in {n}: expected a power of two, {powers}", self.section));
            return None;
        }
        Some(if n == 1 { Keep::All } else { Keep::OneIn(n.trailing_zeros() as u8) })
    }

    /// Names with texts.
    pub fn text_table(&mut self, name: &str) -> Option<Vec<(String, String)>> {
        self.get(name, |_, value| {
            let expected = || "a table of texts: { name = \"value\" }".to_owned();
            let Value::Table(table) = value else { return Err(expected()) };
            table
                .iter()
                .map(|(name, value)| match value {
                    Value::Text(text) => Ok((name.clone(), text.clone())),
                    Value::Integer(number) => Ok((name.clone(), number.to_string())),
                    Value::Bool(value) => Ok((name.clone(), value.to_string())),
                    _ => Err(expected()),
                })
                .collect()
        })
    }
}

fn size(value: &Value) -> Option<u64> {
    match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        Value::Text(text) => units::bytes(text),
        _ => None,
    }
}

fn integer(value: &Value) -> Option<u64> {
    match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        Value::Text(text) => text.trim().replace('_', "").parse().ok(),
        _ => None,
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Text(text) if !text.is_empty() => Some(vec![text.clone()]),
        Value::List(list) => list
            .iter()
            .map(|element| match element {
                Value::Text(text) if !text.is_empty() => Some(text.clone()),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}

fn ends<T>(text: &str, parse: impl Fn(&str) -> Option<T>, least: T, most: T) -> (Option<T>, Option<T>) {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let (from, to) = (from.trim(), to.trim_start_matches('=').trim());
    let from = if from.is_empty() { Some(least) } else { parse(from) };
    let to = if to.is_empty() { Some(most) } else { parse(to) };
    (from, to)
}

fn nearest_powers(n: u64, show: impl Fn(u64) -> String) -> String {
    let below = 1 << (63 - n.max(1).leading_zeros());
    format!("the nearest are {} and {}", show(below), show(below << 1))
}
