use collander_event::DropReason;

use super::*;

const ENOSPC: u32 = 28;
const EIO: u32 = 5;
const EROFS: u32 = 30;
const EACCES: u32 = 13;

fn faulty(config: &Jsonl) -> (JsonlSink, Arc<Faults>) {
    let faults = Arc::new(Faults::default());
    (JsonlSink::new("jsonl", config, &job(), &process(), Box::new(FaultyDisk(Arc::clone(&faults)))), faults)
}

fn failed(sink: &JsonlSink) -> u64 {
    sink.account().dropped[DropReason::WriteFailed as usize]
}

fn wait_for_retry() {
    std::thread::sleep(Duration::from_millis(15));
}

/// Panics unless written + pending + dropped is what was accepted, and the snapshot's account adds up.
fn assert_adds_up(sink: &JsonlSink, accepted: u64) {
    let account = sink.account();
    assert_eq!(account.written + account.pending + failed(sink), accepted);
    assert!(snapshot(accepted).account(&account).balances());
}

#[test]
fn a_full_disk_costs_what_did_not_fit_and_nothing_else() {
    for errno in [ENOSPC, EIO] {
        for budget in [0, 1, 100] {
            for truncate in [0, EIO] {
                let folder = tempfile::tempdir().unwrap();
                let (mut sink, faults) = faulty(&config(folder.path(), Compression::Zstd));
                let communicator = communicator(0);
                accept(&mut sink, &communicator, 0..3);
                sink.flush(&snapshot(3), false);
                faults.budget.store(budget, Ordering::Relaxed);
                Faults::set(&faults.write, errno);
                Faults::set(&faults.truncate, truncate);
                accept(&mut sink, &communicator, 3..5);
                sink.flush(&snapshot(5), false);
                assert_adds_up(&sink, 5);
                assert_eq!((sink.account().written, failed(&sink)), (3, 2));
                let message = sink.take_message().unwrap();
                assert!(message.starts_with("cannot write ") && message.contains("os error"), "{message}");
                wait_for_retry();
                accept(&mut sink, &communicator, 5..6);
                sink.flush(&snapshot(6), false);
                assert_eq!((sink.account().written, failed(&sink)), (3, 3));
                assert_eq!(sink.take_message(), None, "told once");
                wait_for_retry();
                Faults::set(&faults.write, 0);
                Faults::set(&faults.truncate, 0);
                accept(&mut sink, &communicator, 6..10);
                sink.flush(&snapshot(10), true);
                assert_adds_up(&sink, 10);
                let message = sink.take_message().unwrap();
                assert!(
                    message.contains("writing works again") && message.contains("3 operations were lost"),
                    "{message}"
                );
                assert_eq!(sink.take_message(), None);
                let mut all = Vec::new();
                for path in files(folder.path()) {
                    let records = records(&path);
                    if !records.is_empty() {
                        assert_eq!(records[0]["type"], "header");
                        assert_eq!(records[1]["type"], "communicator");
                    }
                    all.extend(records);
                }
                assert_eq!(of_type(&all, "op").len(), 7);
                let last = all.last().unwrap();
                assert_balances(last);
                assert_eq!((number(&last["written"]), number(&last["dropped"]["write_failed"])), (7, 3));
            }
        }
    }
}

#[test]
fn a_short_write_is_continued() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sink, faults) = faulty(&config(folder.path(), Compression::Gzip));
    accept(&mut sink, &communicator(0), 0..2);
    sink.flush(&snapshot(2), false);
    assert_eq!(faults.writes.load(Ordering::Relaxed), 1, "one write call a flush");
    Faults::set(&faults.short, 7);
    accept(&mut sink, &communicator(0), 2..5);
    sink.flush(&snapshot(5), true);
    assert_eq!(of_type(&records(&files(folder.path())[0]), "op").len(), 5);
}

#[test]
fn a_folder_that_cannot_be_made_is_tried_again() {
    for errno in [EROFS, EACCES, 2] {
        let folder = tempfile::tempdir().unwrap();
        let (mut sink, faults) = faulty(&config(&folder.path().join("x"), Compression::Zstd));
        for fault in [&faults.make_directory, &faults.create] {
            Faults::set(fault, errno);
            accept(&mut sink, &communicator(0), 0..2);
            sink.flush(&snapshot(2), false);
            Faults::set(fault, 0);
            wait_for_retry();
        }
        assert_eq!(failed(&sink), 4);
        accept(&mut sink, &communicator(0), 4..5);
        sink.flush(&snapshot(5), true);
        assert_adds_up(&sink, 5);
        let records = records(&files(&folder.path().join("x"))[0]);
        assert_eq!(number(&records.last().unwrap()["dropped"]["write_failed"]), 4);
        assert_eq!(of_type(&records, "op").len(), 1);
    }
}

#[test]
fn a_real_folder_below_a_file_is_an_error_and_then_works() {
    let folder = tempfile::tempdir().unwrap();
    let block = folder.path().join("block");
    std::fs::write(&block, "").unwrap();
    let mut sink = sink(&config(&block.join("deep"), Compression::Zstd));
    accept(&mut sink, &communicator(0), 0..2);
    sink.flush(&snapshot(2), false);
    assert_eq!(failed(&sink), 2);
    std::fs::remove_file(&block).unwrap();
    wait_for_retry();
    accept(&mut sink, &communicator(0), 2..3);
    sink.flush(&snapshot(3), true);
    assert_eq!((sink.account().written, failed(&sink)), (1, 2));
}

#[test]
fn what_waits_while_the_disk_rests_is_kept_until_the_buffer_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let config = Jsonl { flush: Duration::from_secs(60), ..config(folder.path(), Compression::Plain) };
    let (mut sink, faults) = faulty(&config);
    Faults::set(&faults.create, ENOSPC);
    accept(&mut sink, &communicator(0), 0..1);
    sink.flush(&snapshot(1), false);
    assert_eq!(failed(&sink), 1);
    accept(&mut sink, &communicator(0), 1..3);
    sink.flush(&snapshot(3), false);
    assert_eq!((sink.account().pending, failed(&sink)), (2, 1));
    accept(&mut sink, &communicator(0), 3..10_000);
    sink.flush(&snapshot(10_000), false);
    assert_adds_up(&sink, 10_000);
    assert!(sink.pending_bytes() < 1 << 20);
    Faults::set(&faults.create, 0);
    accept(&mut sink, &communicator(0), 10_000..10_001);
    sink.flush(&snapshot(10_001), true);
    assert_adds_up(&sink, 10_001);
    assert!(sink.account().written >= 1, "the last flush does not wait");
}

#[test]
fn a_folder_deleted_under_it_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    let mut sink = sink(&config(&inner, Compression::Zstd));
    let communicator = communicator(0);
    accept(&mut sink, &communicator, 0..2);
    sink.flush(&snapshot(2), false);
    std::fs::remove_dir_all(&inner).unwrap();
    accept(&mut sink, &communicator, 2..5);
    sink.flush(&snapshot(5), false);
    assert_eq!((sink.account().written, failed(&sink)), (5, 0));
    let found = files(&inner);
    assert_eq!(found.len(), 1);
    assert!(found[0].ends_with("node-a-42-1-2.jsonl.zst"));
    let lines = records(&found[0]);
    assert_eq!((lines[0]["type"].as_str(), lines[1]["type"].as_str()), (Some("header"), Some("communicator")));
    assert_eq!(of_type(&lines, "op").len(), 3);
    assert!(sink.take_message().unwrap().contains("vanished"));
    // Renamed away: the file lives, but not where its readers look.
    std::fs::rename(&found[0], folder.path().join("elsewhere")).unwrap();
    accept(&mut sink, &communicator, 5..6);
    sink.flush(&snapshot(6), true);
    assert_eq!(of_type(&records(&files(&inner)[0]), "op").len(), 1);
}

#[test]
fn a_really_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mount = |verb: &str, options: &[&str]| {
        std::process::Command::new(verb)
            .args(options)
            .arg(folder.path())
            .output()
            .is_ok_and(|output| output.status.success())
    };
    if !mount("mount", &["-t", "tmpfs", "-o", "size=128k", "tmpfs"]) {
        eprintln!("skipped: mounting a tmpfs needs privileges that are missing here");
        return;
    }
    let mut sink = sink(&config(&folder.path().join("x"), Compression::Plain));
    let ballast = folder.path().join("ballast");
    let communicator = communicator(0);
    accept(&mut sink, &communicator, 0..10);
    sink.flush(&snapshot(10), false);
    let filled = std::fs::write(&ballast, vec![1; 1 << 20]).is_err();
    accept(&mut sink, &communicator, 10..300);
    sink.flush(&snapshot(300), false);
    let lost = failed(&sink);
    std::fs::remove_file(&ballast).unwrap();
    wait_for_retry();
    accept(&mut sink, &communicator, 300..310);
    sink.flush(&snapshot(310), true);
    let all: Vec<Value> = files(&folder.path().join("x")).iter().flat_map(|path| records(path)).collect();
    assert!(mount("umount", &[]));
    assert!(filled);
    assert_eq!((lost, sink.account().written), (290, 20));
    assert_eq!(of_type(&all, "op").len(), 20);
    assert_balances(all.last().unwrap());
}
