//! The black box of another process: while it runs, and after kill -9 while it was held.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use collander_event::{Communicator, Detail, EventId, EventKind, Payload, Record, StartHeader};
use collander_ring::Region;

const VARIABLE: &str = "COLLANDER_TEST_BLACKBOX_PROCESS";

/// Not a test by itself: the process that is looked at, this program again.
#[test]
fn process_with_rings() {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    let region = Region::create(1 << 20, 5).unwrap();
    let communicator = Communicator { hash: 0xfeed_0000_0000_0001, rank: 1, ranks: Some(2), ..Communicator::default() };
    region.write_communicator(&communicator, true);
    let (function, datatype) = (region.intern(b"AllReduce"), region.intern(b"ncclFloat32"));
    let mut ring = region.acquire(1 << 16).unwrap();
    let id = EventId::new(5, ring.ring(), 1, Detail::CHANNELS, EventKind::Coll);
    let payload = Payload::Coll {
        sequence: 42,
        count: 1024,
        function,
        datatype,
        algorithm: 0,
        protocol: 0,
        root: -1,
        group: EventId(0),
        api_datatype: 0,
    };
    let ordinal = ring.next_ordinal();
    let header = StartHeader { ticks: 1_000_000, id, ordinal, channels: 1, ..StartHeader::default() };
    ring.push(&Record::start(header, payload.words()));
    println!("\nready");
    std::thread::sleep(Duration::from_secs(60));
}

struct Looked(Child);

impl Drop for Looked {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start() -> Looked {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process_with_rings", "--nocapture"])
        .env(VARIABLE, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready"));
    Looked(child)
}

fn blackbox(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_collander"));
    command.arg("blackbox").args(args).arg("--json").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn sequences(json: &[u8]) -> Vec<(u64, bool)> {
    let value: serde_json::Value = serde_json::from_slice(json).unwrap();
    let operations = value["operations"].as_array().unwrap();
    operations.iter().map(|o| (o["seq"].as_u64().unwrap(), o["open"].as_bool().unwrap())).collect()
}

#[test]
fn a_running_process_is_dumped() {
    let looked = start();
    let output = blackbox(&["dump", &looked.0.id().to_string()]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(sequences(&output.stdout), [(42, true)]);
}

#[test]
fn a_killed_process_leaves_its_last_events_to_who_held_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("box.bin");
    let mut looked = start();
    let pid = looked.0.id().to_string();
    let holder = blackbox(&["hold", &pid, "--out", file.to_str().unwrap()]).spawn().unwrap();
    // Until the holder has opened the rings: its descriptors tell.
    let held = format!("/proc/{}/fd", holder.id());
    let holds = || {
        std::fs::read_dir(&held).is_ok_and(|entries| {
            entries.flatten().any(|entry| {
                std::fs::read_link(entry.path()).is_ok_and(|link| link.to_string_lossy().contains("memfd:collander"))
            })
        })
    };
    while !holds() {
        std::thread::sleep(Duration::from_millis(5));
    }
    // SIGKILL.
    looked.0.kill().unwrap();
    looked.0.wait().unwrap();
    let output = holder.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("has ended"));
    assert_eq!(sequences(&output.stdout), [(42, true)]);
    let again = blackbox(&["dump", file.to_str().unwrap()]).output().unwrap();
    assert_eq!(sequences(&again.stdout), [(42, true)]);
}

#[test]
fn holding_ends_when_its_time_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let looked = start();
    let output =
        blackbox(&["hold", &looked.0.id().to_string(), "--for", "50ms"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let name = format!("collander-blackbox-{}.bin", looked.0.id());
    assert!(folder.path().join(name).is_file());
}
