//! One operation as a line of our format: docs/output-fields.md, `op`.

use collander_event::{Channel, Collective, Flags, OpKind, Operation, ProxyOperation, Waits};

use super::json::{bits, field, field_or_null, field_unless_zero, float, put, string, text, text_unless_empty};

/// Appends the line.
pub(crate) fn operation(out: &mut Vec<u8>, op: &Operation) {
    out.reserve(640);
    field(out, "{\"type\":\"op\",\"id\":", op.id);
    put(out, ",\"kind\":\"");
    put(out, op.kind.name());
    field(out, "\",\"comm\":", op.communicator.ordinal);
    put(out, ",\"collective\":\"");
    put(out, op.collective.name());
    put(out, "\"");
    if op.function != op.collective.name() {
        text_unless_empty(out, ",\"function\":", op.function);
    }
    field(out, ",\"seq\":", op.sequence);
    field(out, ",\"count\":", op.count);
    put(out, ",\"datatype\":\"");
    put(out, op.datatype.nccl_name());
    put(out, "\"");
    if op.datatype_text != op.datatype.nccl_name() {
        text_unless_empty(out, ",\"datatype_text\":", op.datatype_text);
    }
    text_unless_empty(out, ",\"user_datatype\":", op.user_datatype);
    field_or_null(out, ",\"bytes\":", op.bytes);
    field_or_null(out, ",\"rank_bytes\":", op.rank_bytes);
    if op.partner >= 0 {
        let one_sided = matches!(op.collective, Collective::PutSignal | Collective::Signal | Collective::WaitSignal);
        let peer = op.kind == OpKind::P2p || op.collective.is_p2p() || one_sided;
        field(out, if peer { ",\"peer\":" } else { ",\"root\":" }, op.partner);
    }
    text_unless_empty(out, ",\"algo\":", op.algorithm);
    text_unless_empty(out, ",\"proto\":", op.protocol);
    field(out, ",\"channels\":", op.channels);
    field(out, ",\"channels_seen\":", op.channels_seen);
    field_unless_zero(out, ",\"warps\":", u64::from(op.warps));
    field(out, ",\"enqueued_ns\":", op.enqueued_ns);
    field(out, ",\"enqueue_ns\":", op.enqueue_ns);
    optional(out, ",\"queued_ns\":", op.queued_ns);
    field_or_null(out, ",\"duration_ns\":", op.duration_ns);
    optional(out, ",\"longest_channel_ns\":", op.longest_channel_ns);
    put(out, ",\"timing\":\"");
    put(out, op.timing.name());
    float(out, "\",\"algbw_gbs\":", op.algbw);
    float(out, ",\"busbw_gbs\":", op.busbw);
    field(out, ",\"ended_ns\":", op.ended_ns);
    optional(out, ",\"gpu_start\":", op.gpu_start);
    optional(out, ",\"gpu_stop\":", op.gpu_stop);
    if op.flags.0 != 0 {
        flags(out, op.flags);
    }
    if let Some(spent) = &op.waits {
        waits(out, spent);
    }
    field_unless_zero(out, ",\"sent_bytes\":", op.sent_bytes);
    field_unless_zero(out, ",\"received_bytes\":", op.received_bytes);
    field_unless_zero(out, ",\"proxy_operations\":", u64::from(op.proxy_operations));
    field_unless_zero(out, ",\"proxy_steps\":", u64::from(op.proxy_steps));
    if op.user_tag != 0 {
        put(out, ",\"user_tag\":");
        bits(out, op.user_tag);
    }
    text_unless_empty(out, ",\"kernel_variant\":", op.kernel_variant);
    text_unless_empty(out, ",\"sync_strategy\":", op.sync_strategy);
    field_unless_zero(out, ",\"group\":", op.group);
    field_unless_zero(out, ",\"members\":", u64::from(op.members));
    if !op.channel_list.is_empty() {
        list(out, ",\"channel_list\":[", &op.channel_list, channel);
    }
    if !op.proxies.is_empty() {
        list(out, ",\"proxies\":[", &op.proxies, proxy);
    }
    put(out, "}\n");
}

fn optional(out: &mut Vec<u8>, key: &str, number: Option<u64>) {
    if let Some(number) = number {
        field(out, key, number);
    }
}

fn list<T>(out: &mut Vec<u8>, key: &str, elements: &[T], mut one: impl FnMut(&mut Vec<u8>, &T)) {
    put(out, key);
    for (at, element) in elements.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        one(out, element);
    }
    out.push(b']');
}

fn flags(out: &mut Vec<u8>, flags: Flags) {
    let set: Vec<&str> = Flags::NAMES.iter().filter(|(_, bit)| flags.has(*bit)).map(|(name, _)| *name).collect();
    list(out, ",\"flags\":[", &set, |out, name| string(out, name, false));
}

fn waits(out: &mut Vec<u8>, waits: &Waits) {
    field(out, ",\"waits\":{\"gpu_ns\":", waits.gpu);
    field(out, ",\"peer_ns\":", waits.peer);
    field(out, ",\"wire_ns\":", waits.wire);
    field(out, ",\"flush_ns\":", waits.flush);
    put(out, "}");
}

fn channel(out: &mut Vec<u8>, channel: &Channel) {
    field(out, "{\"channel\":", channel.channel);
    field_unless_zero(out, ",\"gpu_start\":", channel.gpu_start);
    field_unless_zero(out, ",\"gpu_stop\":", channel.gpu_stop);
    field(out, ",\"cpu_start_ns\":", channel.cpu_start_ns);
    field_unless_zero(out, ",\"cpu_stop_ns\":", channel.cpu_stop_ns);
    if !channel.phases.is_empty() {
        list(out, ",\"phases\":[", &channel.phases, |out, phase| {
            field(out, "{\"phase\":", phase.phase);
            text(out, ",\"name\":", phase.name);
            field(out, ",\"start\":", phase.start);
            field_unless_zero(out, ",\"stop\":", phase.stop);
            put(out, "}");
        });
    }
    put(out, "}");
}

fn proxy(out: &mut Vec<u8>, proxy: &ProxyOperation) {
    field(out, "{\"channel\":", proxy.channel);
    field(out, ",\"peer\":", proxy.peer);
    put(out, if proxy.send { ",\"direction\":\"send\"" } else { ",\"direction\":\"recv\"" });
    field(out, ",\"steps\":", proxy.steps);
    field(out, ",\"steps_done\":", proxy.steps_done);
    field(out, ",\"chunk_bytes\":", proxy.chunk_bytes);
    field(out, ",\"bytes\":", proxy.bytes);
    if proxy.foreign_pid != 0 {
        field(out, ",\"foreign_pid\":", proxy.foreign_pid);
    }
    field(out, ",\"start_ns\":", proxy.start_ns);
    field_unless_zero(out, ",\"in_progress_ns\":", proxy.in_progress_ns);
    field_unless_zero(out, ",\"stop_ns\":", proxy.stop_ns);
    if proxy.waits != Waits::default() {
        waits(out, &proxy.waits);
    }
    if !proxy.step_list.is_empty() {
        list(out, ",\"step_list\":[", &proxy.step_list, |out, step| {
            field(out, "{\"step\":", step.step);
            for (key, moment) in [
                (",\"start_ns\":", step.start_ns),
                (",\"gpu_wait_ns\":", step.gpu_wait_ns),
                (",\"peer_wait_ns\":", step.peer_wait_ns),
                (",\"wait_ns\":", step.wait_ns),
                (",\"flush_wait_ns\":", step.flush_wait_ns),
                (",\"stop_ns\":", step.stop_ns),
            ] {
                field_unless_zero(out, key, moment);
            }
            field(out, ",\"bytes\":", step.bytes);
            put(out, "}");
        });
    }
    put(out, "}");
}
