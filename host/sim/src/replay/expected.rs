//! After a replay: which operations the library was told of.

use std::collections::{HashMap, HashSet};

use collander_event::EventKind;
use collander_recording::{EventDescriptor, Name};

use super::Slot;
use super::plan::{ContextRef, Event, Plan, Target};
use crate::report::{ExpectedOperation, KernelChannel, OperationKind, Report};

/// Counts the operations, and lists them if that is wanted.
pub(super) fn fill(report: &mut Report, plan: &Plan, slots: &[Slot], api: u8, list: bool) {
    let called = |slot: usize| slots[slot].has(Slot::CALLED);
    let operation_parents: HashSet<usize> = (0..slots.len())
        .filter(|slot| called(*slot) && is_operation(plan.slots[*slot].descriptor.kind()))
        .filter_map(|slot| slot_of(plan.slots[slot].parent))
        .collect();
    let mut places: HashMap<usize, usize> = HashMap::new();
    for (slot, event) in plan.slots.iter().enumerate().filter(|(slot, _)| called(*slot)) {
        let kind = match &event.descriptor {
            EventDescriptor::Coll(_) => Some(OperationKind::Coll),
            EventDescriptor::P2p(_) => Some(OperationKind::P2p),
            EventDescriptor::CeColl(_) => Some(OperationKind::CopyEngine),
            EventDescriptor::CollApi(d) if !d.graph_captured => Some(OperationKind::ApiOnly),
            EventDescriptor::P2pApi(d) if !d.graph_captured => Some(OperationKind::ApiOnly),
            _ => None,
        };
        if let Some(kind) = kind.filter(|kind| *kind != OperationKind::ApiOnly || !operation_parents.contains(&slot)) {
            report.operations.count(kind);
            if list {
                places.insert(slot, report.expected.len());
                report.expected.push(operation(kind, event, plan, api));
            }
        } else if list {
            child(report, plan, slots, &places, slot, event, api);
        }
    }
}

const fn is_operation(kind: EventKind) -> bool {
    matches!(kind, EventKind::Coll | EventKind::P2p | EventKind::CeColl)
}

const fn slot_of(target: Target) -> Option<usize> {
    if let Target::Slot(slot) = target { Some(slot) } else { None }
}

fn child(
    report: &mut Report,
    plan: &Plan,
    slots: &[Slot],
    places: &HashMap<usize, usize>,
    slot: usize,
    event: &Event,
    api: u8,
) {
    let Some(parent) = slot_of(event.parent) else { return };
    match event.descriptor {
        EventDescriptor::KernelCh { channel, timer } => {
            if let Some(place) = places.get(&parent) {
                let stopped = slots[slot].has(Slot::KERNEL_STOP_CALLED);
                report.expected[*place].kernel_channels.push(KernelChannel {
                    channel,
                    start: if api >= 4 { timer } else { 0 },
                    stop: event.kernel_stop.filter(|_| stopped),
                });
            }
        }
        EventDescriptor::ProxyOp(_) => {
            if let Some(place) = places.get(&parent) {
                report.expected[*place].proxy_operations += 1;
            }
        }
        EventDescriptor::ProxyStep { .. } => {
            let operation = slot_of(plan.slots[parent].parent).and_then(|operation| places.get(&operation));
            if let Some(place) = operation {
                report.expected[*place].proxy_steps += 1;
            }
        }
        _ => {}
    }
}

fn operation(kind: OperationKind, event: &Event, plan: &Plan, api: u8) -> ExpectedOperation {
    let text = |name: &Name| name.as_deref().unwrap_or("").to_owned();
    let owned = |name: &Name| name.as_deref().map(ToOwned::to_owned);
    let context = if let ContextRef::Own(context) = event.context { context } else { 0 };
    let communicator = &plan.communicators[context];
    let mut operation = ExpectedOperation {
        kind,
        communicator: communicator.id,
        communicator_name: communicator.name.as_ref().map(|name| String::from_utf8_lossy(name).into_owned()),
        context: context as u32,
        rank: communicator.rank,
        ranks: if api >= 4 { communicator.ranks } else { 0 },
        function: String::new(),
        sequence: None,
        count: 0,
        datatype: String::new(),
        algorithm: None,
        protocol: None,
        channels: None,
        root_or_peer: 0,
        user_tag: 0,
        graph_replay: false,
        kernel_channels: Vec::new(),
        proxy_operations: 0,
        proxy_steps: 0,
    };
    let (function, datatype, count, root, tag) = match &event.descriptor {
        EventDescriptor::Coll(d) => {
            operation.sequence = Some(d.sequence);
            operation.channels = Some(d.channels);
            operation.algorithm = owned(&d.algorithm);
            operation.protocol = owned(&d.protocol);
            (&d.function, &d.datatype, d.count, d.root, d.user_tag)
        }
        EventDescriptor::P2p(d) => {
            operation.channels = (api >= 4).then_some(d.channels);
            (&d.function, &d.datatype, d.count, d.peer, d.user_tag)
        }
        EventDescriptor::CeColl(d) => {
            operation.sequence = Some(d.sequence);
            (&d.function, &d.datatype, d.count, d.root, d.user_tag)
        }
        EventDescriptor::CollApi(d) => (&d.function, &d.datatype, d.count, d.root, d.user_tag),
        EventDescriptor::P2pApi(d) => (&d.function, &d.datatype, d.count, 0, d.user_tag),
        _ => return operation,
    };
    operation.function = text(function);
    operation.datatype = text(datatype);
    operation.count = count;
    operation.root_or_peer = root;
    operation.user_tag = if api >= 7 { tag } else { 0 };
    operation
}
