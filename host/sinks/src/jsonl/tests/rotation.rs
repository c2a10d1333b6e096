use collander_event::DropReason;

use super::*;

#[test]
fn files_rotate_and_the_oldest_are_deleted_and_counted() {
    for compression in [Compression::Plain, Compression::Zstd] {
        let folder = tempfile::tempdir().unwrap();
        let bounds = Jsonl { rotate_bytes: 16 << 10, max_bytes: 64 << 10, ..config(folder.path(), compression) };
        let mut sink = sink(&bounds);
        let communicators = [communicator(0), communicator(1)];
        let mut operations = 0;
        for round in 0..400u64 {
            for communicator in &communicators {
                for sequence in 0..10 {
                    // Times that differ, so that little can be compressed away.
                    let noise = (round * 10 + sequence).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    let operation = all_reduce(communicator, round * 10 + sequence);
                    sink.accept(&Operation { user_tag: noise, ended_ns: noise >> 8, group: noise >> 14, ..operation });
                    operations += 1;
                }
            }
            sink.flush(&snapshot(operations), false);
            let all: u64 = files(folder.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
            assert!(all <= bounds.max_bytes, "{all}");
        }
        sink.flush(&snapshot(operations), true);
        let account = sink.account();
        let deleted = account.dropped[DropReason::Deleted as usize];
        assert_eq!((account.written, account.pending), (operations, 0));
        assert!(deleted > 0);
        let mut left = 0;
        let files = files(folder.path());
        assert!(files.len() > 2, "{files:?}");
        for path in &files {
            let records = records(path);
            assert_eq!(records[0]["type"], "header");
            let mut known = std::collections::HashSet::new();
            for record in &records[1..] {
                match record["type"].as_str().unwrap() {
                    "communicator" => drop(known.insert(record["comm"].clone())),
                    "op" => {
                        assert!(known.contains(&record["comm"]), "{}: {record}", path.display());
                        left += 1;
                    }
                    _ => assert_balances(record),
                }
            }
        }
        assert_eq!(left + deleted, operations);
        let records = records(files.last().unwrap());
        let last = records.last().unwrap();
        assert_eq!((number(&last["written"]), number(&last["deleted"])), (operations, deleted));
        assert_eq!(last["final"], true);
        assert!(sink.take_message().unwrap().contains("max_bytes"));
        assert_eq!(sink.take_message(), None);
    }
}

#[test]
fn only_its_own_files_are_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("node-a-42-1-1.jsonl");
    std::fs::write(&other, vec![b'x'; 100_000]).unwrap();
    let bounds = Jsonl { rotate_bytes: 16 << 10, max_bytes: 64 << 10, ..config(folder.path(), Compression::Plain) };
    let mut sink = sink(&bounds);
    for round in 0..100 {
        accept(&mut sink, &communicator(0), round * 10..(round + 1) * 10);
        sink.flush(&snapshot((round + 1) * 10), false);
    }
    assert_eq!(std::fs::read(&other).unwrap().len(), 100_000);
    assert!(sink.account().dropped[DropReason::Deleted as usize] > 0);
}

#[test]
fn one_file_as_large_as_the_bound_gives_way_to_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let bounds = Jsonl { rotate_bytes: 64 << 10, max_bytes: 64 << 10, ..config(folder.path(), Compression::Plain) };
    let mut sink = sink(&bounds);
    for round in 0..40 {
        accept(&mut sink, &communicator(0), round * 10..(round + 1) * 10);
        sink.flush(&snapshot((round + 1) * 10), false);
        let all: u64 = files(folder.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
        assert!(all <= bounds.max_bytes);
    }
    let found = files(folder.path());
    assert_eq!(found.len(), 1);
    let lines = records(&found[0]);
    let deleted = sink.account().dropped[DropReason::Deleted as usize];
    assert_eq!(of_type(&lines, "op").len() as u64 + deleted, 400);
    assert_eq!(number(&lines.last().unwrap()["deleted"]), deleted);
}
