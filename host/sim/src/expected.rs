//! A descriptor as an operation that the library was told of.

use collander_recording::{EventDescriptor, Name};

use crate::library::Communicator;
use crate::report::{ExpectedOperation, OperationKind};

/// What the library can know of an operation over this version of the interface. `context`: its init's number.
pub(crate) fn operation(
    kind: OperationKind,
    descriptor: &EventDescriptor,
    communicator: &Communicator,
    context: u32,
    api: u8,
) -> ExpectedOperation {
    let text = |name: &Name| name.as_deref().unwrap_or("").to_owned();
    let owned = |name: &Name| name.as_deref().map(ToOwned::to_owned);
    let mut operation = ExpectedOperation {
        kind,
        communicator: communicator.id,
        communicator_name: communicator.name.as_ref().map(|name| String::from_utf8_lossy(name).into_owned()),
        context,
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
    let (function, datatype, count, root, tag) = match descriptor {
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
