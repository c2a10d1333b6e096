//! What no compiler checks: sizes of files, links, lints that a crate forgot to switch on, unsafe code where none may be.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::steps::root;
use crate::{artifacts, links};

/// Longest source file, in lines, tests included.
const MAX_LINES: usize = 600;
/// Largest file in the repository; recordings are the largest there are.
const MAX_BYTES: u64 = 2 << 20;
/// Crates without a line of unsafe code, by their folder.
const SAFE: [&str; 6] = ["host/event", "host/pipeline", "host/sinks", "host/recording", "host/config", "host/xtask"];
/// Lines before an `unsafe` block or implementation in which its reason must stand.
const REASON_LINES: usize = 8;

/// All checks, of a library built anew too.
///
/// # Errors
/// Something is found; each finding is printed.
pub fn run() -> Result<()> {
    files()?;
    artifacts::check_exports(&artifacts::build("dev")?.library)
}

/// The checks that read files only.
///
/// # Errors
/// Something is found; each finding is printed.
pub fn files() -> Result<()> {
    let files = repository_files()?;
    let mut findings = Vec::new();
    for file in &files {
        check_file(file, &mut findings)?;
    }
    links::check(&root(), &files, &mut findings)?;
    for folder in SAFE {
        let source = ["src/lib.rs", "src/main.rs"].iter().map(|name| root().join(folder).join(name));
        let Some(source) = source.into_iter().find(|path| path.exists()) else { continue };
        let text = std::fs::read_to_string(&source)?;
        if text.lines().count() > 5 && !text.contains("#![forbid(unsafe_code)]") {
            findings.push(format!("{folder}: its root module must have #![forbid(unsafe_code)]"));
        }
    }
    for finding in &findings {
        eprintln!("{finding}");
    }
    ensure!(findings.is_empty(), "{} findings", findings.len());
    Ok(())
}

fn check_file(file: &Path, findings: &mut Vec<String>) -> Result<()> {
    let path = root().join(file);
    let shown = file.display();
    let bytes = std::fs::metadata(&path).with_context(|| format!("cannot read {shown}"))?.len();
    if bytes > MAX_BYTES {
        findings.push(format!("{shown}: {bytes} bytes, more than {MAX_BYTES}: build it instead of committing it"));
    }
    let name = file.file_name().unwrap_or_default();
    if name == "Cargo.toml" {
        let text = std::fs::read_to_string(&path)?;
        if text.contains("[package]") && !text.contains("[lints]\nworkspace = true") {
            findings.push(format!("{shown}: lacks `[lints]` with `workspace = true`"));
        }
    }
    if file.extension().is_some_and(|extension| extension == "rs") {
        let text = std::fs::read_to_string(&path).with_context(|| format!("{shown} is not UTF-8"))?;
        let lines = text.lines().count();
        // What a generator writes is as long as its input makes it.
        let generated = text.lines().take(5).any(|line| line.contains("Generated from"));
        if lines > MAX_LINES && !generated {
            findings.push(format!("{shown}: {lines} lines, more than {MAX_LINES}: split it"));
        }
        findings.extend(
            unexplained(&text).into_iter().map(|line| format!("{shown}:{line}: unsafe without a SAFETY comment")),
        );
    }
    Ok(())
}

/// Numbers of the lines that open an unsafe block or implementation without a reason before or on them.
fn unexplained(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let opens = |line: &str| {
        let code = line.split("//").next().unwrap_or("");
        // Not in a string: this file's own.
        ["unsafe {", "unsafe impl "].iter().any(|word| code.contains(word) && !code.contains(&format!("\"{word}")))
    };
    let explained = |index: usize| {
        lines[index.saturating_sub(REASON_LINES)..=index]
            .iter()
            .any(|line| line.contains("SAFETY") || line.contains("# Safety"))
    };
    (0..lines.len()).filter(|&index| opens(lines[index]) && !explained(index)).map(|index| index + 1).collect()
}

/// What git knows or would take, relative to the root; without git, all but `target*`.
fn repository_files() -> Result<Vec<PathBuf>> {
    let listing = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root())
        .output();
    if let Ok(listing) = listing
        && listing.status.success()
    {
        let text = String::from_utf8_lossy(&listing.stdout).into_owned();
        return Ok(text.split('\0').map(PathBuf::from).filter(|path| root().join(path).is_file()).collect());
    }
    let mut files = Vec::new();
    walk(Path::new(""), &mut files)?;
    Ok(files)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(root().join(folder))? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), folder.join(entry.file_name()));
        let name = name.to_string_lossy();
        if name.starts_with("target") || name == ".git" || name == "out" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            walk(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_needs_a_reason() {
        let block = concat!("    unsafe", " { read() };\n");
        assert_eq!(unexplained(block), [1]);
        assert_eq!(unexplained(&format!("// SAFETY: it is ours.\n{block}")), [0usize; 0]);
        assert_eq!(
            unexplained(&format!("// SAFETY: far above.\n{}{block}", "\n".repeat(REASON_LINES))),
            [REASON_LINES + 2]
        );
        assert_eq!(unexplained(concat!("// unsafe", " { in a comment }")), [0usize; 0]);
    }
}
