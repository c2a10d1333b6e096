//! The process that loads the library. Its argument is the library's path; see `collander_tests::protocol` for what it is
//! asked. It ends, in order, when its input does.
#![deny(unsafe_code)]

mod calls;
#[allow(unsafe_code, reason = "fork, waitpid, setrlimit, getppid")]
mod os;
#[allow(unsafe_code, reason = "calls the raw interface, with what the simulator would not let through")]
mod raw;

use std::collections::HashMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use collander_sim::load::{self, Load};
use collander_sim::{Communicator, Context, Library, take_log_messages};
use collander_tests::protocol::{LoadJob, Naming, Reply, Request};

/// What stays between two requests.
#[derive(Debug)]
struct Driver {
    path: PathBuf,
    library: Option<Library>,
    contexts: HashMap<u64, Context>,
}

fn main() -> Result<()> {
    let path = std::env::args_os().nth(1).context("expected the library's path")?;
    let mut driver = Driver { path: path.into(), library: None, contexts: HashMap::new() };
    for line in std::io::stdin().lines() {
        let request: Request = serde_json::from_str(&line?)?;
        if matches!(request, Request::Exit) {
            std::process::exit(0);
        }
        let reply = driver.reply(&request);
        let mut text = serde_json::to_vec(&reply)?;
        text.push(b'\n');
        std::io::stdout().write_all(&text)?;
        std::io::stdout().flush()?;
    }
    // As a process that just exits: nothing is closed that was not asked for.
    std::mem::forget(driver);
    Ok(())
}

impl Driver {
    fn reply(&mut self, request: &Request) -> Reply {
        let mut reply = Reply::default();
        if let Err(error) = self.answer(request, &mut reply) {
            reply.error = Some(format!("{error:#}"));
        }
        reply.mask = self.library.as_ref().map_or(0, Library::mask);
        reply.log.extend(take_log_messages().into_iter().map(|message| message.text));
        reply
    }

    fn library(&self) -> Result<&Library> {
        self.library.as_ref().context("no library is loaded")
    }

    fn context(&self, bits: u64) -> Context {
        let nobody = || Context { bits, communicator: Arc::default() };
        self.contexts.get(&bits).cloned().unwrap_or_else(nobody)
    }

    fn answer(&mut self, request: &Request, reply: &mut Reply) -> Result<()> {
        match request {
            Request::Open(api) => self.library = Some(Library::open(&self.path, *api)?),
            Request::Reopen => self.library = Some(self.library.take().context("no library is loaded")?.reopen()?),
            Request::Close => drop(self.library.take()),
            Request::Init(naming) => {
                let context = self.library()?.init(&Arc::new(communicator(naming)))?;
                reply.context = context.bits;
                self.contexts.insert(context.bits, context);
            }
            Request::RawInit(naming) => {
                let bits = raw::init(&self.path, naming)?;
                reply.context = bits;
                self.contexts.insert(bits, Context { bits, communicator: Arc::new(communicator(naming)) });
            }
            Request::Finalize(bits) => self.library()?.finalize(&self.context(*bits)),
            Request::Collectives(work) => calls::collectives(self.library()?, &self.context(work.context), work, reply),
            Request::UnknownKinds(context) => reply.handles = raw::unknown_kinds(&self.path, *context)?,
            Request::Garbage => calls::garbage(self.library()?),
            Request::OnThread(request) => {
                *reply = std::thread::scope(|scope| scope.spawn(|| self.reply(request)).join())
                    .map_err(|_| anyhow::anyhow!("the thread panicked"))?;
                if let Some(error) = reply.error.take() {
                    bail!(error);
                }
            }
            Request::Forked(requests) => os::forked(reply, || {
                let mut last = Reply::default();
                for request in requests {
                    last = self.reply(request);
                    if last.error.is_some() {
                        break;
                    }
                }
                last
            })?,
            Request::Job(job) => reply.report = Some(collander_sim::run(job, &|_| ())?),
            Request::Load(job) => reply.report = Some(load::run(&load_of(job, &self.path))?),
            Request::Quiet(quiet) => calls::quiet(self.library()?, &self.context(quiet.context), quiet, reply),
            Request::LimitFiles(bytes) => os::limit_files(*bytes)?,
            Request::Look | Request::Exit => {}
        }
        Ok(())
    }
}

fn communicator(naming: &Naming) -> Communicator {
    let (ranks, rank) = (naming.ranks, naming.rank);
    Communicator { id: naming.id, name: naming.name.clone(), nodes: 1, ranks, rank }
}

fn load_of(job: &LoadJob, library: &std::path::Path) -> Load {
    Load {
        library: library.to_owned(),
        api: job.api,
        threads: job.threads,
        operations: job.operations,
        channels: job.channels,
        communicators: job.communicators,
        all_open_at_once: job.all_open_at_once,
        proxy_thread: job.proxy_thread,
        loads: job.loads,
        no_finalize: job.no_finalize,
        faults: None,
    }
}
