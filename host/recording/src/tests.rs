//! The reader on real recordings and on broken ones.

use std::io::Write as _;
use std::path::PathBuf;

use collander_event::EventKind;

use crate::{CallKind, EventDescriptor, HandleRef, Problem, Recording, RecordingError, StateArgument};

fn recordings() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/recordings");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("tests/recordings is in the repository")
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "gz"))
        .collect();
    files.sort();
    files
}

fn read_text(text: &str) -> Result<Recording, RecordingError> {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("written");
    Recording::read(file.path())
}

const HEADER: &str = r#"{"recording":1,"nccl":"2.32.3","api":7,"pid":1,"program":"x","note":"y"}"#;

#[test]
fn every_recording_in_the_repository_is_understood() {
    let files = recordings();
    assert!(files.len() >= 8, "{files:?}");
    for file in files {
        let recording = Recording::read(&file).unwrap_or_else(|error| panic!("{error}"));
        let mut started = 0_u64;
        for call in &recording.calls {
            match &call.kind {
                CallKind::Start(start) => {
                    started += 1;
                    assert_eq!(start.handle, Some(started), "{}: handles count from 1", file.display());
                    if let EventDescriptor::Coll(coll) = &start.descriptor {
                        assert!(coll.function.is_some() && coll.channels > 0 && coll.send_buffer != 0);
                        assert_eq!(matches!(start.group, HandleRef::Own(_)), recording.header.api >= 5);
                    }
                }
                CallKind::State(change) if change.state == 22 => {
                    assert!(matches!(change.argument, StateArgument::Timer(timer) if timer > 0));
                }
                CallKind::State(change) if change.state >= 23 => assert_eq!(change.argument, StateArgument::Null),
                CallKind::Init(init) => assert!(init.rank < init.ranks && init.communicator_id != 0),
                _ => {}
            }
        }
        assert!(started > 20, "{}", file.display());
    }
}

#[test]
fn members_reach_their_fields() {
    let text = format!(
        "{HEADER}\n{}\n{}\n{}\n{}\n",
        r#"{"t":5,"th":3,"c":"init","ctx":1,"comm_id":"0x10","comm_name":"a\ufffd","comm_name_hex":"61ff","n_nodes":1,"n_ranks":2,"rank":1,"mask":66,"load":2}"#,
        r#"{"t":6,"th":3,"c":"start","ctx":1,"h":1,"p":"0xfeed","foreign":true,"type":"KernelPhase","rank":0,"d":{"channelId":7,"phaseId":2,"phaseName":"sync","pTimer":18446744073709551615}}"#,
        r#"{"t":7,"th":3,"c":"start","ctx":1,"h":2,"p":null,"type":"CeColl","rank":0,"d":{"seqNumber":4,"func":"AllGather","sendBuff":"0x1","recvBuff":null,"count":9,"root":0,"datatype":"ncclInt8","syncStrategy":"MC","intraBatchSync":true,"batchSize":2,"numBatches":3,"ceSeqNum":5,"stream":"0x20","userTag":8},"mask_set":1}"#,
        r#"{"t":8,"th":0,"c":"state","h":2,"s":19,"a":{"raw":"0xff"},"late":true}"#,
    );
    let recording = read_text(&text).unwrap_or_else(|error| panic!("{error}"));
    let CallKind::Init(init) = &recording.calls[0].kind else { panic!("init") };
    assert_eq!((init.name.as_deref(), init.load, init.communicator_id), (Some(&b"a\xff"[..]), 2, 16));
    let CallKind::Start(start) = &recording.calls[1].kind else { panic!("start") };
    assert_eq!(start.parent, HandleRef::Foreign(0xfeed));
    let EventDescriptor::KernelPhase { channel: 7, phase: 2, timer: u64::MAX, .. } = start.descriptor else {
        panic!("{start:?}")
    };
    let CallKind::Start(start) = &recording.calls[2].kind else { panic!("start") };
    assert_eq!((start.descriptor.kind(), recording.calls[2].mask_set), (EventKind::CeColl, Some(1)));
    let EventDescriptor::CeColl(ce) = &start.descriptor else { panic!("{start:?}") };
    assert_eq!((ce.sequence, ce.batches, ce.ce_sequence, ce.user_tag), (4, 3, 5, 8));
    let CallKind::State(state) = &recording.calls[3].kind else { panic!("state") };
    assert!(state.late && state.argument == StateArgument::Raw(255));
}

#[test]
fn errors_name_file_line_and_remedy() {
    let message = |text: &str| read_text(text).expect_err("must be refused").to_string();
    assert!(message("").contains("line 1: the file is empty"));
    assert!(message("{}").contains("not a recording's header: missing field `recording`"));
    assert!(message(&HEADER.replace(":1,", ":2,")).contains("this program reads format 1"));
    assert!(message(&HEADER.replace(":7", ":8")).contains("expected `api` 1 to 7"));
    let line = |line: &str| message(&format!("{HEADER}\n\n{line}\n"));
    assert!(line(r#"{"c":"jump"}"#).contains("line 3: call `jump` is not known; expected init"));
    assert!(line(r#"{"c":"start","ctx":1,"h":1,"type":"Col","d":{}}"#).contains("kind of event `Col` is not known"));
    assert!(line(r#"{"c":"start","ctx":1,"h":1,"type":"Coll","d":{"fun":1}}"#).contains("unknown field `fun`"));
    assert!(line(r#"{"c":"stop"}"#).contains("a `stop` lacks the member `h`"));
    assert!(line(r#"{"c":"stop","h":"zz"}"#).contains("member `h` is `zz`"));
    assert!(line(r#"{"c":"stop","h":1"#).contains("line 3: not a call: EOF"));
}

#[test]
fn a_torn_gzip_is_an_error_with_its_line() {
    let whole = std::fs::read(&recordings()[0]).expect("readable");
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(&whole[..whole.len() / 2]).expect("written");
    let error = Recording::read(file.path()).expect_err("must be refused");
    let torn = matches!(&error, RecordingError::Read { line, .. } if *line > 1)
        || matches!(&error, RecordingError::Line { problem: Problem::Json(_), .. });
    assert!(torn, "{error}");
}
