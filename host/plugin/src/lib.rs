//! The library that NCCL loads: `libnccl-profiler-collander.so`.
//!
//! | module | what | thread |
//! | --- | --- | --- |
//! | `c_api` | the seven exported structs; C in, Rust out | NCCL's |
//! | `callbacks` | what each event becomes: an id, a record, or nothing | NCCL's |
//! | `hot` | the few words that callbacks read: switches, plan tables | NCCL's read, ours write |
//! | `thread_slot` | this thread's ring, behind one thread-local word | NCCL's |
//! | `intern` | names to one-byte codes | NCCL's |
//! | `clock` | ticks | NCCL's, ours |
//! | `guard` | no unwind crosses the C boundary | NCCL's |
//! | `startup` | `init`, `finalize`, fork, exit | NCCL's, cold |
//! | `drain` | rings → assembler → sinks' queues | ours |
//! | `io` | sinks | ours |
//! | `nccl_log` | NCCL's logger | ours, and `init` |
//!
//! No code on an NCCL thread blocks, locks, allocates after a thread's first event, logs, does I/O or unwinds into C; `init`
//! and `finalize` are the exceptions, and are bounded in time.
#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "the C boundary")]
mod c_api;
#[allow(unsafe_code, reason = "the C boundary: reads descriptors that NCCL passes by pointer")]
mod callbacks;
mod clock;
mod drain;
mod guard;
mod hot;
#[allow(unsafe_code, reason = "the C boundary: reads texts that NCCL passes by pointer")]
mod intern;
mod io;
mod nccl_log;
mod os;
mod startup;
#[allow(unsafe_code, reason = "the C boundary: one thread-local word, read without a call")]
mod thread_slot;
