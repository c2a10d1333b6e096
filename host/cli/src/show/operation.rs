//! `show --op`: one operation in full.

use std::fmt::Write as _;
use std::fs::File;
use std::str::FromStr;

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::{Map, Value};

use super::files::{Found, Kind};
use super::lines::{Lines, open};
use super::record::{self, Line};
use super::text::{Column, table};
use crate::output::{Ui, printable};
use crate::units;

/// Which operation: `ID` or `PID:ID`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pid: Option<u32>,
    id: u64,
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (pid, id) = match text.split_once(':') {
            Some((pid, id)) => (Some(pid.parse().map_err(|_| format!("`{pid}` is no process id; write PID:ID"))?), id),
            None => (None, text),
        };
        let id = id.parse().map_err(|_| format!("`{id}` is no operation id: a number, as in the key `id`"))?;
        Ok(Self { pid, id })
    }
}

/// An operation with where it comes from.
#[derive(Clone, Debug, Serialize)]
pub struct Match {
    host: String,
    pid: u32,
    session: u64,
    file: String,
    communicator: Map<String, Value>,
    operation: Map<String, Value>,
}

/// Looks for it in all files. One id may be found in several processes and sessions.
pub fn search(found: &Found, wanted: Wanted) -> Vec<Match> {
    let mut matches: Vec<Match> = Vec::new();
    let start = format!("{{\"type\":\"op\",\"id\":{},", wanted.id);
    for input in &found.inputs {
        let Kind::Collander(header) = &input.kind else { continue };
        if wanted.pid.is_some_and(|pid| pid != header.pid) {
            continue;
        }
        let Ok(reader) = File::open(&input.path).and_then(open) else { continue };
        let mut lines = Lines::new(reader);
        let mut communicators = FxHashMap::<u64, Map<String, Value>>::default();
        while let Some(Ok(line)) = lines.next() {
            if line.starts_with(b"{\"type\":\"op\",\"id\":") && !line.starts_with(start.as_bytes()) {
                continue;
            }
            match record::parse(line) {
                Ok(Line::Communicator(communicator)) => {
                    if let Ok(all) = serde_json::from_slice(line) {
                        communicators.insert(communicator.comm, all);
                    }
                }
                Ok(Line::Op(op)) => {
                    let Ok(operation) = serde_json::from_slice::<Map<String, Value>>(line) else { continue };
                    if operation.get("id").and_then(Value::as_u64) != Some(wanted.id) {
                        continue;
                    }
                    let communicator = communicators.get(&op.comm).cloned().unwrap_or_default();
                    let this = Match {
                        host: header.host.clone(),
                        pid: header.pid,
                        session: header.session,
                        file: input.path.display().to_string(),
                        communicator,
                        operation,
                    };
                    let same = |m: &Match| (&m.host, m.pid, m.session) == (&this.host, this.pid, this.session);
                    if !matches.iter().any(same) {
                        matches.push(this);
                    }
                }
                _ => {}
            }
        }
    }
    matches
}

/// For people.
pub fn text(found: &Match, ui: &Ui) -> String {
    let mut out = String::new();
    let text = |map: &Map<String, Value>, key: &str| map.get(key).map(plain).unwrap_or_default();
    let title = format!("{} {}", text(&found.operation, "collective"), text(&found.operation, "id"));
    let _ = writeln!(out, "{}", ui.paint.bold(&title));
    let session = if found.session > 1 { format!(", session {}", found.session) } else { String::new() };
    let _ = writeln!(out, "  {:<18} {} on {}{session}", "process", found.pid, printable(&found.host));
    let c = &found.communicator;
    let name = [text(c, "label"), text(c, "name"), text(c, "hash")];
    let name: Vec<_> = name.iter().filter(|part| !part.is_empty() && *part != "null").cloned().collect();
    let _ = writeln!(
        out,
        "  {:<18} {} (rank {} of {}, {} nodes, interface v{})",
        "communicator",
        name.join(" "),
        text(c, "rank"),
        text(c, "ranks"),
        text(c, "nodes"),
        text(c, "api")
    );
    for (key, value) in &found.operation {
        match (key.as_str(), value) {
            ("type" | "id" | "comm" | "collective", _) => {}
            ("channel_list" | "proxies", Value::Array(list)) => {
                let _ = writeln!(out, "\n{}", ui.paint.bold(key));
                out.push_str(&objects(list, ui));
                for (n, steps) in list.iter().enumerate().filter_map(|(n, o)| Some((n, o.get("step_list")?))) {
                    let _ = writeln!(out, "\n{}", ui.paint.bold(&format!("{key}[{n}].step_list")));
                    out.push_str(&objects(steps.as_array().map_or(&[], Vec::as_slice), ui));
                }
                for (n, phases) in list.iter().enumerate().filter_map(|(n, o)| Some((n, o.get("phases")?))) {
                    let _ = writeln!(out, "\n{}", ui.paint.bold(&format!("{key}[{n}].phases")));
                    out.push_str(&objects(phases.as_array().map_or(&[], Vec::as_slice), ui));
                }
            }
            ("waits", Value::Object(waits)) => {
                let parts: Vec<_> = waits
                    .iter()
                    .map(|(name, ns)| format!("{} {}", name.trim_end_matches("_ns"), in_units("x_ns", ns)))
                    .collect();
                let _ = writeln!(out, "  {:<18} {}", "waits", parts.join(", "));
            }
            _ => {
                let _ = writeln!(out, "  {:<18} {}", printable(key), in_units(key, value));
            }
        }
    }
    out
}

fn objects(list: &[Value], ui: &Ui) -> String {
    let mut keys: Vec<&'static str> = Vec::new();
    const KNOWN: [&str; 24] = [
        "channel",
        "gpu_start",
        "gpu_stop",
        "cpu_start_ns",
        "cpu_stop_ns",
        "peer",
        "direction",
        "steps",
        "steps_done",
        "chunk_bytes",
        "bytes",
        "foreign_pid",
        "step",
        "start_ns",
        "in_progress_ns",
        "gpu_wait_ns",
        "peer_wait_ns",
        "wait_ns",
        "flush_wait_ns",
        "stop_ns",
        "phase",
        "name",
        "start",
        "stop",
    ];
    for key in KNOWN {
        if list.iter().any(|entry| entry.get(key).is_some()) {
            keys.push(key);
        }
    }
    let columns: Vec<Column> = keys.iter().map(|key| Column::right(key)).collect();
    // Moments are shown as the time since the first of the list.
    let first = list.iter().filter_map(|e| e.get("start_ns").or_else(|| e.get("cpu_start_ns"))?.as_u64()).min();
    let rows: Vec<Vec<String>> = list
        .iter()
        .map(|entry| {
            keys.iter()
                .map(|key| match (entry.get(*key), first) {
                    (None, _) => "–".to_owned(),
                    (Some(value), Some(first)) if key.ends_with("_ns") => value.as_u64().map_or_else(
                        || plain(value),
                        |ns| format!("+{}", units::nanoseconds(ns.saturating_sub(first) as f64)),
                    ),
                    (Some(value), _) => in_units(key, value),
                })
                .collect()
        })
        .collect();
    table(&columns, &rows, ui.width, ui.paint)
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text),
        Value::Null => "null".into(),
        Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// A value with the unit that its key says.
fn in_units(key: &str, value: &Value) -> String {
    let moment = matches!(key, "enqueued_ns" | "ended_ns" | "opened_ns" | "start_ns" | "stop_ns");
    match value.as_u64() {
        Some(ns) if key.ends_with("_ns") && !moment => units::nanoseconds(ns as f64),
        Some(n) if key.ends_with("bytes") => format!("{} ({n})", units::bytes(n)),
        _ if key.ends_with("_gbs") => {
            value.as_f64().map_or_else(|| plain(value), |gbs| format!("{} GB/s", units::bandwidth(gbs)))
        }
        _ => plain(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_may_name_their_process() {
        assert_eq!("17".parse(), Ok(Wanted { pid: None, id: 17 }));
        assert_eq!("4711:17".parse(), Ok(Wanted { pid: Some(4711), id: 17 }));
        assert!("a:17".parse::<Wanted>().unwrap_err().contains("process id"));
        assert!("x".parse::<Wanted>().is_err());
    }
}
