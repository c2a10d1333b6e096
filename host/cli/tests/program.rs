//! The program from outside: exit codes, streams, pipes.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn collander(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_collander"));
    command
        .args(args)
        .env_remove("COLLANDER_LIBRARY")
        .env_remove("COLLANDER_CONFIG")
        .env_remove("NCCL_PROFILER_PLUGIN");
    command
}

fn run(args: &[&str]) -> Output {
    collander(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn sample(folder: &Path) {
    let mut lines = String::from(
        r#"{"type":"header","format":"collander-jsonl","version":1,"host":"h","pid":1,"process_start_ns":1,"session":1,"file":1,"sink":"s","job":"j","labels":{}}
{"type":"communicator","comm":0,"hash":"0x01","name":"x","label":"","rank":0,"ranks":2,"nodes":1,"api":5,"opened_ns":1}
"#,
    );
    for n in 0..3000 {
        lines += &format!(
            r#"{{"type":"op","id":{n},"kind":"coll","comm":0,"collective":"AllReduce","seq":{n},"bytes":{n},"duration_ns":1000,"timing":"gpu","algbw_gbs":1.0,"busbw_gbs":1.0}}{}"#,
            "\n"
        );
    }
    std::fs::write(folder.join("a.jsonl"), lines).unwrap();
}

#[test]
fn exit_codes_are_those_of_the_documentation() {
    let help = run(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).contains("Exit codes:"));
    for (args, code) in [
        (&["show"][..], 2),
        (&["show", "/nowhere/at/all"], 4),
        (&["sim", "--scenario", "/nowhere.toml", "--library", env!("CARGO_BIN_EXE_collander")], 2),
        (&["sim", "--recording", "/nowhere.gz", "--library", env!("CARGO_BIN_EXE_collander")], 4),
        (&["blackbox", "dump", "/nowhere.bin"], 4),
        (&["blackbox", "dump", "4194999"], 4),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty(), "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    sample(folder.path());
    let path = folder.path().to_str().unwrap();
    for args in [&["show", path, "--op", "5", "--json"][..], &["show", path, "--json"], &["show", path, "--limit", "0"]]
    {
        let mut child = collander(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!((child.wait().unwrap().code(), errors.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn colour_only_where_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    sample(folder.path());
    let path = folder.path().to_str().unwrap();
    assert!(!text(&run(&["show", path]).stdout).contains('\u{1b}'));
    assert!(text(&run(&["show", path, "--color", "always"]).stdout).contains('\u{1b}'));
    let narrow = collander(&["show", path]).env("COLUMNS", "80").output().unwrap();
    assert!(text(&narrow.stdout).lines().all(|line| line.chars().count() <= 80), "{}", text(&narrow.stdout));
}

#[test]
fn check_fails_on_damage() {
    let folder = tempfile::tempdir().unwrap();
    sample(folder.path());
    let file = folder.path().join("a.jsonl");
    let path = file.to_str().unwrap();
    assert_eq!(run(&["show", path, "--check"]).status.code(), Some(0));
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 10]).unwrap();
    assert_eq!(run(&["show", path]).status.code(), Some(0));
    assert_eq!(run(&["show", path, "--check"]).status.code(), Some(6));
}

#[test]
fn workers_that_cannot_drive_the_library_are_named() {
    // A program is no shared library: every worker says so.
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("s.toml");
    let toml = "ranks = 2\nsteps = 1\nrealtime = 0.0\n[[communicator]]\nname = \"world\"\n[[operation]]\ncommunicator = \
                \"world\"\nfunction = \"AllReduce\"\ncount = 4\n";
    std::fs::write(&scenario, toml).unwrap();
    let library = folder.path().join("library.so");
    std::fs::write(&library, "no library").unwrap();
    let args = ["sim", "--scenario", scenario.to_str().unwrap(), "--library", library.to_str().unwrap(), "--json"];
    let output = run(&args);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["failures"][1]["who"], "rank 1");
    assert!(text(&output.stderr).contains("rank 0: cannot load"), "{}", text(&output.stderr));
}

#[test]
fn the_doctor_says_what_fails_and_how_to_mend_it() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libnccl-profiler-collander.so");
    std::fs::write(&library, "no library").unwrap();
    let output = collander(&["doctor", "--library", library.to_str().unwrap(), "--json"])
        .env("NCCL_PROFILER_PLUGIN", "libcollander")
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["verdict"], "fail");
    let checks = value["checks"].as_array().unwrap();
    let verdict = |id: &str| checks.iter().filter(|c| c["id"] == id).map(|c| c["verdict"].clone()).collect::<Vec<_>>();
    assert_eq!(verdict("library"), ["fail"]);
    assert_eq!(verdict("nccl_profiler_plugin_value"), ["fail"]);
    assert_eq!(verdict("configuration"), ["ok"]);
    assert_eq!(verdict("cuda_graphs"), ["ok"]);
}
