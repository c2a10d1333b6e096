//! The loaded library: `dlopen`, the vtable of one version, and the calls. The only unsafe code of the crate.

use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::ptr::{addr_of, null_mut};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use collander_abi::{DebugLogger, SYMBOLS, v1, v2, v3, v4, v5, v6, v7};
use collander_recording::{EventDescriptor, StateArgument};
use libloading::os::unix::{Library as Dl, RTLD_LOCAL, RTLD_NOW};

use crate::convert::{self, StartCall, pointer};
use crate::error::SimError;
use crate::scratch::Scratch;

/// A handle as the plugin returned it: bits, never followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Handle(pub u64);

impl Handle {
    /// NULL.
    pub const NULL: Self = Self(0);

    /// Whether it is NULL.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// Parents of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parents {
    /// `parentObj`; of Coll and P2p the API call, which v1 to v4 do not have.
    pub parent: Handle,
    /// The Group of Coll and P2p: `parentGroup`, and in v1 to v4 `parentObj`.
    pub group: Handle,
}

impl Parents {
    /// Of an event that is not Coll or P2p.
    #[must_use]
    pub const fn of(parent: Handle) -> Self {
        Self { parent, group: Handle::NULL }
    }
}

/// What `init` is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Communicator {
    /// commId or commHash.
    pub id: u64,
    /// Name, any bytes; None: NULL.
    pub name: Option<Vec<u8>>,
    /// Nodes.
    pub nodes: i32,
    /// Ranks.
    pub ranks: i32,
    /// Rank.
    pub rank: i32,
}

/// What `init` returned for a communicator.
#[derive(Clone, Debug)]
pub struct Context {
    /// The plugin's context: bits, never followed.
    pub bits: u64,
    /// Whose it is: v1 to v3 repeat name and hash in every event.
    pub communicator: Arc<Communicator>,
}

type StateFn<T> = unsafe extern "C" fn(*mut c_void, c_int, *mut T) -> c_int;

/// The functions of one version.
#[derive(Clone, Copy)]
enum Functions {
    V1(v1::Init, v1::StartEvent, StateFn<v1::StateArgs>),
    V2(v2::Init, v2::StartEvent, StateFn<v2::StateArgs>),
    V3(v3::Init, v3::StartEvent, StateFn<v3::StateArgs>),
    V4(v4::Init, v4::StartEvent, StateFn<v4::StateArgs>),
    V5(v5::Init, v5::StartEvent, StateFn<v5::StateArgs>),
    V6(v6::Init, v6::StartEvent, StateFn<v6::StateArgs>),
    V7(v7::Init, v7::StartEvent, StateFn<v7::StateArgs>),
}

/// A loaded profiler library, behind one API for all versions of the interface. All methods may be called from any
/// thread, as NCCL does. Dropping it closes it.
pub struct Library {
    path: PathBuf,
    api: u8,
    functions: Functions,
    stop: v7::StopEvent,
    finalize: v7::Finalize,
    mask: &'static AtomicI32,
    failures: AtomicU64,
    dl: ManuallyDrop<Dl>,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Library").field("path", &self.path).field("api", &self.api).finish_non_exhaustive()
    }
}

thread_local! {
    static SCRATCH: Scratch = Scratch::new();
}

macro_rules! functions {
    ($variant:ident, $v:ident, $symbol:ident, $missing:ident) => {{
        let table = $symbol.cast::<v1::Profiler>().cast_mut().cast::<$v::Profiler>();
        // SAFETY: the symbol is the struct of this version, whose six pointers every variant has; `reserved` is not read.
        let (init, start, stop, state, finalize) = unsafe {
            (
                addr_of!((*table).init).read(),
                addr_of!((*table).start_event).read(),
                addr_of!((*table).stop_event).read(),
                addr_of!((*table).record_event_state).read(),
                addr_of!((*table).finalize).read(),
            )
        };
        let functions = Functions::$variant(
            init.ok_or_else(|| $missing("init"))?,
            start.ok_or_else(|| $missing("startEvent"))?,
            state.ok_or_else(|| $missing("recordEventState"))?,
        );
        (functions, stop.ok_or_else(|| $missing("stopEvent"))?, finalize.ok_or_else(|| $missing("finalize"))?)
    }};
}

impl Library {
    /// Loads a library as NCCL does (RTLD_NOW, RTLD_LOCAL) and takes its highest `ncclProfiler_vN`, or the version that
    /// is asked for. It gets a mask of its own, which lives as long as the process.
    ///
    /// # Errors
    /// It cannot be loaded, or lacks the version or one of its functions.
    pub fn open(path: &Path, api: Option<u8>) -> Result<Self, SimError> {
        Self::open_with_mask(path, api, Box::leak(Box::default()))
    }

    fn open_with_mask(path: &Path, api: Option<u8>, mask: &'static AtomicI32) -> Result<Self, SimError> {
        if let Some(api) = api.filter(|api| !(1..=7).contains(api)) {
            return Err(SimError::UnknownVersion(api));
        }
        // A bare name would be searched for in the system's folders.
        let file = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        // SAFETY: loading runs the library's constructors: the user asked for this library to be run.
        let dl = unsafe { Dl::open(Some(&file), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| SimError::Load { path: path.to_owned(), reason: error.to_string() })?;
        let symbol = |version: u8| {
            let name = SYMBOLS[usize::from(version) - 1].to_bytes_with_nul();
            // SAFETY: the address alone is taken here; it is read as what the name says.
            unsafe { dl.get::<*const c_void>(name) }.ok().map(|symbol| symbol.into_raw().cast_const())
        };
        let present: Vec<u8> = (1..=7).filter(|version| symbol(*version).is_some()).collect();
        let Some(highest) = present.last().copied() else {
            return Err(SimError::NoSymbol { path: path.to_owned() });
        };
        let api = api.unwrap_or(highest);
        let Some(table) = symbol(api) else {
            return Err(SimError::NoVersion { path: path.to_owned(), api, present });
        };
        let missing = |member| SimError::NullFunction { path: path.to_owned(), api, member };
        let (functions, stop, finalize) = match api {
            1 => functions!(V1, v1, table, missing),
            2 => functions!(V2, v2, table, missing),
            3 => functions!(V3, v3, table, missing),
            4 => functions!(V4, v4, table, missing),
            5 => functions!(V5, v5, table, missing),
            6 => functions!(V6, v6, table, missing),
            _ => functions!(V7, v7, table, missing),
        };
        let (path, failures, dl) = (path.to_owned(), AtomicU64::new(0), ManuallyDrop::new(dl));
        Ok(Self { path, api, functions, stop, finalize, mask, failures, dl })
    }

    /// Closes it and loads it again, with the same mask, as NCCL does between its last and its next communicator. Takes it
    /// by value: no other thread can be in a call.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn reopen(self) -> Result<Self, SimError> {
        let (path, api, mask) = (self.path.clone(), self.api, self.mask);
        drop(self);
        Self::open_with_mask(&path, Some(api), mask)
    }

    /// Version of the interface that is driven.
    #[must_use]
    pub const fn api(&self) -> u8 {
        self.api
    }

    /// The mask that the plugin wants now.
    #[must_use]
    pub fn mask(&self) -> u32 {
        self.mask.load(Ordering::Relaxed) as u32
    }

    /// Calls that returned an error so far, `init` apart.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    fn check(&self, result: c_int) {
        if result != 0 {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// `init`.
    ///
    /// # Errors
    /// It did not return success.
    pub fn init(&self, communicator: &Arc<Communicator>) -> Result<Context, SimError> {
        let mut context: *mut c_void = null_mut();
        let name = Scratch::new();
        let text = name.put(communicator.name.as_deref());
        let (nodes, ranks, rank) = (communicator.nodes, communicator.ranks, communicator.rank);
        let (mask, id, logger) = (self.mask.as_ptr(), communicator.id, Some(logger()));
        // SAFETY: signatures are those of the version; the mask lives for ever and is atomic, the name for the call.
        let result = unsafe {
            match self.functions {
                Functions::V1(init, ..) | Functions::V2(init, ..) | Functions::V3(init, ..) => {
                    init(&raw mut context, mask)
                }
                Functions::V4(init, ..) => init(&raw mut context, mask, text, id, nodes, ranks, rank, logger),
                Functions::V5(init, ..) | Functions::V6(init, ..) | Functions::V7(init, ..) => {
                    init(&raw mut context, id, mask, text, nodes, ranks, rank, logger)
                }
            }
        };
        name.wipe();
        if result != 0 {
            return Err(SimError::Init { path: self.path.clone(), result });
        }
        Ok(Context { bits: context as usize as u64, communicator: Arc::clone(communicator) })
    }

    /// `startEvent`. The strings are overwritten right after the call. None: the version does not have the kind, nothing was called.
    pub fn start(
        &self,
        context: &Context,
        descriptor: &EventDescriptor,
        rank: i32,
        parents: Parents,
    ) -> Option<Handle> {
        SCRATCH.with(|scratch| self.start_with(scratch, context, descriptor, rank, parents))
    }

    fn start_with(
        &self,
        scratch: &Scratch,
        context: &Context,
        descriptor: &EventDescriptor,
        rank: i32,
        parents: Parents,
    ) -> Option<Handle> {
        let call = StartCall { descriptor, parents, rank, communicator: &context.communicator, scratch };
        let mut handle: *mut c_void = null_mut();
        let context = pointer(context.bits);
        macro_rules! start {
            ($function:ident, $convert:ident) => {{
                let mut descriptor = convert::$convert(&call)?;
                // SAFETY: descriptor and strings live for the call; the signature is that of the version.
                unsafe { $function(context, &raw mut handle, &raw mut descriptor) }
            }};
        }
        let result = match self.functions {
            Functions::V1(_, start, _) => start!(start, to_v1),
            Functions::V2(_, start, _) => start!(start, to_v2),
            Functions::V3(_, start, _) => start!(start, to_v3),
            Functions::V4(_, start, _) => start!(start, to_v4),
            Functions::V5(_, start, _) => start!(start, to_v5),
            Functions::V6(_, start, _) => start!(start, to_v6),
            Functions::V7(_, start, _) => start!(start, to_v7),
        };
        scratch.wipe();
        self.check(result);
        Some(Handle(handle as usize as u64))
    }

    /// `recordEventState`. False: the version does not have the state, nothing was called.
    pub fn state(&self, handle: Handle, state: u8, argument: StateArgument) -> bool {
        if !crate::mask::has_state(state, self.api) {
            return false;
        }
        let (handle, state) = (pointer(handle.0), c_int::from(state));
        let word = convert::word_of(argument);
        macro_rules! old {
            ($function:ident, $v:ident) => {{
                let steps = if let StateArgument::Transfer { steps, .. } = argument { steps } else { 0 };
                let mut args =
                    $v::StateArgs { proxy_op: $v::ProxyOpArgs { trans_size: word.unwrap_or(0) as usize, steps } };
                let args = if word.is_some() { &raw mut args } else { null_mut() };
                // SAFETY: the arguments live for the call, or are NULL as NCCL's are for some states.
                unsafe { $function(handle, state, args) }
            }};
        }
        macro_rules! new {
            ($function:ident, $v:ident) => {{
                let mut args = $v::StateArgs { kernel_ch: $v::KernelChArgs { p_timer: word.unwrap_or(0) } };
                let args = if word.is_some() { &raw mut args } else { null_mut() };
                // SAFETY: as above.
                unsafe { $function(handle, state, args) }
            }};
        }
        let result = match self.functions {
            Functions::V1(.., function) => old!(function, v1),
            Functions::V2(.., function) => old!(function, v2),
            Functions::V3(.., function) => old!(function, v3),
            Functions::V4(.., function) => new!(function, v4),
            Functions::V5(.., function) => new!(function, v5),
            Functions::V6(.., function) => new!(function, v6),
            Functions::V7(.., function) => new!(function, v7),
        };
        self.check(result);
        true
    }

    /// `stopEvent`.
    pub fn stop(&self, handle: Handle) {
        // SAFETY: the signature is the same in all versions; the handle is the plugin's to judge.
        let result = unsafe { (self.stop)(pointer(handle.0)) };
        self.check(result);
    }

    /// `finalize`.
    pub fn finalize(&self, context: &Context) {
        // SAFETY: as above.
        let result = unsafe { (self.finalize)(pointer(context.bits)) };
        self.check(result);
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: taken once, here; `&mut` says that no call is running.
        let dl = unsafe { ManuallyDrop::take(&mut self.dl) };
        // A failing dlclose leaves the library loaded: nothing to do about it.
        let _ = dl.close();
    }
}

/// What a plugin logged through NCCL's logger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogMessage {
    /// 1 VERSION, 2 WARN, 3 INFO, 4 ABORT, 5 TRACE.
    pub level: i32,
    /// Subsystems; PROFILE is 0x4000.
    pub subsystems: u64,
    /// The text. Only a format of `%s` is rendered; of others the format itself stands here.
    pub text: String,
}

static LOG: Mutex<Vec<LogMessage>> = Mutex::new(Vec::new());
const MOST_LOG_MESSAGES: usize = 10_000;

/// Takes what plugins logged in this process since the last call; at most 10 000 messages are kept.
pub fn take_log_messages() -> Vec<LogMessage> {
    std::mem::take(&mut *LOG.lock().unwrap_or_else(PoisonError::into_inner))
}

/// C's variadic function cannot be written in stable Rust. One more named argument is found where the first variadic one
/// is, on x86-64 and aarch64 Linux, as long as it is a pointer.
extern "C" fn collect(
    level: c_int,
    subsystems: c_ulong,
    _file: *const c_char,
    _line: c_int,
    format: *const c_char,
    first: *const c_char,
) {
    if format.is_null() {
        return;
    }
    // SAFETY: the logger's contract: `format` is a C string.
    let format = unsafe { CStr::from_ptr(format) };
    let text = if format == c"%s" && !first.is_null() {
        // SAFETY: the format says that the first variadic argument is a C string.
        unsafe { CStr::from_ptr(first) }.to_string_lossy().into_owned()
    } else {
        format.to_string_lossy().into_owned()
    };
    let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    if log.len() < MOST_LOG_MESSAGES {
        log.push(LogMessage { level, subsystems, text });
    }
}

fn logger() -> DebugLogger {
    let function: extern "C" fn(c_int, c_ulong, *const c_char, c_int, *const c_char, *const c_char) = collect;
    // SAFETY: see `collect`: the calling conventions agree for these arguments.
    unsafe { std::mem::transmute::<_, DebugLogger>(function) }
}
