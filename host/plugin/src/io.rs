//! The I/O thread: sinks may block here as long as they like; what does not fit their queues meanwhile is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use collander_pipeline::{Batch, Sink, Snapshot};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};

use crate::guard::guarded;
use crate::nccl_log::{Level, say};
use crate::os;

/// What the drain says to the I/O thread.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all messages are batches")]
enum Message {
    /// A batch for the sink of this index.
    Batch(usize, Batch),
    /// The end: flush, close, report on this channel.
    Stop(Sender<()>),
}

/// One sink's queue, as the drain sees it.
#[derive(Debug)]
struct Queue {
    /// Operations sent and not yet taken.
    waiting: Arc<AtomicU64>,
    bound: u64,
    /// Operations that did not fit so far.
    full: u64,
    /// Operations of batches that were not for this sink.
    unrouted: u64,
}

/// The drain's end.
#[derive(Debug)]
pub(crate) struct Io {
    sender: Sender<Message>,
    queues: Vec<Queue>,
    progress: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

/// How often sinks are asked whether they want to flush.
const POLL: Duration = Duration::from_millis(10);

impl Io {
    /// Starts the thread with these sinks, each with the bound of its queue in operations. `progress` goes up with all that
    /// it gets done.
    ///
    /// # Errors
    /// When no thread can be made.
    pub(crate) fn start(sinks: Vec<(Box<dyn Sink>, usize)>, progress: Arc<AtomicU64>) -> std::io::Result<Self> {
        let (sender, receiver) = unbounded();
        let mut queues = Vec::new();
        let mut stages = Vec::new();
        for (sink, bound) in sinks {
            let waiting = Arc::new(AtomicU64::new(0));
            queues.push(Queue { waiting: waiting.clone(), bound: bound as u64, full: 0, unrouted: 0 });
            stages.push(Stage { sink, waiting, snapshot: Snapshot::default(), dirty: false });
        }
        let done = progress.clone();
        let thread = os::spawn("collander-io", move || guarded((), || run(stages, &receiver, &done)))?;
        Ok(Self { sender, queues, progress, thread: Some(thread) })
    }

    /// Sends what has ended to all sinks. Never blocks: what does not fit is counted. The drain.
    pub(crate) fn send(&mut self, operations: &Arc<Vec<collander_event::Operation>>, snapshot: &Snapshot) {
        for (index, queue) in self.queues.iter_mut().enumerate() {
            let bit = 1u32 << (index & 31);
            let counted = |o: &&collander_event::Operation| o.kind != collander_event::OpKind::InferredGroup;
            let all = operations.iter().filter(counted).count() as u64;
            let mine = operations.iter().filter(counted).filter(|o| o.sinks & bit != 0).count() as u64;
            queue.unrouted += all - mine;
            let fits = queue.waiting.load(Ordering::Acquire) + mine <= queue.bound;
            let mut snapshot = snapshot.clone();
            snapshot.unrouted = queue.unrouted;
            let operations = if fits {
                queue.waiting.fetch_add(mine, Ordering::AcqRel);
                operations.clone()
            } else {
                queue.full += mine;
                Arc::default()
            };
            snapshot.queue_full = queue.full;
            let _ = self.sender.send(Message::Batch(index, Batch { operations, snapshot }));
        }
    }

    /// Flushes and closes all sinks; waits at most `patience` without progress. False: a sink hangs, and its thread is left behind (it holds
    /// no lock of ours, and the library is never unmapped).
    pub(crate) fn stop(mut self, patience: Duration) -> bool {
        let (done, finished) = bounded(1);
        let sent = self.sender.send(Message::Stop(done)).is_ok();
        let ended = sent && wait_while_moving(&finished, &self.progress, patience).is_some();
        if ended && let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        ended
    }
}

/// Longest wait at the end, however much is still to be done.
const LONGEST: Duration = Duration::from_secs(10);

/// What comes on the channel; None when nothing moves for `patience`, or after ten seconds in all.
pub(crate) fn wait_while_moving<T>(channel: &Receiver<T>, progress: &AtomicU64, patience: Duration) -> Option<T> {
    let begun = Instant::now();
    loop {
        let before = progress.load(Ordering::Relaxed);
        match channel.recv_timeout(patience) {
            Ok(value) => return Some(value),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                if progress.load(Ordering::Relaxed) == before || begun.elapsed() > LONGEST {
                    return None;
                }
            }
        }
    }
}

/// One sink on the I/O thread.
struct Stage {
    sink: Box<dyn Sink>,
    waiting: Arc<AtomicU64>,
    snapshot: Snapshot,
    /// Something came since the last flush.
    dirty: bool,
}

impl Stage {
    fn take(&mut self, index: usize, batch: Batch) {
        let bit = 1u32 << (index & 31);
        let mut mine = 0;
        for operation in batch.operations.iter().filter(|o| o.sinks & bit != 0) {
            mine += u64::from(operation.kind != collander_event::OpKind::InferredGroup);
            self.sink.accept(operation);
        }
        self.waiting.fetch_sub(mine, Ordering::AcqRel);
        self.dirty = true;
        self.snapshot = batch.snapshot;
    }

    fn flush(&mut self, last: bool) {
        self.sink.flush(&self.snapshot, last);
        // A sink whose disk fails keeps what is pending and tries again later, also if nothing more comes.
        self.dirty = self.sink.account().pending > 0;
        self.tell();
    }

    fn tell(&mut self) {
        while let Some(message) = self.sink.take_message() {
            say(Level::Warn, &format!("sink {}: {message}", self.sink.name()));
        }
    }
}

fn run(mut stages: Vec<Stage>, receiver: &Receiver<Message>, progress: &AtomicU64) {
    let mut polled = Instant::now();
    loop {
        match receiver.recv_timeout(POLL) {
            Ok(Message::Batch(index, batch)) => {
                progress.fetch_add(1, Ordering::Relaxed);
                if let Some(stage) = stages.get_mut(index) {
                    stage.take(index, batch);
                    if stage.sink.wants_flush() {
                        stage.flush(false);
                    }
                }
            }
            Ok(Message::Stop(done)) => {
                stages.iter_mut().for_each(|stage| stage.flush(true));
                let _ = done.send(());
                return;
            }
            Err(RecvTimeoutError::Timeout) => {}
            // The drain has gone without a word (a caught panic): save what there is.
            Err(RecvTimeoutError::Disconnected) => {
                stages.iter_mut().for_each(|stage| stage.flush(true));
                return;
            }
        }
        if polled.elapsed() >= POLL {
            polled = Instant::now();
            for stage in stages.iter_mut().filter(|stage| stage.dirty) {
                if stage.sink.wants_flush() {
                    stage.flush(false);
                }
            }
        }
    }
}
