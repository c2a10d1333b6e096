//! What v5 and v6 have lies where v7 has it: asserted here, used by `newer`.

use std::mem::offset_of;

use collander_abi::v7::Descriptor;
use collander_abi::{v5, v6};

macro_rules! same_place {
    ($($member:ident . $field:ident),+ $(,)?) => {
        $(
            assert!(offset_of!(v5::Descriptor, payload.$member.$field) == offset_of!(Descriptor, payload.$member.$field));
            assert!(offset_of!(v6::Descriptor, payload.$member.$field) == offset_of!(Descriptor, payload.$member.$field));
        )+
    };
}

const _: () = {
    assert!(offset_of!(v5::Descriptor, event_type) == offset_of!(Descriptor, event_type));
    assert!(offset_of!(v5::Descriptor, parent_obj) == offset_of!(Descriptor, parent_obj));
    assert!(offset_of!(v6::Descriptor, event_type) == offset_of!(Descriptor, event_type));
    assert!(offset_of!(v6::Descriptor, parent_obj) == offset_of!(Descriptor, parent_obj));
    assert!(offset_of!(Descriptor, payload.coll.n_warps) == offset_of!(Descriptor, payload.coll.n_channels) + 1);
    same_place!(
        group_api.graph_captured,
        group_api.group_depth,
        coll_api.func,
        coll_api.count,
        coll_api.datatype,
        coll_api.root,
        coll_api.stream,
        coll_api.graph_captured,
        p2p_api.func,
        p2p_api.count,
        p2p_api.datatype,
        p2p_api.stream,
        p2p_api.graph_captured,
        kernel_launch.stream,
        coll.seq_number,
        coll.func,
        coll.send_buff,
        coll.recv_buff,
        coll.count,
        coll.root,
        coll.datatype,
        coll.n_channels,
        coll.n_warps,
        coll.algo,
        coll.proto,
        coll.parent_group,
        p2p.func,
        p2p.datatype,
        p2p.count,
        p2p.peer,
        p2p.n_channels,
        p2p.parent_group,
        proxy_op.pid,
        proxy_op.channel_id,
        proxy_op.peer,
        proxy_op.n_steps,
        proxy_op.chunk_size,
        proxy_op.is_send,
        proxy_step.step,
        kernel_ch.channel_id,
        kernel_ch.p_timer,
        net_plugin.id,
    );
    assert!(offset_of!(v6::Descriptor, payload.ce_coll.stream) == offset_of!(Descriptor, payload.ce_coll.stream));
    assert!(
        offset_of!(v6::Descriptor, payload.ce_coll.sync_strategy)
            == offset_of!(Descriptor, payload.ce_coll.sync_strategy)
    );
    assert!(
        offset_of!(v6::Descriptor, payload.ce_coll_sync.n_ranks)
            == offset_of!(Descriptor, payload.ce_coll_sync.n_ranks)
    );
    assert!(
        offset_of!(v6::Descriptor, payload.ce_coll_batch.total_bytes)
            == offset_of!(Descriptor, payload.ce_coll_batch.total_bytes)
    );
};
