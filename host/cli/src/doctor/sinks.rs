//! Whether the configuration is valid and the sinks can write.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use collander_config::{Config, Environment, JsonFormat, Jsonl, SinkKind, load_with_notes, sanitise};
use rustix::fs::{StatVfsMountFlags, statvfs};

use super::Check;

const ID: &str = "configuration";

/// Loads it as the library does.
pub fn configuration(environment: &Environment) -> (Vec<Check>, Option<Config>) {
    let source = environment
        .os("COLLANDER_CONFIG")
        .filter(|path| !path.is_empty())
        .map_or_else(|| "no COLLANDER_CONFIG: defaults".to_owned(), |path| path.to_string_lossy().into_owned());
    match load_with_notes(environment) {
        Err(error) => {
            let fix = "mend it; until then the plugin stays off and the job runs on without it";
            (error.lines().into_iter().map(|line| Check::fail(ID, line, fix)).collect(), None)
        }
        Ok(loaded) => {
            let mut checks = Vec::new();
            if loaded.config.enabled {
                let sinks: Vec<_> = loaded.config.sinks.iter().map(|sink| sink.name.as_str()).collect();
                checks.push(Check::ok(ID, format!("valid ({source}); sinks: {}", sinks.join(", "))));
            } else {
                let what = format!("valid ({source}), and switches the plugin off (enabled = false)");
                checks.push(Check::warn(ID, what, "set enabled = true"));
            }
            checks.extend(loaded.notes.into_iter().map(|note| Check::warn(ID, note, "see docs/reference/config.md")));
            (checks, Some(loaded.config))
        }
    }
}

/// Checks every sink.
pub fn check(config: &Config) -> Vec<Check> {
    config
        .sinks
        .iter()
        .flat_map(|sink| match &sink.kind {
            SinkKind::Jsonl(jsonl) => check_folder(&sink.name, &folder(jsonl, config), jsonl),
        })
        .collect()
}

/// The folder that a process on this host would use.
fn folder(jsonl: &Jsonl, config: &Config) -> PathBuf {
    let text = jsonl.directory.to_string_lossy();
    let text = text.replace("{job}", &sanitise(&config.job.id)).replace("{host}", &sanitise(&config.job.host));
    PathBuf::from(text.replace("{pid}", &std::process::id().to_string()))
}

/// Whether a folder can be made and written, and has space.
pub fn check_folder(sink: &str, folder: &Path, jsonl: &Jsonl) -> Vec<Check> {
    const ID: &str = "sink";
    let shown = format!("sink {sink}: {}", folder.display());
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let Some(there) = absolute.ancestors().find(|path| path.exists()) else {
        return vec![Check::fail(ID, format!("{shown}: no such folder"), "name another folder")];
    };
    if !there.is_dir() {
        let what = format!("{shown}: {} is a file", there.display());
        return vec![Check::fail(ID, what, "name another folder, or move the file away")];
    }
    let mut checks = Vec::new();
    if let Err(error) = try_to_write(there) {
        let what = format!("{shown}: {} is not writable for this user: {error}", there.display());
        checks.push(Check::fail(ID, what, "name another folder (COLLANDER_SINK_DIRECTORY), or change its permissions"));
        return checks;
    }
    let Ok(space) = statvfs(there) else {
        checks.push(Check::ok(ID, format!("{shown} is writable")));
        return checks;
    };
    if space.f_flag.contains(StatVfsMountFlags::RDONLY) {
        checks.push(Check::fail(ID, format!("{shown} is on a read-only file system"), "name another folder"));
        return checks;
    }
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let text = crate::units::bytes;
    let fix = "free some space, name another folder, or lower max_bytes";
    // Inspector's formats are bounded by nothing but the disk.
    let per_process = if jsonl.format == JsonFormat::Collander { jsonl.max_bytes } else { jsonl.rotate_bytes };
    checks.push(if free < jsonl.rotate_bytes.min(per_process) {
        Check::fail(ID, format!("{shown}: only {} are free; what does not fit is lost and counted", text(free)), fix)
    } else if free < per_process.saturating_mul(8) {
        let what = format!("{shown}: {} are free, and each process may write {}", text(free), text(per_process));
        Check::warn(ID, what, fix)
    } else {
        Check::ok(ID, format!("{shown} is writable, {} free, at most {} a process", text(free), text(per_process)))
    });
    if space.f_files > 0 && space.f_favail == 0 {
        checks.push(Check::fail(ID, format!("{shown}: no inode is left"), "delete files"));
    }
    checks
}

fn try_to_write(folder: &Path) -> std::io::Result<()> {
    let probe = folder.join(format!(".collander-doctor-{}", std::process::id()));
    OpenOptions::new().write(true).create_new(true).open(&probe)?;
    fs::remove_file(&probe)
}
