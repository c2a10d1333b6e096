//! The lines of the format `collander-jsonl`, as far as the table and the accounting need them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

/// Newest version of the format that we understand.
const VERSION: u32 = 1;

/// `header`
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Header {
    format: String,
    version: u32,
    /// Host name.
    pub host: String,
    /// Process id.
    pub pid: u32,
    /// When the library was loaded, Unix ns.
    #[serde(default)]
    pub process_start_ns: u64,
    /// Which load of the library.
    #[serde(default)]
    pub session: u64,
    /// Name of the sink.
    #[serde(default)]
    pub sink: String,
    /// Job id.
    #[serde(default)]
    pub job: String,
}

/// Parses a header line; None if it is none, an error in words if it is one that we cannot read.
pub fn parse_header(line: &[u8]) -> Option<Result<Header, String>> {
    if !line.starts_with(b"{\"type\":\"header\"") {
        return None;
    }
    Some(match serde_json::from_slice::<Header>(line) {
        Err(error) => Err(format!("its header cannot be read: {error}")),
        Ok(header) if header.format != "collander-jsonl" => Err(format!("its format is `{}`", header.format)),
        Ok(header) if header.version > VERSION => {
            Err(format!("version {} of the format; this program reads up to {VERSION}", header.version))
        }
        Ok(header) => Ok(header),
    })
}

/// `communicator`
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Communicator<'a> {
    /// Its number in the session.
    pub comm: u64,
    /// NCCL's hash, `0x…`.
    #[serde(borrow)]
    pub hash: Option<Cow<'a, str>>,
    /// NCCL's name.
    #[serde(default, borrow)]
    pub name: Cow<'a, str>,
    /// From the label rules.
    #[serde(default, borrow)]
    pub label: Cow<'a, str>,
    /// The process's rank in it.
    pub rank: Option<i32>,
    /// Number of ranks.
    pub ranks: Option<u32>,
    /// Number of nodes.
    pub nodes: Option<u32>,
}

/// `op`, what the table needs.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Op<'a> {
    /// Kind.
    pub kind: &'a str,
    /// The communicator's number.
    pub comm: u64,
    /// Function, understood.
    pub collective: &'a str,
    /// Bytes that algbw is computed from.
    pub bytes: Option<u64>,
    /// `count` × size.
    #[serde(default)]
    pub rank_bytes: Option<u64>,
    /// Duration.
    #[serde(default)]
    pub duration_ns: Option<u64>,
    /// Where the duration comes from.
    #[serde(default)]
    pub timing: &'a str,
    /// GB/s.
    #[serde(default)]
    pub algbw_gbs: Option<f64>,
    /// GB/s.
    #[serde(default)]
    pub busbw_gbs: Option<f64>,
}

/// `stats`
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Stats {
    /// Number in the session.
    #[serde(default)]
    pub flush: u64,
    /// Whether the session ended in order.
    #[serde(default, rename = "final")]
    pub last: bool,
    /// Seen, by kind and in total.
    #[serde(default)]
    pub seen: BTreeMap<String, u64>,
    /// In this sink's files.
    #[serde(default)]
    pub written: u64,
    /// Lost, by reason and in total.
    #[serde(default)]
    pub dropped: BTreeMap<String, u64>,
    /// In files that were deleted.
    #[serde(default)]
    pub deleted: u64,
    /// Left out, by cause and in total.
    #[serde(default)]
    pub sampled_out: BTreeMap<String, u64>,
    /// Not ended or not written.
    #[serde(default)]
    pub open: u64,
    /// Oddities by name.
    #[serde(default)]
    pub anomalies: BTreeMap<String, u64>,
}

/// One line.
#[derive(Debug)]
pub enum Line<'a> {
    /// An operation.
    Op(Op<'a>),
    /// A communicator.
    Communicator(Communicator<'a>),
    /// The account.
    Stats(Box<Stats>),
    /// A header, or a type that we do not know.
    Other,
}

/// Parses a line.
///
/// # Errors
/// When it is no whole JSON object of its type.
pub fn parse(line: &[u8]) -> serde_json::Result<Line<'_>> {
    Ok(match kind_of(line) {
        Some(b"op") => Line::Op(serde_json::from_slice(line)?),
        Some(b"communicator") => Line::Communicator(serde_json::from_slice(line)?),
        Some(b"stats") => Line::Stats(serde_json::from_slice(line)?),
        Some(_) => {
            serde_json::from_slice::<serde::de::IgnoredAny>(line)?;
            Line::Other
        }
        None => {
            #[derive(Deserialize)]
            struct Typed<'a> {
                #[serde(borrow, rename = "type")]
                kind: Cow<'a, str>,
            }
            match &*serde_json::from_slice::<Typed<'_>>(line)?.kind {
                "op" => Line::Op(serde_json::from_slice(line)?),
                "communicator" => Line::Communicator(serde_json::from_slice(line)?),
                "stats" => Line::Stats(serde_json::from_slice(line)?),
                _ => Line::Other,
            }
        }
    })
}

/// The type, where it comes first and without spaces, as we write it.
fn kind_of(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"{\"type\":\"")?;
    let end = rest.iter().position(|b| *b == b'"')?;
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_order_of_keys_is_read() {
        let line =
            br#"{ "comm": 3, "hash": null, "rank": 1, "ranks": null, "nodes": null, "type": "communicator", "x": {} }"#;
        let Line::Communicator(communicator) = parse(line).unwrap() else { panic!("not understood") };
        assert_eq!((communicator.comm, communicator.rank, &*communicator.name), (3, Some(1), ""));
        assert!(matches!(parse(br#"{"type":"later","x":1}"#), Ok(Line::Other)));
        assert!(parse(br#"{"type":"op","id":1,"kin"#).is_err());
    }

    #[test]
    fn a_header_of_the_future_is_refused_with_its_version() {
        let line = br#"{"type":"header","format":"collander-jsonl","version":9,"host":"a","pid":1}"#;
        assert!(parse_header(line).unwrap().unwrap_err().contains("version 9"));
        assert!(parse_header(b"{}").is_none());
    }
}
