//! The version-neutral descriptor to each version's C struct. What a version cannot say is left out; a kind or state
//! that it lacks is `None`.

use std::ffi::{c_int, c_void};
use std::ptr::with_exposed_provenance_mut;

use collander_abi::{v1, v2, v3, v4, v5, v6, v7};
use collander_event::EventKind;
use collander_recording::{EventDescriptor, Name, StateArgument};

use crate::library::{Communicator, Parents};
use crate::scratch::Scratch;

/// Kinds without members: zeros.
macro_rules! no_payload {
    ($v:ident) => {
        $v::Payload { proxy_step: $v::ProxyStep { step: 0 } }
    };
}

macro_rules! proxy_op {
    ($v:ident, $d:ident) => {
        $v::Payload {
            proxy_op: $v::ProxyOp {
                pid: $d.pid,
                channel_id: $d.channel,
                peer: $d.peer,
                n_steps: $d.steps,
                chunk_size: $d.chunk_bytes,
                is_send: c_int::from($d.send),
            },
        }
    };
}

macro_rules! head {
    ($v:ident, $type:ty, $call:ident, $api:literal, $payload:ident) => {
        $v::Descriptor {
            event_type: $call.descriptor.kind().bit() as $type,
            parent_obj: $call.parent($api),
            rank: $call.rank,
            payload: $payload,
        }
    };
}

/// What one `startEvent` says.
pub(crate) struct StartCall<'a> {
    pub(crate) descriptor: &'a EventDescriptor,
    pub(crate) parents: Parents,
    pub(crate) rank: c_int,
    pub(crate) communicator: &'a Communicator,
    pub(crate) scratch: &'a Scratch,
}

pub(crate) fn pointer(bits: u64) -> *mut c_void {
    with_exposed_provenance_mut(bits as usize)
}

impl StartCall<'_> {
    /// v1 to v4 have the Group as parent of Coll and P2p; later ones the API call, and the Group beside it.
    fn parent(&self, api: u8) -> *mut c_void {
        let of_group = matches!(self.descriptor.kind(), EventKind::Coll | EventKind::P2p) && api <= 4;
        pointer(if of_group { self.parents.group.0 } else { self.parents.parent.0 })
    }

    fn group(&self) -> *mut c_void {
        pointer(self.parents.group.0)
    }

    fn text(&self, name: &Name) -> *const std::ffi::c_char {
        self.scratch.put(name.as_deref().map(str::as_bytes))
    }

    fn communicator_name(&self) -> *const std::ffi::c_char {
        self.scratch.put(self.communicator.name.as_deref())
    }
}

/// Number of a name in v1's enums; 255 if it has none.
fn v1_number(name: &Name, table: &[&str]) -> u8 {
    let Some(text) = name.as_deref() else { return u8::MAX };
    let plain = text.strip_prefix("nccl").unwrap_or(text);
    let place = table.iter().position(|entry| entry.eq_ignore_ascii_case(plain));
    place.map_or_else(|| text.parse().unwrap_or(u8::MAX), |place| place as u8)
}

const V1_FUNCTIONS: [&str; 8] =
    ["Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "SendRecv", "Send", "Recv"];
const V1_DATATYPES: [&str; 12] = [
    "int8",
    "uint8",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "float8e4m3",
    "float8e5m2",
];
const V1_ALGORITHMS: [&str; 7] = ["TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"];
const V1_PROTOCOLS: [&str; 3] = ["LL", "LL128", "SIMPLE"];

pub(crate) fn to_v1(call: &StartCall<'_>) -> Option<v1::Descriptor> {
    let payload = match call.descriptor {
        EventDescriptor::Group | EventDescriptor::ProxyCtrl => no_payload!(v1),
        EventDescriptor::Coll(d) => v1::Payload {
            coll: v1::Coll {
                name: call.communicator_name(),
                comm_hash: call.communicator.id,
                seq_number: d.sequence,
                func: v1_number(&d.function, &V1_FUNCTIONS),
                send_buff: pointer(d.send_buffer),
                recv_buff: pointer(d.receive_buffer),
                count: d.count as usize,
                root: d.root,
                datatype: v1_number(&d.datatype, &V1_DATATYPES),
                op: 0,
                traffic_bytes: 0,
                n_max_channels: d.channels,
                n_warps: d.warps,
                algo: v1_number(&d.algorithm, &V1_ALGORITHMS),
                proto: v1_number(&d.protocol, &V1_PROTOCOLS),
                is_collnet: 0,
                is_nvls: 0,
            },
        },
        EventDescriptor::P2p(d) => v1::Payload {
            p2p: v1::P2p {
                name: call.communicator_name(),
                comm_hash: call.communicator.id,
                func: v1_number(&d.function, &V1_FUNCTIONS),
                buff: pointer(d.buffer),
                datatype: v1_number(&d.datatype, &V1_DATATYPES),
                count: d.count as usize,
                peer: d.peer,
            },
        },
        EventDescriptor::ProxyOp(d) => proxy_op!(v1, d),
        EventDescriptor::ProxyStep { step } => v1::Payload { proxy_step: v1::ProxyStep { step: *step } },
        _ => return None,
    };
    Some(head!(v1, u8, call, 1, payload))
}

/// v2 and v3 differ in one member of Coll and in two kinds.
macro_rules! named_communicator {
    ($function:ident, $v:ident, $api:literal, { $($coll:tt)* }, |$call:ident| { $($arms:tt)* }) => {
        pub(crate) fn $function($call: &StartCall<'_>) -> Option<$v::Descriptor> {
            let payload = match $call.descriptor {
                EventDescriptor::Group | EventDescriptor::ProxyCtrl => no_payload!($v),
                EventDescriptor::Coll(d) => $v::Payload {
                    coll: $v::Coll {
                        name: $call.communicator_name(),
                        comm_hash: $call.communicator.id,
                        seq_number: d.sequence,
                        func: $call.text(&d.function),
                        send_buff: pointer(d.send_buffer),
                        recv_buff: pointer(d.receive_buffer),
                        count: d.count as usize,
                        root: d.root,
                        datatype: $call.text(&d.datatype),
                        $($coll)*
                        n_max_channels: d.channels,
                        n_warps: d.warps,
                        algo: $call.text(&d.algorithm),
                        proto: $call.text(&d.protocol),
                    },
                },
                EventDescriptor::P2p(d) => $v::Payload {
                    p2p: $v::P2p {
                        name: $call.communicator_name(),
                        comm_hash: $call.communicator.id,
                        func: $call.text(&d.function),
                        buff: pointer(d.buffer),
                        datatype: $call.text(&d.datatype),
                        count: d.count as usize,
                        peer: d.peer,
                    },
                },
                EventDescriptor::ProxyOp(d) => proxy_op!($v, d),
                EventDescriptor::ProxyStep { step } => $v::Payload { proxy_step: $v::ProxyStep { step: *step } },
                $($arms)*
                _ => return None,
            };
            Some(head!($v, u8, $call, $api, payload))
        }
    };
}

named_communicator!(to_v2, v2, 2, { traffic_bytes: 0, }, |call| {});
named_communicator!(to_v3, v3, 3, {}, |call| {
    EventDescriptor::KernelCh { channel, .. } => v3::Payload { kernel_ch: v3::KernelCh { channel_id: *channel } },
    EventDescriptor::NetPlugin { id, data } => {
        v3::Payload { net_plugin: v3::NetPlugin { id: *id, data: pointer(*data) } }
    }
});

/// v4 and later: `coll`, `p2p` and so on are the members that came with the version; `arms` its new kinds.
macro_rules! modern {
    (
        $function:ident, $v:ident, $type:ty, $api:literal, |$call:ident, $d:ident|,
        coll { $($coll:tt)* }, p2p { $($p2p:tt)* }, arms { $($arms:tt)* }
    ) => {
        pub(crate) fn $function($call: &StartCall<'_>) -> Option<$v::Descriptor> {
            let payload = match $call.descriptor {
                EventDescriptor::Group | EventDescriptor::ProxyCtrl => no_payload!($v),
                EventDescriptor::Coll($d) => $v::Payload {
                    coll: $v::Coll {
                        seq_number: $d.sequence,
                        func: $call.text(&$d.function),
                        send_buff: pointer($d.send_buffer),
                        recv_buff: pointer($d.receive_buffer),
                        count: $d.count as usize,
                        root: $d.root,
                        datatype: $call.text(&$d.datatype),
                        n_channels: $d.channels,
                        n_warps: $d.warps,
                        algo: $call.text(&$d.algorithm),
                        proto: $call.text(&$d.protocol),
                        $($coll)*
                    },
                },
                EventDescriptor::P2p($d) => $v::Payload {
                    p2p: $v::P2p {
                        func: $call.text(&$d.function),
                        buff: pointer($d.buffer),
                        datatype: $call.text(&$d.datatype),
                        count: $d.count as usize,
                        peer: $d.peer,
                        n_channels: $d.channels,
                        $($p2p)*
                    },
                },
                EventDescriptor::ProxyOp($d) => proxy_op!($v, $d),
                EventDescriptor::ProxyStep { step } => $v::Payload { proxy_step: $v::ProxyStep { step: *step } },
                EventDescriptor::KernelCh { channel, timer } => {
                    $v::Payload { kernel_ch: $v::KernelCh { channel_id: *channel, p_timer: *timer } }
                }
                EventDescriptor::NetPlugin { id, data } => {
                    $v::Payload { net_plugin: $v::NetPlugin { id: *id, data: pointer(*data) } }
                }
                $($arms)*
                #[allow(unreachable_patterns, reason = "the last version has all kinds")]
                _ => return None,
            };
            Some(head!($v, $type, $call, $api, payload))
        }
    };
}

macro_rules! with_api {
    ($function:ident, $v:ident, $api:literal, |$call:ident, $d:ident|, coll { $($coll:tt)* }, tag { $($tag:tt)* }, arms { $($arms:tt)* }) => {
        modern!($function, $v, u64, $api, |$call, $d|,
            coll { parent_group: $call.group(), $($coll)* $($tag)* },
            p2p { parent_group: $call.group(), $($tag)* },
            arms {
                EventDescriptor::GroupApi { graph_captured, depth } => $v::Payload {
                    group_api: $v::GroupApi { graph_captured: u8::from(*graph_captured), group_depth: *depth },
                },
                EventDescriptor::CollApi($d) => $v::Payload {
                    coll_api: $v::CollApi {
                        func: $call.text(&$d.function),
                        count: $d.count as usize,
                        datatype: $call.text(&$d.datatype),
                        root: $d.root,
                        stream: pointer($d.stream),
                        graph_captured: u8::from($d.graph_captured),
                        $($tag)*
                    },
                },
                EventDescriptor::P2pApi($d) => $v::Payload {
                    p2p_api: $v::P2pApi {
                        func: $call.text(&$d.function),
                        count: $d.count as usize,
                        datatype: $call.text(&$d.datatype),
                        stream: pointer($d.stream),
                        graph_captured: u8::from($d.graph_captured),
                        $($tag)*
                    },
                },
                EventDescriptor::KernelLaunch { stream } => {
                    $v::Payload { kernel_launch: $v::KernelLaunch { stream: pointer(*stream) } }
                }
                $($arms)*
            }
        );
    };
}

macro_rules! with_copy_engine {
    ($function:ident, $v:ident, $api:literal, |$call:ident, $d:ident|, coll { $($coll:tt)* }, tag { $($tag:tt)* }, arms { $($arms:tt)* }) => {
        with_api!($function, $v, $api, |$call, $d|, coll { $($coll)* }, tag { $($tag)* }, arms {
            EventDescriptor::CeColl($d) => $v::Payload {
                ce_coll: $v::CeColl {
                    seq_number: $d.sequence,
                    func: $call.text(&$d.function),
                    send_buff: pointer($d.send_buffer),
                    recv_buff: pointer($d.receive_buffer),
                    count: $d.count as usize,
                    root: $d.root,
                    datatype: $call.text(&$d.datatype),
                    sync_strategy: $call.text(&$d.sync_strategy),
                    intra_batch_sync: u8::from($d.intra_batch_sync),
                    batch_size: $d.batch_size,
                    num_batches: $d.batches,
                    ce_seq_num: $d.ce_sequence,
                    stream: pointer($d.stream),
                    $($tag)*
                },
            },
            EventDescriptor::CeSync($d) => $v::Payload {
                ce_coll_sync: $v::CeSync { is_complete: u8::from($d.complete), n_ranks: $d.ranks },
            },
            EventDescriptor::CeBatch($d) => $v::Payload {
                ce_coll_batch: $v::CeBatch {
                    num_ops: $d.operations,
                    total_bytes: $d.bytes as usize,
                    use_intra_sync: u8::from($d.intra_sync),
                },
            },
            $($arms)*
        });
    };
}

modern!(to_v4, v4, u8, 4, |call, d|, coll {}, p2p {}, arms {});
with_api!(to_v5, v5, 5, |call, d|, coll {}, tag {}, arms {});
with_copy_engine!(to_v6, v6, 6, |call, d|, coll {}, tag {}, arms {});
with_copy_engine!(to_v7, v7, 7, |call, d|,
    coll { kernel_variant: call.text(&d.kernel_variant), is_sym_coll: u8::from(d.symmetric), },
    tag { user_tag: d.user_tag, },
    arms {
        EventDescriptor::KernelPhase { channel, phase, name, timer } => v7::Payload {
            kernel_phase: v7::KernelPhase {
                channel_id: *channel,
                phase_id: *phase,
                phase_name: call.text(name),
                p_timer: *timer,
            },
        },
    }
);

/// An argument of 8 bytes, as v4 and later have it; None: NULL.
pub(crate) fn word_of(argument: StateArgument) -> Option<u64> {
    match argument {
        StateArgument::Null => None,
        StateArgument::Transfer { bytes, .. } => Some(bytes),
        StateArgument::Appended(n) => Some(u64::from(n as u32)),
        StateArgument::Timer(timer) => Some(timer),
        StateArgument::Data(data) => Some(data),
        StateArgument::Raw(bits) => Some(bits),
    }
}
