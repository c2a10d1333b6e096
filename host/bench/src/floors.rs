//! The floors: three small libraries in C, built when they are needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

const HEADER: &str = include_str!("../floors/floor.h");
const NULL: &str = include_str!("../floors/null.c");
const RING: &str = include_str!("../floors/ringfloor.c");

/// The built floors.
#[derive(Clone, Debug)]
pub struct Floors {
    /// Returns at once.
    pub null: PathBuf,
    /// One record a callback.
    pub ring: PathBuf,
    /// One record a callback, but none for parents and one for the end of a kernel channel.
    pub lean: PathBuf,
}

/// Builds them into a folder, with the C compiler in `CC`, else `cc`.
///
/// # Errors
/// There is no C compiler, or it fails.
pub fn build(folder: &Path) -> Result<Floors> {
    for (name, text) in [("floor.h", HEADER), ("null.c", NULL), ("ringfloor.c", RING)] {
        std::fs::write(folder.join(name), text)
            .with_context(|| format!("cannot write {name} to {}", folder.display()))?;
    }
    let build = |source: &str, library: &str, flags: &[&str]| -> Result<PathBuf> {
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let output = folder.join(library);
        let result = Command::new(&compiler)
            .args([
                "-std=gnu11",
                "-O2",
                "-fPIC",
                "-shared",
                "-fvisibility=hidden",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-pthread",
            ])
            .args(flags)
            .arg("-o")
            .arg(&output)
            .arg(folder.join(source))
            .output()
            .with_context(|| format!("cannot run the C compiler `{compiler}`: install one, or name it in CC"))?;
        ensure!(result.status.success(), "{compiler} on {source}: {}", String::from_utf8_lossy(&result.stderr));
        Ok(output)
    };
    Ok(Floors {
        null: build("null.c", "null.so", &[])?,
        ring: build("ringfloor.c", "ringfloor.so", &[])?,
        lean: build("ringfloor.c", "ringfloor-lean.so", &["-DLEAN"])?,
    })
}
