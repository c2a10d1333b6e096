use std::time::Instant;

use super::*;

/// Prints operations a second; `cargo test --release -p collander-sinks speed -- --ignored --nocapture`.
#[test]
#[ignore = "prints numbers, asserts none"]
fn speed() {
    const OPERATIONS: u64 = 1_000_000;
    for (compression, level) in
        [(Compression::Plain, 0), (Compression::Zstd, 1), (Compression::Zstd, 3), (Compression::Gzip, 6)]
    {
        let folder = tempfile::tempdir().unwrap();
        let bounds = Jsonl { level, rotate_bytes: 32 << 20, max_bytes: 1 << 30, ..config(folder.path(), compression) };
        let mut sink = sink(&bounds);
        let communicators = [communicator(0), communicator(1)];
        let (mut format, mut flush) = (Duration::ZERO, Duration::ZERO);
        for batch in 0..OPERATIONS / 1000 {
            let operations: Vec<Operation> = (0..1000)
                .map(|k| {
                    let sequence = batch * 1000 + k;
                    let noise = sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
                    let operation = all_reduce(&communicators[k as usize & 1], sequence);
                    Operation {
                        duration_ns: Some(61_000_000 + noise),
                        longest_channel_ns: Some(61_000_000 + noise),
                        enqueued_ns: operation.enqueued_ns + sequence * 20_000 + noise,
                        ended_ns: operation.ended_ns + sequence * 20_000 + noise,
                        gpu_start: Some(operation.enqueued_ns + sequence * 20_000),
                        gpu_stop: Some(operation.ended_ns + sequence * 20_000),
                        algbw: Some(277.0 + noise as f64 / 1234.5),
                        busbw: Some(485.0 + noise as f64 / 1234.5),
                        ..operation
                    }
                })
                .collect();
            let start = Instant::now();
            operations.iter().for_each(|operation| sink.accept(operation));
            format += start.elapsed();
            if sink.pending_bytes() >= 1 << 20 {
                let start = Instant::now();
                sink.flush(&snapshot((batch + 1) * 1000), false);
                flush += start.elapsed();
            }
        }
        let start = Instant::now();
        sink.flush(&snapshot(OPERATIONS), true);
        flush += start.elapsed();
        let bytes: u64 = files(folder.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
        println!(
            "{compression:?} level {level}: format {:.2} M op/s, with compression and writing {:.2} M op/s, {:.1} bytes an operation",
            OPERATIONS as f64 / 1e6 / format.as_secs_f64(),
            OPERATIONS as f64 / 1e6 / (format + flush).as_secs_f64(),
            bytes as f64 / OPERATIONS as f64,
        );
    }
}
