//! Calls in NCCL's order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use collander_recording::{Coll, EventDescriptor, ProxyOp, StateArgument};
use collander_sim::mask::{Quirks, is_called};
use collander_sim::{Context, Handle, Library, Parents};
use collander_tests::protocol::{Collectives, Quiet, Reply};

use crate::os;

/// See [`garbage`].
const GARBAGE: [u64; 5] = [1, 0x7fff_dead_beef, u64::MAX, (1 << 63) | 6, 0x5555_5555_5555_5551];

fn called(library: &Library, descriptor: &EventDescriptor) -> bool {
    is_called(descriptor.kind(), library.mask(), library.api(), Quirks::default())
}

fn coll(function: &str, count: u64, channels: u8) -> Coll {
    let name = |text: &str| Some(Arc::from(text));
    Coll {
        function: name(function),
        send_buffer: 0x1000,
        receive_buffer: 0x2000,
        count,
        datatype: name("ncclFloat32"),
        channels,
        warps: 16,
        algorithm: name("RING"),
        protocol: name("SIMPLE"),
        ..Coll::default()
    }
}

pub(crate) fn collectives(library: &Library, context: &Context, work: &Collectives, reply: &mut Reply) {
    let mut descriptor = EventDescriptor::Coll(coll(&work.function, work.elements, work.channels));
    for number in work.first..work.first + work.count {
        if let EventDescriptor::Coll(coll) = &mut descriptor {
            coll.sequence = number;
        }
        if !called(library, &descriptor) {
            continue;
        }
        reply.called += 1;
        let Some(handle) = library.start(context, &descriptor, 0, Parents::default()) else { continue };
        if !handle.is_null() {
            reply.handles += 1;
            library.stop(handle);
        }
        kernels(library, context, handle, (work.channels, work.finished), 1_000_000 + number * 1000);
    }
}

fn kernels(library: &Library, context: &Context, parent: Handle, (channels, finished): (u8, bool), gpu: u64) {
    for channel in 0..channels {
        let kernel = EventDescriptor::KernelCh { channel, timer: gpu };
        if !called(library, &kernel) {
            return;
        }
        let handle = library.start(context, &kernel, 0, Parents::of(parent)).unwrap_or(Handle::NULL);
        if finished && !handle.is_null() {
            library.state(handle, 22, StateArgument::Timer(gpu + 900));
            library.stop(handle);
        }
    }
}

/// Handles that no one gave: NULL-like, a pointer, all ones, of kernels of another process. None is of a kind whose stop
/// means nothing to the library: it does not look at those.
pub(crate) fn garbage(library: &Library) {
    for bits in GARBAGE {
        library.state(Handle(bits), 22, StateArgument::Timer(7));
        library.stop(Handle(bits));
    }
}

/// The allocations of the calling thread so far, if they are counted.
type Counter = Option<extern "C" fn() -> std::ffi::c_ulong>;

/// A user thread and a proxy thread that call the library, and nothing else, between two markers.
pub(crate) fn quiet(library: &Library, context: &Context, work: &Quiet, reply: &mut Reply) {
    let total = work.warm_up + work.operations;
    let handles: Vec<AtomicU64> = (0..total).map(|_| AtomicU64::new(0)).collect();
    let warm = AtomicU64::new(0);
    let counter = os::allocation_counter();
    let pid = std::process::id() as i32;
    let user = || {
        let mut descriptor = EventDescriptor::Coll(coll("AllReduce", 1 << 18, 4));
        measured(work, &warm, counter, |number| {
            if let EventDescriptor::Coll(coll) = &mut descriptor {
                coll.sequence = number;
            }
            let group = library.start(context, &EventDescriptor::Group, 0, Parents::default()).unwrap_or(Handle::NULL);
            let parents = Parents { parent: Handle::NULL, group };
            let handle = library.start(context, &descriptor, 0, parents).unwrap_or(Handle::NULL);
            if !handle.is_null() {
                library.stop(handle);
            }
            if !group.is_null() {
                library.stop(group);
            }
            // All ones stands for NULL: 0 says that it has not come.
            let bits = if handle.is_null() { u64::MAX } else { handle.0 };
            handles[number as usize].store(bits, Ordering::Release);
        })
    };
    let proxy = || {
        measured(work, &warm, counter, |number| {
            let mut bits = 0;
            while bits == 0 {
                std::hint::spin_loop();
                bits = handles[number as usize].load(Ordering::Acquire);
            }
            let parent = if bits == u64::MAX { Handle::NULL } else { Handle(bits) };
            kernels(library, context, parent, (4, true), 1_000_000 + number * 1000);
            proxies(library, context, parent, pid);
        })
    };
    std::thread::scope(|scope| {
        let threads = [scope.spawn(user), scope.spawn(proxy)];
        reply.quiet = threads.into_iter().filter_map(|thread| thread.join().ok()).collect();
    });
}

/// A send with one step, as the proxy thread tells it.
fn proxies(library: &Library, context: &Context, parent: Handle, pid: i32) {
    let operation = ProxyOp { pid, channel: 0, peer: 1, steps: 1, chunk_bytes: 4096, send: true };
    let operation = EventDescriptor::ProxyOp(operation);
    if !called(library, &operation) {
        return;
    }
    let handle = library.start(context, &operation, 0, Parents::of(parent)).unwrap_or(Handle::NULL);
    let step = EventDescriptor::ProxyStep { step: 0 };
    if called(library, &step) {
        let step = library.start(context, &step, 0, Parents::of(handle)).unwrap_or(Handle::NULL);
        if !step.is_null() {
            for (state, bytes) in [(8, 0), (20, 0), (9, 4096)] {
                library.state(step, state, StateArgument::Transfer { bytes, steps: 0 });
            }
            library.stop(step);
        }
    }
    if !handle.is_null() {
        library.stop(handle);
    }
}

fn measured(work: &Quiet, warm: &AtomicU64, counter: Counter, mut call: impl FnMut(u64)) -> (i32, Option<u64>) {
    (0..work.warm_up).for_each(&mut call);
    warm.fetch_add(1, Ordering::AcqRel);
    while warm.load(Ordering::Acquire) < 2 {
        std::hint::spin_loop();
    }
    let count = || counter.map(|counter| counter());
    os::marker();
    let before = count();
    (work.warm_up..work.warm_up + work.operations).for_each(&mut call);
    let after = count();
    os::marker();
    (os::thread_id(), after.zip(before).map(|(after, before)| after - before))
}
