//! Builds the C plugin for tests, a copy for each test, and reads its counts.
#![allow(unsafe_code, reason = "reads the counters of a C library")]

use std::path::PathBuf;
use std::process::Command;

use collander_event::EventKind;
use libloading::Library as Dl;

/// A copy of the recorder, kept loaded so that its counters outlive the simulation.
pub(super) struct Recorder {
    pub(super) path: PathBuf,
    dl: Dl,
    _folder: tempfile::TempDir,
}

impl Recorder {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("librecorder.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/recorder.c");
        let built = Command::new(std::env::var_os("COLLANDER_TEST_CC").unwrap_or_else(|| "cc".into()))
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&path)
            .arg(source)
            .status();
        assert!(built.expect("a C compiler named cc").success());
        // SAFETY: the library has no constructors.
        let dl = unsafe { Dl::new(&path) }.expect("loadable");
        Self { path, dl, _folder: folder }
    }

    fn address<T>(&self, name: &str) -> *mut T {
        // SAFETY: only the address is taken.
        let symbol = unsafe { self.dl.get::<*mut T>(name.as_bytes()) }.expect("the recorder has it");
        // SAFETY: the symbol's own address is what `get` returned as the pointer's value.
        unsafe { symbol.into_raw() }.as_raw_ptr().cast()
    }

    fn read(&self, name: &str, index: usize) -> u64 {
        // SAFETY: an array of uint64_t of at least that length; the simulation has ended.
        unsafe { self.address::<u64>(name).add(index).read() }
    }

    pub(super) fn set_mask(&self, mask: u32) {
        // SAFETY: an int; nothing runs yet.
        unsafe { self.address::<i32>("recorder_mask").write(mask as i32) };
    }

    pub(super) fn set_null_kinds(&self, kinds: u32) {
        // SAFETY: an unsigned; nothing runs yet.
        unsafe { self.address::<u32>("recorder_null_kinds").write(kinds) };
    }

    pub(super) fn started(&self, kind: EventKind) -> u64 {
        self.read("recorder_kinds", kind as usize)
    }

    /// init, start, state, stop, finalize, calls after stop, other violations.
    pub(super) fn calls(&self) -> [u64; 7] {
        std::array::from_fn(|n| self.read("recorder_calls", n))
    }

    pub(super) fn timers(&self) -> u64 {
        self.read("recorder_timers", 0)
    }
}
