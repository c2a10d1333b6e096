//! The mistakes that people make, each found.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use collander_config::{Compression, Environment, JsonFormat, Jsonl};

use super::choice::{Choice, check, choice, other_variables};
use super::loader::Loaded;
use super::surroundings::Surroundings;
use super::*;

const OURS: &str = "/opt/collander/lib/libnccl-profiler-collander.so";

/// A dynamic linker that knows our library by its path and by its file name, and Inspector's.
fn linker(name: &str) -> Loaded {
    let path = match name {
        OURS | "libnccl-profiler-collander.so" => OURS,
        "libnccl-profiler-inspector.so" => "/opt/inspector/libnccl-profiler-inspector.so",
        "libz.so" => return Loaded { path: Some("/lib/libz.so".into()), ..Loaded::default() },
        _ => {
            let error = format!("{name}: cannot open shared object file: No such file or directory");
            return Loaded { error: Some(error), ..Loaded::default() };
        }
    };
    Loaded { error: None, path: Some(path.into()), versions: (1..=7).collect() }
}

fn judged(value: Option<&str>) -> Vec<Check> {
    let surroundings = Surroundings::from_pairs(value.map(|value| ("NCCL_PROFILER_PLUGIN", value)));
    check(&surroundings, Some(Path::new(OURS)), &linker)
}

fn worst(checks: &[Check]) -> Verdict {
    checks.iter().map(|check| check.verdict).max().unwrap()
}

#[test]
fn nccl_tries_names_by_its_rules() {
    let names = |list: &[&str]| Choice::Names(list.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(choice(None), names(&["libnccl-profiler.so"]));
    assert_eq!(choice(Some("")), names(&["libnccl-profiler.so"]));
    assert_eq!(choice(Some("NONE")), Choice::Off);
    assert_eq!(choice(Some("static")), Choice::Static);
    assert_eq!(choice(Some("collander")), names(&["collander", "libnccl-profiler-collander.so"]));
    assert_eq!(choice(Some("/a/b.so")), names(&["/a/b.so"]));
    assert_eq!(choice(Some("libnccl-profiler-collander.so")), names(&["libnccl-profiler-collander.so"]));
    assert_eq!(choice(Some("collander.so")), names(&["collander.so", "libnccl-profiler-collander.so.so"]));
}

#[test]
fn what_works_is_ok() {
    for value in ["collander", OURS, "libnccl-profiler-collander.so"] {
        let checks = judged(Some(value));
        assert_eq!(worst(&checks), Verdict::Ok, "{checks:?}");
        assert!(checks[0].what.contains(OURS));
    }
}

#[test]
fn the_common_mistakes_are_named() {
    for (value, word) in [
        ("none", "no profiler"),
        ("s", "STATIC_PLUGIN"),
        ("libcollander", "write only `collander`"),
        ("nccl-profiler-collander", "write only `collander`"),
        ("collander.so", "write only `collander`"),
        (" collander", "white space"),
        ("\"collander\"", "quotes"),
        ("~/lib/libnccl-profiler-collander.so", "expands"),
        ("collander,inspector", "one profiler plugin only"),
        ("/nowhere/libnccl-profiler-collander.so", "No such file"),
        ("libz.so", "no profiler plugin"),
    ] {
        let checks = judged(Some(value));
        assert_eq!(worst(&checks), Verdict::Fail, "{value}: {checks:?}");
        assert!(checks.iter().any(|c| c.what.contains(word)), "{value}: {checks:?}");
        assert!(checks.iter().any(|c| c.fix.contains(OURS)), "{value}: {checks:?}");
    }
    assert!(judged(Some("other"))[0].fix.contains("LD_LIBRARY_PATH=/opt/collander/lib"));
    assert_eq!(worst(&judged(None)), Verdict::Warn);
    assert_eq!(worst(&judged(Some("inspector"))), Verdict::Warn);
    assert!(judged(Some("./lib/x.so")).iter().any(|c| c.what.contains("relative path")));
}

#[test]
fn a_file_of_configuration_counts_where_the_environment_is_silent() {
    let mut surroundings = Surroundings::from_pairs([("A", "1")]);
    surroundings.add_file(Path::new("/etc/nccl.conf"), "# x\nNCCL_PROFILER_PLUGIN=none\nA=2\n");
    assert_eq!((surroundings.get("A"), surroundings.get("NCCL_PROFILER_PLUGIN")), (Some("1"), Some("none")));
    let checks = check(&surroundings, None, &linker);
    assert!(checks[0].what.contains("from /etc/nccl.conf"), "{checks:?}");
}

#[test]
fn misleading_variables_are_named() {
    let checks = other_variables(&Surroundings::from_pairs([
        ("NCCL_PROFILE_EVENT_MASK", "71"),
        ("NCCL_INSPECTOR_ENABLE", "1"),
        ("NCCL_PROFILER_PLUGIN", "inspector"),
    ]));
    assert_eq!(
        checks.iter().map(|c| (c.id, c.verdict)).collect::<Vec<_>>(),
        [("event_mask", Verdict::Warn), ("inspector", Verdict::Fail)]
    );
}

#[test]
fn a_file_that_is_no_library_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("libnccl-profiler-collander.so");
    std::fs::write(&file, "text").unwrap();
    let checks = library::check(&file, &linker);
    assert!(checks[0].verdict == Verdict::Fail && checks[0].what.contains("no ELF"), "{checks:?}");
    // The header of a shared library for aarch64 or x86-64, whichever we are not, without sections.
    let mut elf = vec![0; 64];
    elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
    elf[18..20].copy_from_slice(&(if elf::OWN_MACHINE == 62 { 183_u16 } else { 62 }).to_le_bytes());
    std::fs::write(&file, elf).unwrap();
    let checks = library::check(&file, &linker);
    assert!(checks[0].what.contains("is built for"), "{checks:?}");
    assert_eq!(library::check(Path::new("/nowhere.so"), &linker)[0].verdict, Verdict::Fail);
}

fn jsonl(max_bytes: u64) -> Jsonl {
    Jsonl {
        directory: PathBuf::new(),
        format: JsonFormat::Collander,
        compression: Compression::Zstd,
        level: 3,
        flush: Duration::from_secs(1),
        rotate_bytes: max_bytes / 8,
        max_bytes,
        require_kernel_timing: true,
        min_size_bytes: 0,
        verbose: false,
    }
}

#[test]
fn sinks_must_be_writable_and_have_space() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("a/b");
    let checks = sinks::check_folder("jsonl", &deep, &jsonl(1 << 16));
    assert_eq!(worst(&checks), Verdict::Ok, "{checks:?}");
    assert!(!folder.path().join("a").exists(), "a check leaves nothing behind");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let checks = sinks::check_folder("jsonl", &deep, &jsonl(u64::MAX));
    assert_eq!(worst(&checks), Verdict::Fail, "{checks:?}");
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(sinks::check_folder("jsonl", &file.join("x"), &jsonl(1))[0].what.contains("is a file"));
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o555)).unwrap();
    let checks = sinks::check_folder("jsonl", &deep, &jsonl(1 << 16));
    // The superuser may write everywhere.
    assert!(rustix::process::geteuid().is_root() || checks[0].what.contains("not writable"), "{checks:?}");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_bad_configuration_names_its_keys() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("collander.toml");
    std::fs::write(&file, "[drain]\nperiod = \"sideways\"\n[nonsense]\n").unwrap();
    let environment: Environment = [("COLLANDER_CONFIG", file.as_os_str())].into_iter().collect();
    let (checks, config) = sinks::configuration(&environment);
    assert!(config.is_none() && checks.len() >= 2, "{checks:?}");
    assert!(checks.iter().any(|c| c.what.contains("sideways")), "{checks:?}");
    let (checks, config) = sinks::configuration(&Environment::default());
    assert_eq!((worst(&checks), config.is_some()), (Verdict::Ok, true));
}

#[test]
fn limits_are_judged() {
    let ids = |checks: Vec<Check>| checks.into_iter().map(|c| (c.id, c.verdict)).collect::<Vec<_>>();
    assert_eq!(ids(system::limits(None, None, None, 1, 1)), [("limits", Verdict::Ok)]);
    assert_eq!(
        ids(system::limits(Some(1 << 20), Some(65536), Some(1024), 1 << 26, 1 << 25)),
        [("address_space", Verdict::Fail), ("locked_memory", Verdict::Warn), ("file_size", Verdict::Fail)]
    );
    assert_eq!(system::clock("flags : fpu constant_tsc nonstop_tsc").verdict, Verdict::Ok);
}
