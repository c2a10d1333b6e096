//! `cargo xtask package`

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::steps::{root, succeed};
use crate::{artifacts, install};

/// The library may be so large, stripped.
pub const MAX_LIBRARY_BYTES: u64 = 3 << 20;

/// Builds what is shipped and packs it: `lib/` and `bin/`, README, LICENSE.
///
/// # Errors
/// The build fails, the library exports something else or is too large, or the folder cannot be written.
pub fn run(out: &str) -> Result<()> {
    install::c_compiler()?;
    let built = artifacts::build("dist")?;
    artifacts::check_exports(&built.library)?;
    let name = format!("collander-{}-{}-linux", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let out = root().join(out);
    let folder = out.join(&name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("cannot replace {}", folder.display()))?;
    }
    let copies = [
        (built.library.as_path(), format!("lib/{}", artifacts::LIBRARY)),
        (built.program.as_path(), format!("bin/{}", artifacts::PROGRAM)),
        (&root().join("README.md"), "README.md".to_owned()),
        (&root().join("LICENSE"), "LICENSE".to_owned()),
    ];
    for (from, to) in copies {
        let to = folder.join(to);
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        }
        std::fs::copy(from, &to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    }
    let bytes = size(&folder.join("lib").join(artifacts::LIBRARY))?;
    println!(
        "library: {bytes} bytes ({:.2} MiB, limit {} MiB)",
        bytes as f64 / (1 << 20) as f64,
        MAX_LIBRARY_BYTES >> 20
    );
    ensure!(bytes <= MAX_LIBRARY_BYTES, "the library has {bytes} bytes, more than {MAX_LIBRARY_BYTES}");
    let tarball = out.join(format!("{name}.tar.gz"));
    // The same input gives the same bytes: order, owner and time are fixed.
    let fixed = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"];
    succeed(Command::new("tar").args(fixed).arg("-czf").arg(&tarball).arg("-C").arg(&out).arg(&name))?;
    println!("package: {} ({} bytes)", tarball.display(), size(&tarball)?);
    Ok(())
}

fn size(path: &Path) -> Result<u64> {
    Ok(std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.len())
}
