//! Calls a library as fast as it can: for load tests. No times, no pacing; GPU timers advance by a microsecond each.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use collander_recording::{Coll, EventDescriptor, StateArgument};

use crate::caller::Caller;
use crate::error::SimError;
use crate::faults::Faults;
use crate::library::{Communicator, Context, Handle, Library, Parents, take_log_messages};
use crate::mask::{Quirks, is_called};
use crate::report::Report;

/// What to do. In each load of the library each thread opens its communicators one after another, runs its share of
/// the operations on each, and closes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The library.
    pub library: PathBuf,
    /// Version of the interface; None: the highest.
    pub api: Option<u8>,
    /// User threads; default 1.
    pub threads: u32,
    /// AllReduces of each thread on each communicator; default 1000.
    pub operations: u64,
    /// Kernel channels of each; default 8.
    pub channels: u8,
    /// Communicators of each thread, one after another; default 1.
    pub communicators: u32,
    /// Each thread opens all its communicators before it uses the first, and closes them after the last; default false.
    pub all_open_at_once: bool,
    /// Kernel events come from a second thread, as in NCCL (at most 1024 operations behind), else from the same; default
    /// true.
    pub proxy_thread: bool,
    /// Times that the library is loaded and unloaded; default 1.
    pub loads: u32,
    /// Leaves the communicators unfinalised and the library loaded, as a process that just exits; default false.
    pub no_finalize: bool,
    /// Injected calls.
    pub faults: Option<Faults>,
}

impl Load {
    /// With the defaults.
    #[must_use]
    pub const fn new(library: PathBuf) -> Self {
        Self {
            library,
            api: None,
            threads: 1,
            operations: 1000,
            channels: 8,
            communicators: 1,
            all_open_at_once: false,
            proxy_thread: true,
            loads: 1,
            no_finalize: false,
            faults: None,
        }
    }
}

/// Runs it in this process. The report lists no operations.
///
/// # Errors
/// The library cannot be loaded, or its init fails.
pub fn run(load: &Load) -> Result<Report, SimError> {
    let begin = Instant::now();
    let mut report = Report::default();
    let mut library = Library::open(&load.library, load.api)?;
    for number in 0..load.loads.max(1) {
        if number > 0 {
            report.failed_calls += library.failures();
            library = library.reopen()?;
        }
        report.loads += 1;
        let reports: Vec<_> = thread::scope(|scope| {
            let library = &library;
            let threads: Vec<_> = (0..load.threads.max(1))
                .map(|thread| {
                    let worker = Worker { load, library, thread: u64::from(number) << 32 | u64::from(thread) };
                    thread::Builder::new().name(format!("load-{thread}")).spawn_scoped(scope, move || worker.run())
                })
                .collect();
            let join = |thread: Result<thread::ScopedJoinHandle<'_, Result<Report, SimError>>, _>| {
                thread.map_err(SimError::Thread)?.join().map_err(|_| SimError::Panicked)?
            };
            threads.into_iter().map(join).collect()
        });
        for thread in reports {
            report.merge(thread?);
        }
    }
    report.failed_calls += library.failures();
    report.api = library.api();
    if load.no_finalize {
        std::mem::forget(library);
    } else {
        drop(library);
    }
    report.processes = 1;
    report.ranks = u64::from(load.threads.max(1));
    report.calls = report.functions.total();
    report.seconds = begin.elapsed().as_secs_f64();
    report.log = take_log_messages().into_iter().map(|message| message.text).collect();
    Ok(report)
}

struct Worker<'a> {
    load: &'a Load,
    library: &'a Library,
    thread: u64,
}

/// A collective whose kernels are to come.
struct Enqueued {
    handle: Handle,
    kernels: bool,
    gpu: u64,
}

const BEHIND: usize = 1024;

impl Worker<'_> {
    fn run(&self) -> Result<Report, SimError> {
        let mut report = Report::default();
        let mut caller = Caller::new(self.load.faults, self.thread * 2);
        let mut open = Vec::new();
        for number in 0..self.load.communicators {
            let context = self.open(number)?;
            caller.functions.init += 1;
            report.communicators += 1;
            if self.load.all_open_at_once {
                open.push(context);
            } else {
                self.operations(&context, &mut caller, &mut report);
                self.close(&context, &mut caller);
            }
        }
        for context in &open {
            self.operations(context, &mut caller, &mut report);
        }
        for context in &open {
            self.close(context, &mut caller);
        }
        caller.finish(&mut report);
        Ok(report)
    }

    fn open(&self, number: u32) -> Result<Context, SimError> {
        let name = format!("load-{}-{number}", self.thread).into_bytes();
        let id = (self.thread << 32 | u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        self.library.init(&Arc::new(Communicator { id, name: Some(name), nodes: 1, ranks: 8, rank: 0 }))
    }

    fn close(&self, context: &Context, caller: &mut Caller) {
        if context.bits != 0 && !self.load.no_finalize {
            self.library.finalize(context);
            caller.functions.finalize += 1;
        }
    }

    fn operations(&self, context: &Context, caller: &mut Caller, report: &mut Report) {
        if !self.load.proxy_thread {
            self.issue(context, caller, report, |caller, enqueued| self.kernels(context, caller, &enqueued));
            return;
        }
        let mut proxy = Caller::new(self.load.faults, self.thread * 2 + 1);
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(BEHIND);
            let kernels = &mut proxy;
            scope.spawn(move || receiver.iter().for_each(|enqueued| self.kernels(context, kernels, &enqueued)));
            self.issue(context, caller, report, |_, enqueued| {
                // A receiver that is gone has panicked, which the scope tells.
                let _ = sender.send(enqueued);
            });
            drop(sender);
        });
        proxy.finish(report);
    }

    fn issue(
        &self,
        context: &Context,
        caller: &mut Caller,
        report: &mut Report,
        mut enqueue: impl FnMut(&mut Caller, Enqueued),
    ) {
        let library = self.library;
        let called =
            |descriptor: &EventDescriptor, mask| is_called(descriptor.kind(), mask, library.api(), Quirks::default());
        let name = |text: &str| Some(Arc::from(text));
        let mut coll = EventDescriptor::Coll(Coll {
            function: name("AllReduce"),
            send_buffer: 0x1000,
            receive_buffer: 0x2000,
            count: 1 << 20,
            datatype: name("ncclFloat32"),
            channels: self.load.channels,
            warps: 16,
            algorithm: name("RING"),
            protocol: name("SIMPLE"),
            ..Coll::default()
        });
        let kernel = EventDescriptor::KernelCh { channel: 0, timer: 0 };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        for number in 0..self.load.operations {
            if let EventDescriptor::Coll(coll) = &mut coll {
                coll.sequence = number;
            }
            let mask = library.mask();
            let mut group = Handle::NULL;
            if called(&EventDescriptor::Group, mask) {
                group = caller.start(library, context, &EventDescriptor::Group, 0, Parents::default());
            }
            if called(&coll, mask) {
                let parents = Parents { parent: Handle::NULL, group };
                let handle = caller.start(library, context, &coll, 0, parents);
                report.operations.coll += 1;
                caller.stop(library, context, handle);
                enqueue(caller, Enqueued { handle, kernels: called(&kernel, mask), gpu: now + number * 1000 });
            }
            caller.stop(library, context, group);
        }
    }

    fn kernels(&self, context: &Context, caller: &mut Caller, enqueued: &Enqueued) {
        if !enqueued.kernels {
            return;
        }
        for channel in 0..self.load.channels {
            let kernel = EventDescriptor::KernelCh { channel, timer: enqueued.gpu };
            let handle = caller.start(self.library, context, &kernel, 0, Parents::of(enqueued.handle));
            caller.state(self.library, handle, 22, StateArgument::Timer(enqueued.gpu + 900));
            caller.stop(self.library, context, handle);
        }
    }
}
