//! Loads a library as NCCL does, in a child process: its initialisers are foreign code.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use serde::{Deserialize, Serialize};

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loaded {
    /// The dynamic linker's words, if it refused.
    pub error: Option<String>,
    /// Where the library was found.
    pub path: Option<String>,
    /// Versions of the profiler interface that it exports.
    pub versions: Vec<u8>,
}

/// `dlopen`s a name or path with NCCL's flags and looks for its symbols. Call it in a process of its own.
pub fn load(name: &str) -> Loaded {
    // SAFETY: loading runs the library's initialisers; this process exists only to see whether they run, and ends after it.
    let library = match unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) } {
        Ok(library) => library,
        Err(error) => {
            use std::error::Error as _;
            let words = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            return Loaded { error: Some(words), ..Loaded::default() };
        }
    };
    let mut loaded = Loaded::default();
    for version in 1..=9 {
        let symbol = format!("ncclProfiler_v{version}\0");
        // SAFETY: only the address is taken, nothing is read or called through it.
        if let Ok(found) = unsafe { library.get::<*const u8>(symbol.as_bytes()) } {
            loaded.versions.push(version);
            let address = found.into_raw() as usize;
            loaded.path = loaded.path.or_else(|| mapped_at(address));
        }
    }
    loaded
}

/// The file that is mapped at an address.
fn mapped_at(address: usize) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let (from, to) = (usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?);
        (from..to).contains(&address).then(|| rest.find('/').map(|at| rest[at..].to_owned()))?
    })
}
