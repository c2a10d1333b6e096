//! What a recording says of the proxy's bytes, read from its calls.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::Result;
use collander_recording::{CallKind, EventDescriptor, HandleRef, Recording, StateArgument};

/// Bytes of the proxy steps under all operations of one (context, kind, function, sequence or peer).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyTruth {
    /// Sent, by steps that ended.
    pub sent: u64,
    /// Received, by steps that ended.
    pub received: u64,
    /// Proxy operations.
    pub operations: u64,
    /// Steps started.
    pub steps: u64,
}

/// Of a proxy step only the argument of the last of these states is its size: SendWait, RecvFlushWait, RecvGPUWait.
const WITH_SIZE: [u8; 3] = [9, 11, 12];

/// Hash and rank of the communicator, function, and sequence number (collectives) or peer (sends and receives).
pub type ProxyKey = (u64, i64, String, i64);

/// The proxy's work in a recording.
///
/// # Errors
/// The recording cannot be read.
pub fn proxy_truth(file: &Path) -> Result<HashMap<ProxyKey, ProxyTruth>> {
    let recording = Recording::read(file)?;
    let mut contexts: HashMap<u64, (u64, i64)> = HashMap::new();
    let mut operations: HashMap<u64, ProxyKey> = HashMap::new();
    let mut proxies: HashMap<u64, (ProxyKey, bool)> = HashMap::new();
    let mut steps: HashMap<u64, u64> = HashMap::new();
    let mut truth: HashMap<ProxyKey, ProxyTruth> = HashMap::new();
    let mut bytes: HashMap<u64, u64> = HashMap::new();
    let mut stopped: HashSet<u64> = HashSet::new();
    for call in &recording.calls {
        match &call.kind {
            CallKind::Init(init) => {
                contexts.insert(init.context, (init.communicator_id, init.rank.into()));
            }
            CallKind::Start(start) => {
                let (Some(handle), HandleRef::Own(context)) = (start.handle, start.context) else { continue };
                let Some((hash, rank)) = contexts.get(&context).copied() else { continue };
                let name = |name: &Option<std::sync::Arc<str>>| name.as_deref().unwrap_or_default().to_owned();
                match (&start.descriptor, start.parent) {
                    (EventDescriptor::Coll(coll), _) => {
                        operations.insert(handle, (hash, rank, name(&coll.function), coll.sequence as i64));
                    }
                    (EventDescriptor::P2p(p2p), _) => {
                        operations.insert(handle, (hash, rank, name(&p2p.function), p2p.peer.into()));
                    }
                    (EventDescriptor::ProxyOp(operation), HandleRef::Own(parent)) => {
                        if let Some(key) = operations.get(&parent) {
                            truth.entry(key.clone()).or_default().operations += 1;
                            proxies.insert(handle, (key.clone(), operation.send));
                        }
                    }
                    (EventDescriptor::ProxyStep { .. }, HandleRef::Own(parent)) => {
                        if let Some((key, _)) = proxies.get(&parent) {
                            truth.entry(key.clone()).or_default().steps += 1;
                            steps.insert(handle, parent);
                        }
                    }
                    _ => {}
                }
            }
            CallKind::State(state) => {
                if let (HandleRef::Own(step), StateArgument::Transfer { bytes: size, .. }) =
                    (state.handle, state.argument)
                    && steps.contains_key(&step)
                    && WITH_SIZE.contains(&state.state)
                {
                    bytes.insert(step, size);
                }
            }
            CallKind::Stop { handle: HandleRef::Own(handle), .. } => {
                stopped.insert(*handle);
            }
            _ => {}
        }
    }
    for (step, size) in bytes.into_iter().filter(|(step, _)| stopped.contains(step)) {
        if let Some((key, send)) = steps.get(&step).and_then(|parent| proxies.get(parent)) {
            let truth = truth.entry(key.clone()).or_default();
            *(if *send { &mut truth.sent } else { &mut truth.received }) += size;
        }
    }
    Ok(truth)
}
