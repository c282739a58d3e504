//! The memory that a dead process left: a sound pool with any bytes written over it, or any bytes at all.
#![no_main]

use gputrail::buffer::{Layout, Mapping};
use gputrail::capture::{Cause, FileHeader, Reader, Writer, recover};
use gputrail::record::{NoteKind, ProcessId};
use gputrail_fuzz::file_of;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use rustix::fs::{FallocateFlags, MemfdFlags, OFlags};
use std::fs::File;
use std::os::unix::fs::FileExt;

const BLOCK: usize = 4096;

/// Writes over the pool what the input says.
fn disturb(input: &mut Unstructured<'_>, pool: &File, bytes: u64) -> Result<()> {
    while !input.is_empty() {
        let length = input.int_in_range(1..=64)?;
        // Headers are worth more than the data behind them.
        let place = match input.int_in_range(0..=3)? {
            0 => input.int_in_range(0..=64)?,
            1 => 4096 + input.int_in_range(0..=2 * 1088)?,
            2 => 4096 + 2 * 1088 + input.int_in_range(0..=4 * 64)?,
            _ => input.int_in_range(0..=bytes)?,
        };
        let data = input.bytes(length)?;
        let room = bytes.saturating_sub(place).min(data.len() as u64) as usize;
        pool.write_all_at(&data[..room], place).expect("it is memory");
    }
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    let layout = Layout::new(4 * BLOCK, BLOCK, 2).expect("a small pool");
    let bytes = layout.total_bytes();
    let pool = rustix::fs::memfd_create("pool", MemfdFlags::CLOEXEC).expect("a memfd");
    rustix::fs::fallocate(&pool, FallocateFlags::empty(), 0, bytes as u64).expect("memory");
    let pool = File::from(pool);
    drop(Mapping::create(&pool, layout).expect("a pool"));
    let _ = disturb(&mut Unstructured::new(data), &pool, bytes as u64);
    let Ok(mapping) = Mapping::open(&pool, bytes) else {
        return;
    };

    let (file, path) = file_of(&[]);
    let capture = rustix::fs::open(&path, OFlags::RDWR | OFlags::APPEND, rustix::fs::Mode::empty());
    let header = FileHeader::new(2, ProcessId(1), 1_000_000_000, 0, [0; 16]);
    let writer = Writer::begin(capture.expect("the file is there"), &header).expect("memory");
    let cause = Cause {
        what: NoteKind::DIED,
        words: "killed".into(),
    };
    let recovered = recover(&mapping, &writer, &cause);
    drop(file);

    // Whatever was there, what was written is a sound capture with all that was recovered.
    let reader = Reader::open(&path);
    let Ok(reader) = reader else { return };
    let mut chunks = reader.chunks();
    let mut records = 0;
    while let Some(chunk) = chunks.next() {
        records += chunk.records().count() as u64;
    }
    assert!(chunks.findings().is_empty(), "{:?}", chunks.findings());
    // Blocks of one lane that claim the same place are one and the same to a reader.
    assert!(records <= recovered.records + recovered.open_calls + recovered.dropped + 256);
});
