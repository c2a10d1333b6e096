//! The rings seen from another process.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use collander_event::{EventKind, Payload, RecordType};
use collander_ring::Image;

use super::{all_reduces, opened, setup};

/// Sequence numbers of the collectives whose start is in the rings.
fn sequences(image: &Image) -> BTreeSet<u64> {
    let records = image.records().into_iter().flat_map(|(_, records)| records);
    records
        .filter(|record| record.record_type() == RecordType::Start)
        .filter_map(|record| match record.payload() {
            Payload::Coll { sequence, .. } if record.header().id.kind() == EventKind::Coll => Some(sequence),
            _ => None,
        })
        .collect()
}

#[test]
fn the_black_box_of_a_running_process_and_of_one_killed() -> Result<()> {
    if collander_tests::places::runner().is_some() {
        eprintln!("note: an emulator's process has no descriptors of the program's");
        return Ok(());
    }
    let (mut child, context) = opened(setup()?, None)?;
    all_reduces(&mut child, context, 0, 50)?;
    let image = Image::open_pid(child.pid())?;
    ensure!(sequences(&image).into_iter().eq(0..50), "{:?}", sequences(&image));
    // What comes later is seen by the image that is open already, also when the process has died.
    all_reduces(&mut child, context, 50, 50)?;
    child.kill()?;
    ensure!(sequences(&image).into_iter().eq(0..100), "{:?}", sequences(&image));
    ensure!(image.pid() == child.pid(), "{}", image.pid());
    let communicators = image.communicators();
    let named = communicators.iter().filter(|(communicator, open)| communicator.name == "world" && *open);
    ensure!(named.count() == 1, "{communicators:?}");
    let saved = child.folder().join("black.box");
    image.save(&saved)?;
    ensure!(sequences(&Image::from_file(&saved)?).into_iter().eq(0..100), "of the file");
    Ok(())
}
