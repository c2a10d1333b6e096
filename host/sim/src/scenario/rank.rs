//! What the threads of one rank share, and what they pass on.

use collander_event::EventKind;
use collander_recording::EventDescriptor;

use super::Scenario;
use super::clock::Clock;
use super::timeline::Instance;
use crate::caller::{Caller, descriptor_rank};
use crate::library::{Context, Handle, Library, Parents};
use crate::mask::{Quirks, is_called};
use crate::report::KernelChannel;

/// A communicator as its rank sees it.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) instance: Instance,
    /// Rank in it.
    pub(super) rank: u32,
    pub(super) context: Context,
    /// The how-manieth init of the rank made it.
    pub(super) ordinal: u32,
}

impl Member {
    pub(super) const fn ranks(&self) -> u32 {
        self.instance.members.len() as u32
    }
}

/// Shared by the threads of a rank.
pub(super) struct Rank<'a> {
    pub(super) library: &'a Library,
    pub(super) scenario: &'a Scenario,
    pub(super) clock: Clock,
    /// By index of the `[[communicator]]`.
    pub(super) members: Vec<Member>,
}

impl Rank<'_> {
    pub(super) fn api(&self) -> u8 {
        self.library.api()
    }

    /// Whether the operation is done by the copy engine, which older NCCL does not have.
    pub(super) fn by_copy_engine(&self, spec: usize) -> bool {
        self.scenario.operation[spec].copy_engine && self.api() >= 6
    }

    /// `startEvent`, if the mask brings the kind: None if it was not called.
    pub(super) fn start(
        &self,
        caller: &mut Caller,
        group: usize,
        mask: u32,
        descriptor: &EventDescriptor,
        parents: Parents,
    ) -> Option<Handle> {
        let kind = descriptor.kind();
        if !is_called(kind, mask, self.api(), Quirks::default()) {
            return None;
        }
        let member = &self.members[group];
        let rank = descriptor_rank(kind, member.rank as i32, self.api());
        Some(caller.start(self.library, &member.context, descriptor, rank, parents))
    }

    pub(super) fn stop(&self, caller: &mut Caller, group: usize, handle: Handle) {
        caller.stop(self.library, &self.members[group].context, handle);
    }

    /// Whether two ranks of the job are on different nodes.
    pub(super) fn is_remote(&self, one: u32, other: u32) -> bool {
        one / self.scenario.node_size() != other / self.scenario.node_size()
    }

    pub(super) fn calls(&self, kind: EventKind, mask: u32) -> bool {
        is_called(kind, mask, self.api(), Quirks::default())
    }
}

/// An event whose kernels and proxies are to come.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// Place in the rank's list of operations; None: the event was not called.
    pub(super) place: Option<usize>,
    /// Coll, P2p or CeColl.
    pub(super) handle: Handle,
    /// Channels whose kernels report.
    pub(super) kernel_channels: u8,
    /// Network transfers: receives from, or sends to, a rank of the communicator.
    pub(super) transfers: Vec<Transfer>,
}

/// A network transfer of a task: on each channel a proxy operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) peer: u32,
    pub(super) send: bool,
    /// Over all channels.
    pub(super) bytes: u64,
}

/// What the user's thread hands to the proxy and kernel threads.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    pub(super) spec: usize,
    pub(super) group: usize,
    pub(super) mask: u32,
    pub(super) start_ns: Option<u64>,
    pub(super) end_ns: Option<u64>,
    pub(super) tasks: Vec<Task>,
}

/// What came of an operation's children.
#[derive(Clone, Debug, Default)]
pub(super) struct Children {
    pub(super) place: usize,
    pub(super) kernel_channels: Vec<KernelChannel>,
    pub(super) proxy_operations: u32,
    pub(super) proxy_steps: u32,
}
