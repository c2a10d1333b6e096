//! After a replay: which operations the library was told of.

use std::collections::{HashMap, HashSet};

use collander_event::EventKind;
use collander_recording::EventDescriptor;

use super::Slot;
use super::plan::{ContextRef, Event, Plan, Target};
use crate::expected;
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
    let context = if let ContextRef::Own(context) = event.context { context } else { 0 };
    expected::operation(kind, &event.descriptor, &plan.communicators[context], context as u32, api)
}
