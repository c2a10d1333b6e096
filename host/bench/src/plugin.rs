//! A loaded profiler library and the communicator that was opened with it.

use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use collander_abi::{v4, v5, v6, v7};

/// What NCCL has one of per process: the mask that a library may change at any time.
static MASK: AtomicI32 = AtomicI32::new(0);
/// Calls of the logger.
static LOG_CALLS: AtomicU64 = AtomicU64::new(0);

// One driver for v4 to v7: descriptors differ only in what follows, or in the upper bytes of `type` (little-endian).
const _: () = {
    use std::mem::offset_of;
    assert!(cfg!(target_endian = "little"));
    assert!(offset_of!(v4::Descriptor, payload.coll.proto) == offset_of!(v7::Descriptor, payload.coll.proto));
    assert!(
        offset_of!(v4::Descriptor, payload.kernel_ch.p_timer) == offset_of!(v7::Descriptor, payload.kernel_ch.p_timer)
    );
    assert!(
        offset_of!(v4::Descriptor, payload.proxy_op.is_send) == offset_of!(v7::Descriptor, payload.proxy_op.is_send)
    );
    assert!(
        offset_of!(v5::Descriptor, payload.coll.parent_group) == offset_of!(v7::Descriptor, payload.coll.parent_group)
    );
    assert!(
        offset_of!(v5::Descriptor, payload.coll_api.graph_captured)
            == offset_of!(v7::Descriptor, payload.coll_api.graph_captured)
    );
    assert!(
        offset_of!(v6::Descriptor, payload.coll.parent_group) == offset_of!(v7::Descriptor, payload.coll.parent_group)
    );
    assert!(size_of::<v4::StateArgs>() == 8 && size_of::<v7::StateArgs>() == 8);
};

/// A library with one open communicator of 16 ranks on 2 nodes.
#[derive(Debug)]
pub struct Plugin {
    library: Option<libloading::Library>,
    /// Interface version, 4 to 7.
    pub version: u32,
    /// Name that the library gives itself.
    pub name: String,
    /// Context of the communicator; NULL if the library is off.
    pub context: *mut c_void,
    /// `startEvent`.
    pub start: v7::StartEvent,
    /// `stopEvent`.
    pub stop: v7::StopEvent,
    /// `recordEventState`.
    pub state: v7::RecordEventState,
    finalize: v7::Finalize,
    /// Milliseconds that `dlopen` took.
    pub load_ms: f64,
    /// Milliseconds that `init` took.
    pub init_ms: f64,
}

// SAFETY: NCCL calls a library from any thread, with any context; nothing here is bound to a thread.
unsafe impl Sync for Plugin {}

impl Plugin {
    /// Loads a library and opens a communicator, with the highest version from 4 to 7 that the library has, or the
    /// one that is asked for.
    ///
    /// # Errors
    /// The library cannot be loaded, lacks the version, or `init` refuses.
    pub fn open(path: &Path, version: Option<u32>) -> Result<Self> {
        let before = Instant::now();
        // SAFETY: loading runs the library's initialisers, which is what the caller asks for.
        let library = unsafe { libloading::Library::new(path) }
            .with_context(|| format!("cannot load {}: is it a profiler library for this machine?", path.display()))?;
        let load_ms = milliseconds(before);
        let candidates = version.map_or(4..=7, |version| version..=version);
        let Some((version, table)) =
            candidates.clone().rev().find_map(|version| table(&library, version).map(|table| (version, table)))
        else {
            bail!("{} exports no ncclProfiler_v{} to v{}", path.display(), candidates.start(), candidates.end());
        };
        // SAFETY: the symbol is the struct of its version; the six members that are read are the same in all.
        let (name, functions) = unsafe { ((*table).name, functions(table)) };
        let Some((start, stop, state, finalize)) = functions else {
            bail!("{} has a NULL member in ncclProfiler_v{version}", path.display());
        };
        let name = if name.is_null() {
            String::new()
        } else {
            // SAFETY: it is a terminated string of the library.
            unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
        };
        let mut plugin = Self {
            library: Some(library),
            version,
            name,
            context: std::ptr::null_mut(),
            start,
            stop,
            state,
            finalize,
            load_ms,
            init_ms: 0.0,
        };
        let before = Instant::now();
        // SAFETY: the struct is the version's; context and mask live long enough, the mask for ever.
        let result = unsafe { init(table, version, &mut plugin.context) };
        plugin.init_ms = milliseconds(before);
        if result != Some(0) {
            bail!("init of {} returned {result:?} instead of success", path.display());
        }
        Ok(plugin)
    }

    /// The mask now, as NCCL would read it: without what the version does not know.
    #[inline]
    pub fn mask(&self) -> u64 {
        let known = match self.version {
            4 => 0x00ff,
            5 => 0x0fff,
            6 => 0x7fff,
            _ => 0xffff,
        };
        MASK.load(Ordering::Relaxed) as u64 & known
    }

    /// Closes the communicator and the library; returns the milliseconds that `finalize` took.
    pub fn close(mut self) -> f64 {
        let before = Instant::now();
        if !self.context.is_null() {
            // SAFETY: the context is the library's and is not used afterwards.
            unsafe { (self.finalize)(self.context) };
        }
        let took = milliseconds(before);
        drop(self.library.take());
        took
    }
}

/// Calls of the logger so far.
pub fn log_calls() -> u64 {
    LOG_CALLS.load(Ordering::Relaxed)
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn table(library: &libloading::Library, version: u32) -> Option<*const v7::Profiler> {
    let symbol = collander_abi::SYMBOLS.get(version as usize - 1)?;
    // SAFETY: only the address is taken here.
    unsafe { library.get::<*const v7::Profiler>(symbol.to_bytes_with_nul()) }.ok().map(|symbol| *symbol)
}

type Functions = (v7::StartEvent, v7::StopEvent, v7::RecordEventState, v7::Finalize);

/// # Safety
/// `table` is the struct of a version from 4 to 7.
unsafe fn functions(table: *const v7::Profiler) -> Option<Functions> {
    // SAFETY: members are read one by one, so that nothing behind the sixth is touched.
    unsafe { Some(((*table).start_event?, (*table).stop_event?, (*table).record_event_state?, (*table).finalize?)) }
}

/// # Safety
/// `table` is the struct of `version`.
unsafe fn init(table: *const v7::Profiler, version: u32, context: &mut *mut c_void) -> Option<c_int> {
    const COMM_ID: u64 = 0x00c0_11a4_de12_0001;
    let (name, nodes, ranks, rank) = (c"bench".as_ptr(), 2, 16, 0);
    // SAFETY: logging is a C variadic function here too: what follows the five named arguments is not looked at.
    let logger: collander_abi::DebugLogger = unsafe {
        std::mem::transmute::<unsafe extern "C" fn(c_int, c_ulong, *const c_char, c_int, *const c_char), _>(log)
    };
    // SAFETY: each version's own signature; the pointers are valid as the interface asks.
    unsafe {
        if version == 4 {
            let init = (*table.cast::<v4::Profiler>()).init?;
            Some(init(context, MASK.as_ptr(), name, COMM_ID, nodes, ranks, rank, Some(logger)))
        } else {
            let init = (*table).init?;
            Some(init(context, COMM_ID, MASK.as_ptr(), name, nodes, ranks, rank, Some(logger)))
        }
    }
}

/// As NCCL's logger with `NCCL_DEBUG` unset: returns after looking at the level.
unsafe extern "C" fn log(_level: c_int, _flags: c_ulong, _file: *const c_char, _line: c_int, _format: *const c_char) {
    LOG_CALLS.fetch_add(1, Ordering::Relaxed);
}
