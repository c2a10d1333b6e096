//! NVIDIA Inspector's lines, v4.0 to v4.4, as far as the table needs them.

use std::borrow::Cow;
use std::collections::HashMap;

use collander_event::Collective;
use serde::{Deserialize, Deserializer};

/// Whose communicator and process the following lines describe.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Header {
    id: String,
    /// v4.2 and later.
    #[serde(default)]
    pub comm_name: String,
    /// Rank in the communicator.
    pub rank: i32,
    /// Number of ranks.
    pub n_ranks: u32,
    /// Number of nodes.
    #[serde(default)]
    pub nnodes: u32,
}

impl Header {
    /// The communicator's hash, as far as Inspector writes it (14 digits).
    pub fn hash(&self) -> u64 {
        u64::from_str_radix(self.id.trim_start_matches("0x"), 16).unwrap_or(0)
    }
}

#[derive(Debug, Deserialize)]
struct Metadata<'a> {
    #[serde(default, borrow, rename = "inspector_output_format_version")]
    version: Cow<'a, str>,
    #[serde(borrow)]
    hostname: Cow<'a, str>,
    pid: u32,
}

#[derive(Debug, Default, Deserialize)]
struct DumpStats {
    #[serde(default)]
    coll_records: u64,
    #[serde(default)]
    coll_dropped_total: u64,
    #[serde(default)]
    p2p_records: u64,
    #[serde(default)]
    p2p_dropped_total: u64,
    #[serde(default)]
    proxy_records: u64,
}

#[derive(Debug, Deserialize)]
struct CollPerf<'a> {
    #[serde(borrow)]
    coll: Cow<'a, str>,
    coll_msg_size_bytes: u64,
    coll_exec_time_us: f64,
    #[serde(default, deserialize_with = "number_or_text")]
    coll_algobw_gbs: Option<f64>,
    #[serde(default, deserialize_with = "number_or_text")]
    coll_busbw_gbs: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct P2pPerf<'a> {
    #[serde(borrow)]
    p2p: Cow<'a, str>,
    p2p_msg_size_bytes: u64,
    p2p_exec_time_us: f64,
    #[serde(default, deserialize_with = "number_or_text")]
    p2p_algobw_gbs: Option<f64>,
    #[serde(default, deserialize_with = "number_or_text")]
    p2p_busbw_gbs: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Line<'a> {
    header: Option<Header>,
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
    dump_stats: Option<DumpStats>,
    #[serde(borrow)]
    coll_perf: Option<CollPerf<'a>>,
    #[serde(borrow)]
    p2p_perf: Option<P2pPerf<'a>>,
    proxy_trace: Option<serde::de::IgnoredAny>,
}

/// Inspector writes what is not a number as the text "nan".
fn number_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(f64),
        Other(serde::de::IgnoredAny),
    }
    Ok(match Either::deserialize(deserializer)? {
        Either::Number(number) => Some(number),
        Either::Other(_) => None,
    })
}

/// Host and process, if a line is Inspector's.
pub fn writer_of(line: &[u8]) -> Option<(String, u32)> {
    let line: Line<'_> = serde_json::from_slice(line).ok()?;
    line.header?;
    line.metadata.map(|metadata| (metadata.hostname.into_owned(), metadata.pid))
}

/// One operation of Inspector's.
#[derive(Clone, Debug, PartialEq)]
pub struct Perf {
    /// Whether a send or receive.
    pub p2p: bool,
    /// Function.
    pub collective: Collective,
    /// Bytes as our own format counts them: all ranks' for AllGather and its like.
    pub bytes: u64,
    /// Duration, µs.
    pub time_us: f64,
    /// GB/s.
    pub algbw: Option<f64>,
    /// GB/s.
    pub busbw: Option<f64>,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// An operation of the communicator in [`Reader::header`].
    Operation(Perf),
    /// Nothing for the table.
    Nothing,
}

/// Reads one file's lines by the rules of its version.
#[derive(Debug, Default)]
pub struct Reader {
    header: Header,
    known: bool,
    /// Lines that the last marker announced and that have not come.
    left: u64,
    /// Latest losses by communicator and rank.
    dropped: HashMap<(u64, i32), u64>,
}

impl Reader {
    /// The communicator of the line read last.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Operations that Inspector says it lost, in all communicators.
    pub fn dropped(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// At the end of the file: how many announced lines did not come.
    pub fn missing(&self) -> u64 {
        self.left
    }

    /// Takes a line.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn read(&mut self, line: &[u8]) -> Result<Step, String> {
        let line: Line<'_> = serde_json::from_slice(line).map_err(|e| e.to_string())?;
        let marked = line.header.is_some();
        if let Some(header) = line.header {
            if self.left > 0 {
                let left = std::mem::take(&mut self.left);
                return Err(format!("a dump lacks {left} of its lines: incomplete or interleaved"));
            }
            self.header = header;
            self.known = true;
        }
        if let Some(stats) = line.dump_stats {
            let key = (self.header.hash(), self.header.rank);
            self.dropped.insert(key, stats.coll_dropped_total + stats.p2p_dropped_total);
            // From v4.3 on, the lines that follow have no header of their own and are counted.
            let minor = line.metadata.as_ref().and_then(|m| m.version.strip_prefix("v4.")?.parse::<u32>().ok());
            if minor.is_some_and(|minor| minor >= 3) {
                self.left = stats.coll_records + stats.p2p_records + stats.proxy_records;
            }
            return Ok(Step::Nothing);
        }
        if !marked {
            if !self.known {
                return Err("a record without header and marker".into());
            }
            if self.left == 0 {
                return Err("more records than their marker announced".into());
            }
            self.left -= 1;
        }
        if let Some(c) = line.coll_perf {
            let collective = Collective::from_text(&c.coll);
            let bytes = c.coll_msg_size_bytes.saturating_mul(collective.size_factor(self.header.n_ranks));
            let (algbw, busbw) = (c.coll_algobw_gbs, c.coll_busbw_gbs);
            return Ok(Step::Operation(Perf {
                p2p: false,
                collective,
                bytes,
                time_us: c.coll_exec_time_us,
                algbw,
                busbw,
            }));
        }
        if let Some(p) = line.p2p_perf {
            let (algbw, busbw) = (p.p2p_algobw_gbs, p.p2p_busbw_gbs);
            let (collective, bytes) = (Collective::from_text(&p.p2p), p.p2p_msg_size_bytes);
            return Ok(Step::Operation(Perf {
                p2p: true,
                collective,
                bytes,
                time_us: p.p2p_exec_time_us,
                algbw,
                busbw,
            }));
        }
        if line.proxy_trace.is_some() {
            return Ok(Step::Nothing);
        }
        Err("neither coll_perf, p2p_perf, proxy_trace nor dump_stats".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &str = r#"{"header":{"id":"0x7f8c496ae9f661","comm_name":"DP","rank":2,"n_ranks":8,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.3","hostname":"h","pid":7},"dump_stats":{"coll_records":1,"coll_dropped_total":40,"p2p_records":1,"p2p_dropped_total":2,"proxy_records":1}}"#;
    const COLL: &str = r#"{"coll_perf":{"coll":"AllGather","coll_sn":1,"coll_msg_size_bytes":1024,"coll_exec_time_us":5663.0,"coll_algobw_gbs":"nan","coll_busbw_gbs":1.5}}"#;

    #[test]
    fn a_marker_frames_its_records() {
        let mut reader = Reader::default();
        assert_eq!(reader.read(MARK.as_bytes()), Ok(Step::Nothing));
        let Ok(Step::Operation(perf)) = reader.read(COLL.as_bytes()) else { panic!("no operation") };
        assert_eq!(
            (perf.collective, perf.bytes, perf.algbw, perf.busbw),
            (Collective::AllGather, 8192, None, Some(1.5))
        );
        assert_eq!((reader.missing(), reader.dropped()), (2, 42));
        assert!(reader.read(MARK.as_bytes()).unwrap_err().contains("lacks 2"));
        assert!(reader.read(br#"{"header"#).is_err());
    }

    #[test]
    fn a_line_of_its_own_has_a_header() {
        let line = COLL.replacen(
            '{',
            r#"{"header":{"id":"0xabc","rank":1,"n_ranks":2,"nnodes":2},"metadata":{"hostname":"w0","pid":42},"#,
            1,
        );
        assert_eq!(writer_of(line.as_bytes()), Some(("w0".into(), 42)));
        let mut reader = Reader::default();
        assert!(matches!(reader.read(line.as_bytes()), Ok(Step::Operation(_))));
        assert_eq!(reader.header().hash(), 0xabc);
        assert!(reader.read(COLL.as_bytes()).is_err());
        assert!(Reader::default().read(COLL.as_bytes()).unwrap_err().contains("without header"));
    }
}
