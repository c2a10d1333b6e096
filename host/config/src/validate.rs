//! From what was written to what holds: defaults, ranges, and what must fit together.

use std::path::PathBuf;
use std::time::Duration;

use collander_event::Detail;

use crate::env::Environment;
use crate::error::Problem;
use crate::raw::{Raw, Section};
use crate::read::Reader;
use crate::validated::{
    Capture, Compression, Config, Drain, GpuTimer, Job, JsonFormat, Jsonl, LabelRule, Ring, SamplingRule, Selector,
    SinkConfig, SinkKind,
};
use crate::{inspector, job};

/// A JSON Lines sink with every default.
pub(crate) fn default_jsonl() -> Jsonl {
    Jsonl {
        directory: PathBuf::from("collander-{job}"),
        format: JsonFormat::Collander,
        compression: Compression::Zstd,
        level: 3,
        flush: Duration::from_secs(1),
        rotate_bytes: 32 << 20,
        max_bytes: 256 << 20,
        require_kernel_timing: true,
        min_size_bytes: 8192,
        verbose: false,
    }
}

/// The configuration, and notes for the operator about what is done otherwise than asked.
pub(crate) fn validate(raw: &Raw, environment: &Environment, problems: &mut Vec<Problem>) -> (Config, Vec<String>) {
    let nothing = Section::default();
    let part = |name: &str| raw.sections.get(name).unwrap_or(&nothing);
    let mut notes = Vec::new();
    let enabled = Reader { section: "", values: part(""), problems }.bool("enabled").unwrap_or(true);
    let mut reader = Reader { section: "capture", values: part("capture"), problems };
    let mut capture = capture(&mut reader);
    let (has_detail, has_p2p) = (reader.has("detail"), reader.has("p2p"));
    let ring = ring(&mut Reader { section: "ring", values: part("ring"), problems });
    let drain = drain(&mut Reader { section: "drain", values: part("drain"), problems });
    let job = who(&mut Reader { section: "job", values: part("job"), problems }, environment);
    let array = |name: &str| raw.arrays.get(name).map_or(&[][..], Vec::as_slice);
    let mut sinks = sinks(array("sink"), problems);
    if sinks.is_empty() && enabled {
        let kind = match inspector::read(environment, &default_jsonl()) {
            Some(asked) if !raw.arrays.contains_key("sink") => {
                if !has_p2p {
                    capture.p2p = asked.p2p;
                }
                notes = asked.notes;
                asked.sink
            }
            _ => default_jsonl(),
        };
        sinks.push(SinkConfig { name: "jsonl".to_owned(), kind: SinkKind::Jsonl(kind), queue_operations: 65_536 });
    }
    let verbose = sinks.iter().any(|sink| matches!(&sink.kind, SinkKind::Jsonl(jsonl) if jsonl.verbose));
    if verbose && !has_detail {
        capture.detail = capture.detail.union(Detail::CHANNEL_LIST).completed();
    }
    let labels = array("label")
        .iter()
        .map(|values| {
            let mut reader = Reader { section: "label", values, problems };
            let selector = selector(&mut reader);
            if !reader.has("label") {
                reader.problem("label", "this [[label]] has no `label`: expected the name to give".to_owned());
            }
            LabelRule { selector, label: reader.text("label").unwrap_or_default() }
        })
        .collect();
    let sampling = array("sample")
        .iter()
        .enumerate()
        .map(|(at, values)| rule(&mut Reader { section: "sample", values, problems }, at, &sinks))
        .collect();
    (Config { enabled, capture, ring, drain, labels, sampling, sinks, job }, notes)
}

fn capture(reader: &mut Reader<'_>) -> Capture {
    Capture {
        collectives: reader.bool("collectives").unwrap_or(true),
        p2p: reader.bool("p2p").unwrap_or(true),
        detail: reader.detail("detail").unwrap_or(Detail::CHANNELS),
        gpu_timer: match reader.choice("gpu_timer") {
            Some(1) => GpuTimer::Nanoseconds,
            Some(2) => GpuTimer::TenNanoseconds,
            _ => GpuTimer::Auto,
        },
        assume_ranks: small(reader.integer("assume_ranks")),
    }
}

fn ring(reader: &mut Reader<'_>) -> Ring {
    let total_bytes = reader.bytes("total_bytes").unwrap_or(64 << 20);
    // A smaller total shrinks the default sizes; a size that was written must fit as it is.
    let most = 1 << (63 - total_bytes.leading_zeros());
    let mut part = |name, default: u64| {
        let size = reader.bytes(name).unwrap_or(default.min(most));
        if size > total_bytes {
            reader.problem(name, format!("ring.{name} = {size}: expected at most ring.total_bytes = {total_bytes}"));
        }
        size
    };
    let (large_bytes, small_bytes) = (part("large_bytes", 16 << 20), part("small_bytes", 1 << 20));
    Ring { total_bytes, large_bytes, small_bytes }
}

fn drain(reader: &mut Reader<'_>) -> Drain {
    let size = |n: Option<u64>, default: usize| n.and_then(|n| usize::try_from(n).ok()).unwrap_or(default);
    Drain {
        period: reader.duration("period").unwrap_or(Duration::from_millis(5)),
        operation_timeout: reader.duration("operation_timeout").unwrap_or(Duration::from_secs(600)),
        settle: reader.duration("settle").unwrap_or(Duration::from_millis(250)),
        max_open: size(reader.integer("max_open"), 262_144),
        max_orphans: size(reader.integer("max_orphans"), 65_536),
    }
}

fn who(reader: &mut Reader<'_>, environment: &Environment) -> Job {
    let (id, id_source) = match reader.text("id") {
        Some(id) => (job::sanitise(&id), "config".to_owned()),
        None => job::detect(environment),
    };
    let host = reader.text("host").map_or_else(|| job::host(environment), |host| job::sanitise(&host));
    Job { id, id_source, host, labels: reader.text_table("labels").unwrap_or_default() }
}

fn selector(reader: &mut Reader<'_>) -> Selector {
    Selector {
        names: reader.globs("communicator"),
        ids: reader.globs("id").iter().map(|id| id.to_ascii_lowercase()).collect(),
        labels: if reader.section == "label" { Vec::new() } else { reader.globs("label") },
        ranks: reader.range("ranks"),
        nodes: reader.range("nodes"),
        rank: reader.range("rank"),
        ordinal: reader.range("ordinal"),
    }
}

fn rule(reader: &mut Reader<'_>, at: usize, sinks: &[SinkConfig]) -> SamplingRule {
    let (min_bytes, max_bytes) = reader.sizes("size").unwrap_or((0, u64::MAX));
    let mut bits = u32::MAX;
    if let Some(names) = reader.texts("sinks") {
        bits = 0;
        for name in names {
            match sinks.iter().position(|sink| sink.name == name) {
                Some(at) => bits |= 1 << (at & 31),
                None => {
                    let known: Vec<&str> = sinks.iter().map(|sink| sink.name.as_str()).collect();
                    reader.problem(
                        "sinks",
                        format!("sample.sinks: no sink is named {name:?}; expected {}", known.join(", ")),
                    );
                }
            }
        }
    }
    SamplingRule {
        name: reader.text("name").unwrap_or_else(|| format!("rule {}", at + 1)),
        selector: selector(reader),
        collectives: reader.collectives("collectives").unwrap_or_default(),
        min_bytes,
        max_bytes,
        keep: reader.keep(),
        detail: reader.detail("detail"),
        sinks: bits,
    }
}

fn sinks(array: &[Section], problems: &mut Vec<Problem>) -> Vec<SinkConfig> {
    let mut sinks: Vec<SinkConfig> = Vec::new();
    for values in array {
        let mut reader = Reader { section: "sink", values, problems };
        reader.choice("type");
        let name = reader.text("name").unwrap_or_else(|| "jsonl".to_owned());
        if sinks.iter().any(|sink| sink.name == name) {
            reader.problem("name", format!("a second sink is named {name:?}: expected another `name`"));
        }
        if sinks.len() == 32 {
            reader.problem("name", "a 33rd sink: expected at most 32".to_owned());
            break;
        }
        let queue = reader.integer("queue_operations").and_then(|n| usize::try_from(n).ok()).unwrap_or(65_536);
        sinks.push(SinkConfig { name, kind: SinkKind::Jsonl(jsonl(&mut reader)), queue_operations: queue });
    }
    sinks
}

fn jsonl(reader: &mut Reader<'_>) -> Jsonl {
    let defaults = default_jsonl();
    let format = match reader.choice("format") {
        Some(1) => JsonFormat::Inspector40,
        Some(2) => JsonFormat::Inspector42,
        _ => JsonFormat::Collander,
    };
    let compression = match (reader.choice("compression"), format) {
        (Some(0), _) | (None, JsonFormat::Collander) => Compression::Zstd,
        (Some(1), _) => Compression::Gzip,
        _ => Compression::Plain,
    };
    let level = reader.integer("level").map(|level| i32::try_from(level).unwrap_or(i32::MAX));
    if compression == Compression::Gzip && level.is_some_and(|level| level > 9) {
        reader.problem("level", format!("sink.level = {}: expected 1 to 9 with gzip", level.unwrap_or_default()));
    }
    let max_bytes = reader.bytes("max_bytes").unwrap_or(defaults.max_bytes);
    let rotate_bytes = reader.bytes("rotate_bytes").unwrap_or(defaults.rotate_bytes.min(max_bytes / 4));
    if rotate_bytes > max_bytes {
        reader.problem(
            "rotate_bytes",
            format!("sink.rotate_bytes = {rotate_bytes}: expected at most max_bytes = {max_bytes}"),
        );
    }
    Jsonl {
        directory: reader.text("directory").map_or(defaults.directory, PathBuf::from),
        format,
        compression,
        level: level.unwrap_or(if compression == Compression::Gzip { 6 } else { 3 }),
        flush: reader.duration("flush").unwrap_or(defaults.flush),
        rotate_bytes,
        max_bytes,
        require_kernel_timing: reader.bool("require_kernel_timing").unwrap_or(true),
        min_size_bytes: reader.bytes("min_size_bytes").unwrap_or(defaults.min_size_bytes),
        verbose: reader.bool("verbose").unwrap_or(false),
    }
}

fn small(n: Option<u64>) -> u32 {
    n.and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
}
