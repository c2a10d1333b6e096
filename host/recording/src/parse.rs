//! One line to one call. A single flat struct with borrowed texts takes every line: no tree, no second pass.

use std::borrow::Cow;
use std::sync::Arc;

use collander_event::EventKind;
use serde::Deserialize;

use crate::call::{Call, CallKind, HandleRef, Header, Init, Start, StateArgument, StateChange};
use crate::descriptor::{CeBatch, CeColl, CeSync, Coll, CollApi, EventDescriptor, Name, P2p, P2pApi, ProxyOp};
use crate::error::Problem;
use crate::scalar::{Flag, Scalar};

#[derive(Deserialize)]
struct RawHeader {
    recording: u32,
    nccl: String,
    api: u8,
    #[serde(default)]
    pid: i32,
    #[serde(default)]
    program: String,
    #[serde(default)]
    note: String,
}

/// The header line.
pub(crate) fn header(line: &[u8]) -> Result<Header, Problem> {
    let raw: RawHeader = serde_json::from_slice(line).map_err(Problem::Header)?;
    if raw.recording != 1 {
        return Err(Problem::Format(raw.recording));
    }
    if !(1..=7).contains(&raw.api) {
        return Err(Problem::Api(raw.api));
    }
    Ok(Header {
        format: raw.recording,
        nccl: raw.nccl,
        api: raw.api,
        pid: raw.pid,
        program: raw.program,
        note: raw.note,
    })
}

/// A JSON string, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawDescriptor<'a> {
    #[serde(borrow)]
    func: Option<Scalar<'a>>,
    #[serde(borrow)]
    datatype: Option<Scalar<'a>>,
    #[serde(borrow)]
    algo: Option<Scalar<'a>>,
    #[serde(borrow)]
    proto: Option<Scalar<'a>>,
    #[serde(borrow)]
    kernel_variant: Option<Text<'a>>,
    #[serde(borrow)]
    sync_strategy: Option<Text<'a>>,
    #[serde(borrow)]
    phase_name: Option<Text<'a>>,
    #[serde(borrow)]
    send_buff: Option<Scalar<'a>>,
    #[serde(borrow)]
    recv_buff: Option<Scalar<'a>>,
    #[serde(borrow)]
    buff: Option<Scalar<'a>>,
    #[serde(borrow)]
    stream: Option<Scalar<'a>>,
    #[serde(borrow)]
    data: Option<Scalar<'a>>,
    #[serde(borrow)]
    parent_group: Option<Scalar<'a>>,
    // v1 to v3 repeat the communicator in every operation: `init` has it.
    #[serde(borrow, rename = "name")]
    _name: Option<Text<'a>>,
    #[serde(borrow, rename = "commHash")]
    _comm_hash: Option<Scalar<'a>>,
    seq_number: u64,
    count: u64,
    root: i32,
    n_channels: u8,
    n_max_channels: u8,
    n_warps: u8,
    #[serde(rename = "op")]
    _op: Option<u32>,
    #[serde(rename = "trafficBytes")]
    _traffic_bytes: Option<u64>,
    #[serde(rename = "isCollnet")]
    _is_collnet: Option<Flag>,
    #[serde(rename = "isNvls")]
    _is_nvls: Option<Flag>,
    is_sym_coll: Option<Flag>,
    user_tag: u64,
    peer: i32,
    pid: i32,
    channel_id: u8,
    n_steps: i32,
    chunk_size: i32,
    is_send: Option<Flag>,
    step: i32,
    p_timer: u64,
    id: i64,
    graph_captured: Option<Flag>,
    group_depth: i32,
    intra_batch_sync: Option<Flag>,
    batch_size: u32,
    num_batches: u32,
    ce_seq_num: u32,
    is_complete: Option<Flag>,
    n_ranks: i32,
    num_ops: i32,
    total_bytes: u64,
    use_intra_sync: Option<Flag>,
    phase_id: u8,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawArgument<'a> {
    trans_size: Option<u64>,
    steps: Option<i32>,
    appended_proxy_ops: Option<i32>,
    p_timer: Option<u64>,
    #[serde(borrow)]
    data: Option<Scalar<'a>>,
    #[serde(borrow)]
    raw: Option<Scalar<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCall<'a> {
    #[serde(default)]
    t: u64,
    #[serde(default)]
    th: u32,
    #[serde(borrow)]
    c: Cow<'a, str>,
    #[serde(borrow)]
    ctx: Option<Scalar<'a>>,
    #[serde(borrow)]
    h: Option<Scalar<'a>>,
    #[serde(borrow)]
    p: Option<Scalar<'a>>,
    #[serde(default)]
    foreign: bool,
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(default)]
    rank: i32,
    #[serde(borrow)]
    d: Option<RawDescriptor<'a>>,
    s: Option<u8>,
    #[serde(borrow)]
    a: Option<RawArgument<'a>>,
    #[serde(default)]
    late: bool,
    mask_set: Option<u32>,
    #[serde(borrow)]
    comm_id: Option<Scalar<'a>>,
    #[serde(borrow)]
    comm_name: Option<Text<'a>>,
    #[serde(borrow)]
    comm_name_hex: Option<Text<'a>>,
    #[serde(default)]
    n_nodes: i32,
    #[serde(default)]
    n_ranks: i32,
    #[serde(default)]
    mask: u32,
    load: Option<u32>,
}

/// Shares the texts: the same few come in every line.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    names: Vec<Arc<str>>,
}

const MOST_SHARED_NAMES: usize = 256;

impl Parser {
    fn name(&mut self, text: &str) -> Arc<str> {
        if let Some(name) = self.names.iter().find(|name| &***name == text) {
            return Arc::clone(name);
        }
        let name: Arc<str> = text.into();
        if self.names.len() < MOST_SHARED_NAMES {
            self.names.push(Arc::clone(&name));
        }
        name
    }

    fn optional(&mut self, text: Option<Text<'_>>) -> Name {
        text.map(|text| self.name(&text.0))
    }

    fn named(&mut self, value: Option<Scalar<'_>>) -> Name {
        match value? {
            Scalar::Text(text) => Some(self.name(&text)),
            Scalar::Number(number) => Some(self.name(&number.to_string())),
        }
    }

    /// A call's line.
    pub(crate) fn call(&mut self, line: &[u8]) -> Result<Call, Problem> {
        let raw: RawCall<'_> = serde_json::from_slice(line).map_err(Problem::Json)?;
        let (t_ns, thread, mask_set) = (raw.t, raw.th, raw.mask_set);
        let kind = match &*raw.c {
            "start" => CallKind::Start(Box::new(self.start(raw)?)),
            "state" => CallKind::State(state(raw)?),
            "stop" => {
                let handle = raw.h.ok_or(Problem::Missing("stop", "h"))?;
                CallKind::Stop { handle: handle_ref(Some(handle), "h")?, late: raw.late }
            }
            "init" => CallKind::Init(Box::new(init(raw)?)),
            "finalize" => CallKind::Finalize { context: handle_ref(raw.ctx, "ctx")? },
            other => return Err(Problem::Call(other.to_owned())),
        };
        Ok(Call { t_ns, thread, mask_set, kind })
    }

    fn start(&mut self, raw: RawCall<'_>) -> Result<Start, Problem> {
        let kind = raw.kind.ok_or(Problem::Missing("start", "type"))?;
        let kind = EventKind::from_name(&kind).ok_or_else(|| Problem::Kind(kind.into_owned()))?;
        let mut d = raw.d.ok_or(Problem::Missing("start", "d"))?;
        let handle = match handle_ref(raw.h, "h")? {
            HandleRef::Own(number) => Some(number),
            HandleRef::Null => None,
            HandleRef::Foreign(bits) => {
                return Err(Problem::Value("h", format!("{bits:#x}"), "the number of a handle of this process"));
            }
        };
        let mut parent = handle_ref(raw.p, "p")?;
        if let (true, HandleRef::Own(bits)) = (raw.foreign, parent) {
            parent = HandleRef::Foreign(bits);
        }
        let group = handle_ref(d.parent_group.take(), "parentGroup")?;
        Ok(Start {
            context: handle_ref(raw.ctx, "ctx")?,
            handle,
            parent,
            group,
            rank: raw.rank,
            descriptor: self.descriptor(kind, d)?,
        })
    }

    fn descriptor(&mut self, kind: EventKind, d: RawDescriptor<'_>) -> Result<EventDescriptor, Problem> {
        let set = |flag: &Option<Flag>| flag.as_ref().is_some_and(|flag| flag.0);
        Ok(match kind {
            EventKind::Group => EventDescriptor::Group,
            EventKind::ProxyCtrl => EventDescriptor::ProxyCtrl,
            EventKind::Coll => EventDescriptor::Coll(Coll {
                sequence: d.seq_number,
                function: self.named(d.func),
                send_buffer: number(d.send_buff, "sendBuff")?,
                receive_buffer: number(d.recv_buff, "recvBuff")?,
                count: d.count,
                root: d.root,
                datatype: self.named(d.datatype),
                channels: d.n_channels.max(d.n_max_channels),
                warps: d.n_warps,
                algorithm: self.named(d.algo),
                protocol: self.named(d.proto),
                kernel_variant: self.optional(d.kernel_variant),
                symmetric: set(&d.is_sym_coll),
                user_tag: d.user_tag,
            }),
            EventKind::P2p => EventDescriptor::P2p(P2p {
                function: self.named(d.func),
                buffer: number(d.buff, "buff")?,
                datatype: self.named(d.datatype),
                count: d.count,
                peer: d.peer,
                channels: d.n_channels,
                user_tag: d.user_tag,
            }),
            EventKind::ProxyOp => EventDescriptor::ProxyOp(ProxyOp {
                pid: d.pid,
                channel: d.channel_id,
                peer: d.peer,
                steps: d.n_steps,
                chunk_bytes: d.chunk_size,
                send: set(&d.is_send),
            }),
            EventKind::ProxyStep => EventDescriptor::ProxyStep { step: d.step },
            EventKind::KernelCh => EventDescriptor::KernelCh { channel: d.channel_id, timer: d.p_timer },
            EventKind::NetPlugin => EventDescriptor::NetPlugin { id: d.id, data: number(d.data, "data")? },
            EventKind::GroupApi => {
                EventDescriptor::GroupApi { graph_captured: set(&d.graph_captured), depth: d.group_depth }
            }
            EventKind::CollApi => EventDescriptor::CollApi(CollApi {
                function: self.named(d.func),
                count: d.count,
                datatype: self.named(d.datatype),
                root: d.root,
                stream: number(d.stream, "stream")?,
                graph_captured: set(&d.graph_captured),
                user_tag: d.user_tag,
            }),
            EventKind::P2pApi => EventDescriptor::P2pApi(P2pApi {
                function: self.named(d.func),
                count: d.count,
                datatype: self.named(d.datatype),
                stream: number(d.stream, "stream")?,
                graph_captured: set(&d.graph_captured),
                user_tag: d.user_tag,
            }),
            EventKind::KernelLaunch => EventDescriptor::KernelLaunch { stream: number(d.stream, "stream")? },
            EventKind::CeColl => EventDescriptor::CeColl(CeColl {
                sequence: d.seq_number,
                function: self.named(d.func),
                send_buffer: number(d.send_buff, "sendBuff")?,
                receive_buffer: number(d.recv_buff, "recvBuff")?,
                count: d.count,
                root: d.root,
                datatype: self.named(d.datatype),
                sync_strategy: self.optional(d.sync_strategy),
                intra_batch_sync: set(&d.intra_batch_sync),
                batch_size: d.batch_size,
                batches: d.num_batches,
                ce_sequence: d.ce_seq_num,
                stream: number(d.stream, "stream")?,
                user_tag: d.user_tag,
            }),
            EventKind::CeSync => EventDescriptor::CeSync(CeSync { complete: set(&d.is_complete), ranks: d.n_ranks }),
            EventKind::CeBatch => EventDescriptor::CeBatch(CeBatch {
                operations: d.num_ops,
                bytes: d.total_bytes,
                intra_sync: set(&d.use_intra_sync),
            }),
            EventKind::KernelPhase => EventDescriptor::KernelPhase {
                channel: d.channel_id,
                phase: d.phase_id,
                name: self.optional(d.phase_name),
                timer: d.p_timer,
            },
        })
    }
}

fn hex(text: &str, member: &'static str) -> Result<u64, Problem> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let value = digits.map_or_else(|| text.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok());
    value.ok_or_else(|| Problem::Value(member, text.to_owned(), "a number, or hexadecimal as \"0x12ab\""))
}

fn number(value: Option<Scalar<'_>>, member: &'static str) -> Result<u64, Problem> {
    match value {
        None => Ok(0),
        Some(Scalar::Number(number)) => Ok(number),
        Some(Scalar::Text(text)) => hex(&text, member),
    }
}

fn handle_ref(value: Option<Scalar<'_>>, member: &'static str) -> Result<HandleRef, Problem> {
    Ok(match value {
        None => HandleRef::Null,
        Some(Scalar::Number(number)) => HandleRef::Own(number),
        Some(Scalar::Text(text)) => HandleRef::Foreign(hex(&text, member)?),
    })
}

fn state(raw: RawCall<'_>) -> Result<StateChange, Problem> {
    let handle = handle_ref(Some(raw.h.ok_or(Problem::Missing("state", "h"))?), "h")?;
    let state = raw.s.ok_or(Problem::Missing("state", "s"))?;
    let argument = match raw.a {
        None => StateArgument::Null,
        Some(RawArgument { trans_size: Some(bytes), steps, .. }) => {
            StateArgument::Transfer { bytes, steps: steps.unwrap_or(0) }
        }
        Some(RawArgument { p_timer: Some(timer), .. }) => StateArgument::Timer(timer),
        Some(RawArgument { appended_proxy_ops: Some(n), .. }) => StateArgument::Appended(n),
        Some(RawArgument { data: Some(data), .. }) => StateArgument::Data(number(Some(data), "data")?),
        Some(RawArgument { raw, .. }) => StateArgument::Raw(number(raw, "raw")?),
    };
    Ok(StateChange { handle, state, argument, late: raw.late })
}

fn init(raw: RawCall<'_>) -> Result<Init, Problem> {
    let context = match handle_ref(raw.ctx, "ctx")? {
        HandleRef::Own(number) => number,
        _ => return Err(Problem::Missing("init", "ctx")),
    };
    let name = match (raw.comm_name_hex, raw.comm_name) {
        (Some(digits), _) => Some(bytes(&digits.0)?),
        (None, text) => text.map(|text| text.0.into_owned().into_bytes()),
    };
    Ok(Init {
        context,
        communicator_id: number(raw.comm_id, "comm_id")?,
        name,
        nodes: raw.n_nodes,
        ranks: raw.n_ranks,
        rank: raw.rank,
        mask: raw.mask,
        load: raw.load.unwrap_or(1),
    })
}

fn bytes(digits: &str) -> Result<Vec<u8>, Problem> {
    let wrong = || Problem::Value("comm_name_hex", digits.to_owned(), "pairs of hexadecimal digits");
    let pairs = digits.as_bytes().chunks(2).map(|pair| {
        let pair = str::from_utf8(pair).ok().filter(|pair| pair.len() == 2);
        pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()).ok_or_else(wrong)
    });
    pairs.collect()
}
