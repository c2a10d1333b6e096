//! A compiler for another target: rustup's, or, where rustup cannot fetch it, one made from Debian's packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::install::{self, has, has_target};
use crate::steps::{cargo, output, show, succeed, target_folder};

/// The multiarch folder of this machine's libraries in Debian.
const MULTIARCH: &str = concat_arch("-linux-gnu");
/// This machine as rustc names it.
const HOST: &str = concat_arch("-unknown-linux-gnu");

const fn concat_arch(suffix: &str) -> &str {
    match (cfg!(target_arch = "x86_64"), suffix.len() == "-linux-gnu".len()) {
        (true, true) => "x86_64-linux-gnu",
        (true, false) => "x86_64-unknown-linux-gnu",
        (false, true) => "aarch64-linux-gnu",
        (false, false) => "aarch64-unknown-linux-gnu",
    }
}

/// Makes sure that code can be compiled for `target`. Returns None if the compiler in use can, after `rustup target add`
/// if need be; else the path of a compiler that can.
///
/// # Errors
/// Neither way works; the message says what to do.
pub fn for_target(target: &str) -> Result<Option<PathBuf>> {
    let rustc = std::env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
    if has_target(&rustc, target) {
        return Ok(None);
    }
    if has("rustup") {
        eprintln!("installing the Rust target {target}");
        if install::works(Command::new("rustup").args(["target", "add", target])) && has_target(&rustc, target) {
            return Ok(None);
        }
    }
    let folder = target_folder().join("toolchain").join(target);
    let rustc = folder.join("bin/rustc");
    if has_target(&rustc, target) {
        return Ok(Some(rustc));
    }
    eprintln!("rustup cannot add {target}: making a toolchain from Debian's packages (about a minute)");
    from_debian(&folder, target).with_context(|| {
        format!("no compiler for {target}: run `rustup target add {target}` where the network allows it")
    })?;
    ensure!(has_target(&rustc, target), "the toolchain in {} has no library for {target}", folder.display());
    Ok(Some(rustc))
}

/// Unpacks, never installs, Debian's newest compiler and builds the standard library of `target` with it.
fn from_debian(folder: &Path, target: &str) -> Result<()> {
    if !has("apt-get") || !has("dpkg-deb") {
        bail!("this is no Debian system");
    }
    let work = folder.with_extension("work");
    for path in [folder, &work] {
        if path.exists() {
            std::fs::remove_dir_all(path)?;
        }
        std::fs::create_dir_all(path)?;
    }
    let unpacked = unpack_packages(&work)?;
    // A layout that the compiler finds itself in wherever it lies: bin/rustc, lib/*.so, lib/rustlib.
    let (bin, lib) = (folder.join("bin"), folder.join("lib"));
    std::fs::create_dir_all(&bin)?;
    std::fs::rename(unpacked.join("usr/lib/rustlib"), {
        std::fs::create_dir_all(&lib)?;
        lib.join("rustlib")
    })?;
    std::fs::rename(unpacked.join("usr/bin/rustc"), bin.join("rustc.bin"))?;
    for entry in std::fs::read_dir(unpacked.join("usr/lib").join(MULTIARCH))? {
        let path = entry?.path();
        if let Some(name) = path.file_name()
            && name.to_string_lossy().contains(".so")
        {
            std::fs::rename(&path, lib.join(name))?;
        }
    }
    let launcher = bin.join("rustc");
    std::fs::write(
        &launcher,
        "#!/bin/sh\nhere=$(dirname \"$(readlink -f \"$0\")\")\n\
         LD_LIBRARY_PATH=$here/../lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec \"$here/rustc.bin\" \"$@\"\n",
    )?;
    succeed(Command::new("chmod").arg("+x").arg(&launcher))?;
    let source = lib.join("rustlib/src/rust");
    remove(&source)?;
    std::fs::create_dir_all(&source)?;
    let library = find_library_source(&unpacked.join("usr/src"))?;
    std::fs::rename(library, source.join("library"))?;
    standard_library(&work, &lib.join("rustlib"), &launcher, target)?;
    std::fs::remove_dir_all(&work)?;
    Ok(())
}

/// Downloads and unpacks compiler, its libraries and the standard library's source.
fn unpack_packages(work: &Path) -> Result<PathBuf> {
    let version = field("apt-cache", &["policy", "rustc-web"], "Candidate:")?;
    let std_dev = format!("libstd-rust-web-dev={version}");
    let shared = depends_on(&std_dev, "libstd-rust-web-")?;
    let shared = format!("{shared}={version}");
    let llvm = depends_on(&shared, "libllvm")?;
    let (rustc, source) = (format!("rustc-web={version}"), format!("rust-web-src={version}"));
    let packages = [rustc.as_str(), &source, &std_dev, &shared, &llvm];
    let mut download = Command::new("apt-get");
    download.args(["-qq", "-o", "APT::Sandbox::User=root", "download"]).args(packages).current_dir(work);
    succeed(&mut download)?;
    let unpacked = work.join("unpacked");
    for entry in std::fs::read_dir(work)? {
        let package = entry?.path();
        if package.extension().is_some_and(|extension| extension == "deb") {
            succeed(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&unpacked))?;
        }
    }
    Ok(unpacked)
}

fn field(program: &str, args: &[&str], name: &str) -> Result<String> {
    let mut command = Command::new(program);
    let text = output(command.args(args))?;
    let value = text.lines().find_map(|line| line.trim().strip_prefix(name)).map(str::trim);
    match value {
        Some(value) if !value.is_empty() && value != "(none)" => Ok(value.to_owned()),
        _ => bail!("{} says no {name} (try apt-get update)", show(&command)),
    }
}

/// The first package that `package` depends on and whose name begins so.
fn depends_on(package: &str, beginning: &str) -> Result<String> {
    let depends = field("apt-cache", &["show", package], "Depends:")?;
    let names = depends.split([',', '|']).filter_map(|one| one.split_whitespace().next());
    let digits =
        |name: &str| name.strip_prefix(beginning).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    match names.into_iter().find(|name| digits(name)) {
        Some(name) => Ok(name.to_owned()),
        None => bail!("{package} depends on no {beginning}…"),
    }
}

fn find_library_source(folder: &Path) -> Result<PathBuf> {
    for entry in std::fs::read_dir(folder)? {
        let library = entry?.path().join("library");
        if library.join("std/Cargo.toml").exists() {
            return Ok(library);
        }
    }
    bail!("{} holds no source of the standard library", folder.display())
}

/// Builds the standard library as a dependency of an empty crate and puts it where the compiler looks.
fn standard_library(work: &Path, rustlib: &Path, rustc: &Path, target: &str) -> Result<()> {
    // Debian's compiler uses the system's linker; ours brings the tools (rust-lld) that some targets need.
    let tools = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let tools = Path::new(tools.trim()).join("lib/rustlib").join(HOST).join("bin");
    let place = rustlib.join(HOST).join("bin");
    if tools.exists() && !place.exists() {
        std::os::unix::fs::symlink(tools, place)?;
    }
    let empty = work.join("empty");
    std::fs::create_dir_all(empty.join("src"))?;
    std::fs::write(empty.join("src/lib.rs"), "")?;
    let manifest = "[package]\nname = \"empty\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[workspace]\n";
    std::fs::write(empty.join("Cargo.toml"), manifest)?;
    let mut build = cargo(&["build", "--release", "--quiet", "--target", target, "-Zbuild-std=std,panic_unwind,test"]);
    build
        .current_dir(&empty)
        .env("RUSTC", rustc)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", empty.join("target"));
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTUP_TOOLCHAIN"] {
        build.env_remove(variable);
    }
    succeed(&mut build)?;
    let libraries = rustlib.join(target).join("lib");
    std::fs::create_dir_all(&libraries)?;
    for entry in std::fs::read_dir(empty.join("target").join(target).join("release/deps"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".rlib") && !name.starts_with("libempty-") {
            std::fs::copy(&path, libraries.join(&name))?;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(data) if data.is_dir() => Ok(std::fs::remove_dir_all(path)?),
        Ok(_) => Ok(std::fs::remove_file(path)?),
        Err(_) => Ok(()),
    }
}
