//! Native types to those of the interface, and back: once, here.

use collander_event::{
    Collective, Communicator, Datatype, Detail, Flags, OpKind, OpenOperation, Operation, PLAN_SIZE_CLASSES, Timing,
    Waits, size_class,
};

use crate::bindings::{decisions, host, lifecycle, traffic};
use crate::names::{algorithm, protocol};
use crate::types::{
    Class, Description, FilterPlan, LogLevel, Metric, PlanRate, Setting, SettingType, Severity, Value, Verdict,
};

use traffic::{Circumstances, Collective as C, Datatype as D};

const COLLECTIVES: [C; 16] = [
    C::Unknown,
    C::AllReduce,
    C::AllGather,
    C::ReduceScatter,
    C::Broadcast,
    C::Reduce,
    C::AllToAll,
    C::Gather,
    C::Scatter,
    C::Send,
    C::Recv,
    C::SendRecv,
    C::AllGatherV,
    C::PutSignal,
    C::Signal,
    C::WaitSignal,
];

fn collective(collective: Collective) -> C {
    COLLECTIVES[collective as usize & 15]
}

const fn datatype(datatype: Datatype) -> D {
    match datatype {
        Datatype::Unknown => D::Unknown,
        Datatype::Int8 => D::Int8,
        Datatype::Uint8 => D::Uint8,
        Datatype::Int32 => D::Int32,
        Datatype::Uint32 => D::Uint32,
        Datatype::Int64 => D::Int64,
        Datatype::Uint64 => D::Uint64,
        Datatype::Float16 => D::Float16,
        Datatype::Float32 => D::Float32,
        Datatype::Float64 => D::Float64,
        Datatype::Bfloat16 => D::Bfloat16,
        Datatype::Float8E4M3 => D::Float8E4m3,
        Datatype::Float8E5M2 => D::Float8E5m2,
    }
}

const fn kind(kind: OpKind) -> traffic::Kind {
    match kind {
        OpKind::Coll => traffic::Kind::Collective,
        OpKind::P2p => traffic::Kind::PointToPoint,
        OpKind::CopyEngine => traffic::Kind::CopyEngine,
        OpKind::Api => traffic::Kind::Api,
        OpKind::InferredGroup => traffic::Kind::InferredGroup,
    }
}

const fn timing(timing: Timing) -> traffic::Timing {
    match timing {
        Timing::Gpu => traffic::Timing::Gpu,
        Timing::GpuSomeChannels => traffic::Timing::GpuSomeChannels,
        Timing::KernelCpu => traffic::Timing::KernelCpu,
        Timing::ProxyCpu => traffic::Timing::ProxyCpu,
        Timing::EnqueueOnly => traffic::Timing::EnqueueOnly,
        Timing::Unobservable => traffic::Timing::Unobservable,
    }
}

fn circumstances(flags: Flags) -> Circumstances {
    const BITS: [Circumstances; 16] = [
        Circumstances::GRAPH,
        Circumstances::REPLAY,
        Circumstances::INFERRED,
        Circumstances::OTHER_PROCESS,
        Circumstances::ABORTED,
        Circumstances::TIMED_OUT,
        Circumstances::CHANNELS_MISSING,
        Circumstances::TIMER_MISMATCH,
        Circumstances::IN_PLACE,
        Circumstances::SYMMETRIC,
        Circumstances::SUPERSEDED,
        Circumstances::EVICTED,
        Circumstances::NEVER_STOPPED,
        Circumstances::TIMER_TICKS_10NS,
        Circumstances::SELF_TRANSFER,
        Circumstances::IN_INFERRED_GROUP,
    ];
    let mut found = Circumstances::default();
    let mut rest = flags.0 & 0xffff;
    while rest != 0 {
        found |= BITS[rest.trailing_zeros() as usize];
        rest &= rest - 1;
    }
    found
}

fn detail(wanted: traffic::Detail) -> Detail {
    const BITS: [(traffic::Detail, Detail); 8] = [
        (traffic::Detail::CHANNELS, Detail::CHANNELS),
        (traffic::Detail::PROXY_OPERATIONS, Detail::PROXY_OPERATIONS),
        (traffic::Detail::PROXY_STEPS, Detail::PROXY_STEPS),
        (traffic::Detail::PHASES, Detail::PHASES),
        (traffic::Detail::CHANNEL_LIST, Detail::CHANNEL_LIST),
        (traffic::Detail::PROXY_LIST, Detail::PROXY_LIST),
        (traffic::Detail::STEP_LIST, Detail::STEP_LIST),
        (traffic::Detail::API, Detail::API),
    ];
    BITS.iter().filter(|(bit, _)| wanted.contains(*bit)).fold(Detail(0), |sum, (_, ours)| sum.union(*ours)).completed()
}

fn waits(waits: Waits) -> traffic::Waits {
    traffic::Waits { gpu: waits.gpu, peer: waits.peer, wire: waits.wire, flush: waits.flush }
}

/// 0 stands for "never came".
fn time(ns: u64) -> Option<u64> {
    (ns != 0).then_some(ns)
}

fn channel(channel: &collander_event::Channel) -> traffic::Channel {
    let phase = |p: &collander_event::Phase| traffic::Phase { phase: p.phase, start: p.start, stop: time(p.stop) };
    traffic::Channel {
        channel: channel.channel,
        gpu_start: time(channel.gpu_start),
        gpu_stop: time(channel.gpu_stop),
        cpu_start: channel.cpu_start_ns,
        cpu_stop: time(channel.cpu_stop_ns),
        phases: channel.phases.iter().map(phase).collect(),
    }
}

fn proxy(proxy: &collander_event::ProxyOperation) -> traffic::ProxyOperation {
    let step = |s: &collander_event::ProxyStep| traffic::ProxyStep {
        step: s.step,
        start: time(s.start_ns),
        gpu_wait: time(s.gpu_wait_ns),
        peer_wait: time(s.peer_wait_ns),
        wait: time(s.wait_ns),
        flush_wait: time(s.flush_wait_ns),
        stop: time(s.stop_ns),
        bytes: s.bytes,
    };
    traffic::ProxyOperation {
        channel: proxy.channel,
        peer: proxy.peer,
        send: proxy.send,
        steps: proxy.steps,
        steps_done: proxy.steps_done,
        chunk_bytes: proxy.chunk_bytes,
        bytes: proxy.bytes,
        foreign_process: (proxy.foreign_pid != 0).then_some(proxy.foreign_pid),
        start: proxy.start_ns,
        in_progress: time(proxy.in_progress_ns),
        stop: time(proxy.stop_ns),
        waits: waits(proxy.waits),
        step_list: proxy.step_list.iter().map(step).collect(),
    }
}

pub(crate) fn operation(o: &Operation) -> traffic::Operation {
    traffic::Operation {
        id: o.id,
        kind: kind(o.kind),
        communicator: o.communicator.ordinal,
        collective: collective(o.collective),
        datatype: datatype(o.datatype),
        algorithm: algorithm(o),
        protocol: protocol(o.protocol),
        timing: timing(o.timing),
        circumstances: circumstances(o.flags),
        sequence: o.sequence,
        count: o.count,
        bytes: o.bytes,
        rank_bytes: o.rank_bytes,
        partner: o.partner,
        channels_used: o.channels,
        channels_seen: o.channels_seen,
        warps: o.warps,
        enqueued: o.enqueued_ns,
        enqueue: o.enqueue_ns,
        queued: o.queued_ns,
        duration: o.duration_ns,
        longest_channel: o.longest_channel_ns,
        ended: o.ended_ns,
        algbw: o.algbw,
        busbw: o.busbw,
        waits: o.waits.map(waits),
        sent: o.sent_bytes,
        received: o.received_bytes,
        proxy_operations: o.proxy_operations,
        proxy_steps: o.proxy_steps,
        user_tag: o.user_tag,
        group: o.group,
        members: o.members,
        sinks: o.sinks,
        channels: o.channel_list.iter().map(channel).collect(),
        proxies: o.proxies.iter().map(proxy).collect(),
    }
}

pub(crate) fn open_operation(open: &OpenOperation) -> traffic::OpenOperation {
    let o = &open.operation;
    traffic::OpenOperation {
        id: o.id,
        kind: kind(o.kind),
        communicator: o.communicator.ordinal,
        collective: collective(o.collective),
        sequence: o.sequence,
        bytes: o.bytes,
        partner: o.partner,
        circumstances: circumstances(o.flags),
        enqueued: o.enqueued_ns,
        channels_started: open.channels_started,
        channels_ended: open.channels_ended,
        last_proxy_progress: open.last_proxy_ns,
    }
}

pub(crate) fn communicator(c: &Communicator) -> traffic::Communicator {
    traffic::Communicator {
        id: c.ordinal,
        hash: c.hash,
        name: c.name.clone(),
        label: c.label.clone(),
        rank: u32::try_from(c.rank).ok(),
        ranks: c.ranks,
        nodes: c.nodes,
        interface_version: c.api,
        opened: c.opened_ns,
    }
}

pub(crate) fn class_to_guest(class: Class) -> traffic::Class {
    traffic::Class {
        communicator: class.communicator,
        collective: collective(class.collective),
        size_class: class.size_class,
    }
}

pub(crate) fn class(class: traffic::Class) -> Result<Class, String> {
    if usize::from(class.size_class) >= PLAN_SIZE_CLASSES {
        return Err(format!("size class {} is not one of 0 to {}", class.size_class, PLAN_SIZE_CLASSES - 1));
    }
    let at = COLLECTIVES.iter().position(|c| *c == class.collective).unwrap_or(0);
    Ok(Class { communicator: class.communicator, collective: Collective::ALL[at], size_class: class.size_class })
}

/// The class of an operation, as filters are asked about it.
#[must_use]
pub fn class_of(operation: &Operation) -> Class {
    Class {
        communicator: operation.communicator.ordinal,
        collective: operation.collective,
        size_class: size_class(operation.bytes.unwrap_or(0)) as u8,
    }
}

/// Bits of the sinks that there are.
pub(crate) const fn sink_mask(sinks: usize) -> u32 {
    if sinks >= 32 { u32::MAX } else { (1 << sinks) - 1 }
}

pub(crate) fn plan(plan: decisions::Plan, known_sinks: u32) -> Result<FilterPlan, String> {
    let rate = match plan.rate {
        decisions::Rate::None => PlanRate::None,
        decisions::Rate::All => PlanRate::All,
        decisions::Rate::OneInPowerOfTwo(n) if n <= 40 => PlanRate::OneIn(n),
        decisions::Rate::OneInPowerOfTwo(n) => return Err(format!("one in 2^{n}: at most 2^40")),
        decisions::Rate::AtMostPerSecond(0) => return Err("at most 0 a second: use none".to_owned()),
        decisions::Rate::AtMostPerSecond(n) => PlanRate::PerSecond(n),
    };
    if plan.sinks & !known_sinks != 0 {
        return Err(format!("a plan for sinks {:#b}, of which there are {known_sinks:#b}", plan.sinks));
    }
    if plan.valid_for == Some(0) {
        return Err("a plan that is valid for 0 ms".to_owned());
    }
    Ok(FilterPlan { rate, detail: detail(plan.detail), sinks: plan.sinks, valid_for_ms: plan.valid_for })
}

fn route(sinks: u32, known: u32, index: usize) -> Result<Verdict, String> {
    match sinks {
        0 => Ok(Verdict::Keep),
        _ if sinks & !known != 0 => {
            Err(format!("operation {index} goes to sinks {sinks:#b}, of which there are {known:#b}"))
        }
        _ => Ok(Verdict::Route(sinks)),
    }
}

/// Verdicts of a typed filter; an empty list is all keep.
pub(crate) fn verdicts(
    given: &[decisions::Verdict],
    operations: usize,
    known: u32,
    out: &mut Vec<Verdict>,
) -> Result<(), String> {
    check_length(given.len(), operations)?;
    for (index, verdict) in given.iter().enumerate() {
        out.push(match verdict {
            decisions::Verdict::Drop => Verdict::Drop,
            decisions::Verdict::Keep => Verdict::Keep,
            decisions::Verdict::Route(sinks) => route(*sinks, known, index)?,
        });
    }
    Ok(())
}

/// Verdicts of a packed filter.
pub(crate) fn verdict_bytes(given: &[u8], operations: usize, known: u32, out: &mut Vec<Verdict>) -> Result<(), String> {
    check_length(given.len(), operations)?;
    out.reserve(given.len());
    for (index, byte) in given.iter().enumerate() {
        out.push(match *byte {
            crate::layout::VERDICT_DROP => Verdict::Drop,
            crate::layout::VERDICT_KEEP => Verdict::Keep,
            byte if byte & crate::layout::VERDICT_ROUTE != 0 => {
                route(u32::from(byte & !crate::layout::VERDICT_ROUTE), known, index)?
            }
            byte => return Err(format!("verdict {byte} of operation {index} is none of 0, 1, 128 and above")),
        });
    }
    Ok(())
}

fn check_length(verdicts: usize, operations: usize) -> Result<(), String> {
    if verdicts == operations || verdicts == 0 {
        Ok(())
    } else {
        Err(format!("{verdicts} verdicts for {operations} operations"))
    }
}

pub(crate) fn value(value: host::Value) -> Value {
    match value {
        host::Value::Flag(v) => Value::Flag(v),
        host::Value::Integer(v) => Value::Integer(v),
        host::Value::Number(v) => Value::Number(v),
        host::Value::Text(v) => Value::Text(v),
    }
}

pub(crate) const fn level(level: host::Level) -> LogLevel {
    match level {
        host::Level::Debug => LogLevel::Debug,
        host::Level::Info => LogLevel::Info,
        host::Level::Warn => LogLevel::Warn,
        host::Level::Error => LogLevel::Error,
    }
}

pub(crate) const fn severity(severity: host::Severity) -> Severity {
    match severity {
        host::Severity::Info => Severity::Info,
        host::Severity::Warning => Severity::Warning,
        host::Severity::Critical => Severity::Critical,
        host::Severity::Resolved => Severity::Resolved,
    }
}

pub(crate) const fn metric(metric: host::Metric) -> Metric {
    match metric {
        host::Metric::Counter => Metric::Counter,
        host::Metric::Gauge => Metric::Gauge,
        host::Metric::Histogram => Metric::Histogram,
    }
}

fn setting(s: lifecycle::Setting) -> Setting {
    Setting {
        key: s.key,
        setting_type: match s.setting_type {
            lifecycle::SettingType::Flag => SettingType::Flag,
            lifecycle::SettingType::Integer => SettingType::Integer,
            lifecycle::SettingType::Number => SettingType::Number,
            lifecycle::SettingType::Text => SettingType::Text,
        },
        summary: s.summary,
        default: s.default.map(value),
        required: s.required,
        minimum: s.minimum,
        maximum: s.maximum,
        choices: s.choices,
    }
}

pub(crate) fn description(d: lifecycle::Description) -> Description {
    Description {
        name: d.name,
        version: d.version,
        summary: d.summary,
        settings: d.settings.into_iter().map(setting).collect(),
        emits: d.emits,
        wants: detail(d.wants),
        tick_every_ms: d.tick_every,
        on_failure_keep: d.on_failure_keep,
    }
}
