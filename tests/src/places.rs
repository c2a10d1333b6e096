//! Where things are: the library, the recordings, the interposer.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The plugin library: `COLLANDER_LIBRARY`, else the one beside this test in the target folder.
///
/// # Panics
/// There is none; the message says how to build it.
#[must_use]
pub fn library() -> PathBuf {
    if let Some(path) = std::env::var_os("COLLANDER_LIBRARY") {
        return path.into();
    }
    let test = std::env::current_exe().expect("a path of this program");
    let mut found = test.ancestors().skip(1).take(2).map(|folder| folder.join("libcollander_plugin.so"));
    found.find(|path| path.is_file()).expect(
        "no libcollander_plugin.so beside the tests: run `cargo build -p collander-plugin`, or set COLLANDER_LIBRARY",
    )
}

/// The recordings in `tests/recordings`, and in the folder that `COLLANDER_TEST_RECORDINGS` names; sorted.
///
/// # Panics
/// A folder cannot be read or holds none.
#[must_use]
pub fn recordings() -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings")];
    folders.extend(std::env::var_os("COLLANDER_TEST_RECORDINGS").map(PathBuf::from));
    let mut files = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let before = files.len();
        files.extend(
            entries.flatten().map(|entry| entry.path()).filter(|path| path.to_string_lossy().ends_with(".jsonl.gz")),
        );
        assert!(files.len() > before, "{}: no recording (*.jsonl.gz)", folder.display());
    }
    files.sort();
    files
}

/// Builds the library to preload that counts allocations a thread, and holds up writes; None (with a note) without a C
/// compiler, or where the tests run in an emulator.
///
/// # Errors
/// The compiler fails.
pub fn interposer(folder: &Path) -> Result<Option<PathBuf>> {
    let compiler = std::env::var_os("COLLANDER_TEST_CC").unwrap_or_else(|| "cc".into());
    if !cfg!(target_arch = "x86_64") && runner().is_some() {
        eprintln!("note: nothing is preloaded in an emulator");
        return Ok(None);
    }
    let library = folder.join("interposer.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/interposer.c");
    let built = Command::new(&compiler).args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).output();
    let Ok(built) = built else {
        eprintln!("note: no C compiler ({})", compiler.display());
        return Ok(None);
    };
    ensure!(built.status.success(), "the interposer: {}", String::from_utf8_lossy(&built.stderr));
    Ok(Some(library))
}

/// What must stand before a program of this target, if it is another machine's.
#[must_use]
pub fn runner() -> Option<Vec<String>> {
    let variable = format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_RUNNER", std::env::consts::ARCH.to_uppercase());
    let runner = std::env::var(variable).ok()?;
    Some(runner.split_whitespace().map(ToOwned::to_owned).collect())
}

/// An example scenario's text.
///
/// # Errors
/// It cannot be read.
pub fn scenario(name: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/scenarios").join(name);
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}
