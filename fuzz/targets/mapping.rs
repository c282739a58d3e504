//! The memory of a dead process: a valid pool with any bytes written over it, or any bytes.
#![no_main]

use gputrail_buffer::{Layout, Mapping};
use gputrail_capture::{Cause, FileHeader, Reader, Writer, recover};
use gputrail_fuzz::file_of;
use gputrail_record::{NoteKind, ProcessId};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use rustix::fs::{FallocateFlags, MemfdFlags, OFlags};
use std::fs::File;
use std::os::unix::fs::FileExt;

const BLOCK: usize = 4096;

const SLOTS: u64 = 4096;
const HEADERS: u64 = SLOTS + 2 * 1088;
/// The blocks begin at the next page.
const DATA: u64 = 8192;

/// Fills blocks with records and overwrites parts of the pool, as the input says.
fn disturb(input: &mut Unstructured<'_>, pool: &File, bytes: u64) -> Result<()> {
    let write = |place: u64, data: &[u8]| {
        let room = bytes.saturating_sub(place).min(data.len() as u64) as usize;
        pool.write_all_at(&data[..room], place)
            .expect("it is memory");
    };
    while !input.is_empty() {
        let length = input.int_in_range(1..=64)?;
        // Headers are overwritten more often than the data after them.
        let place = match input.int_in_range(0..=5)? {
            0 => input.int_in_range(0..=64)?,
            1 => SLOTS + input.int_in_range(0..=2 * 1088)?,
            2 => HEADERS + input.int_in_range(0..=4 * 64)?,
            3 => input.int_in_range(0..=bytes)?,
            _ => {
                let block = input.int_in_range(0..=3)?;
                let (header, records) = block_of(input)?;
                write(HEADERS + 64 * block, &header);
                write(DATA + BLOCK as u64 * block, &records);
                continue;
            }
        };
        write(place, input.bytes(length)?);
    }
    Ok(())
}

/// A block's header and contents, mostly as a lane leaves them.
fn block_of(input: &mut Unstructured<'_>) -> Result<(Vec<u8>, Vec<u8>)> {
    let mut records = Vec::new();
    for _ in 0..input.int_in_range(0..=6)? {
        let words = if input.ratio(1, 20)? {
            input.arbitrary()?
        } else {
            8_u16
        };
        records.extend_from_slice(&[1, input.arbitrary()?]);
        records.extend_from_slice(&words.to_le_bytes());
        records.extend_from_slice(&input.arbitrary::<u32>()?.to_le_bytes());
        records.extend_from_slice(&[input.arbitrary()?; 56]);
    }
    let committed = if input.ratio(1, 10)? {
        input.arbitrary()?
    } else {
        records.len() as u32
    };
    let mut header = Vec::new();
    for word in [committed, input.arbitrary()?] {
        header.extend_from_slice(&word.to_le_bytes());
    }
    // State, lane, number, first sequence number, thread, and whether it has been delivered.
    for bound in [3_u32, 3, 3, 9, 2, 200] {
        header.extend_from_slice(&input.int_in_range(0..=bound)?.to_le_bytes());
    }
    Ok((header, records))
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
    let capture = rustix::fs::open(
        &path,
        OFlags::RDWR | OFlags::APPEND,
        rustix::fs::Mode::empty(),
    );
    let header = FileHeader::new(2, ProcessId(1), 1_000_000_000, 0, [0; 16]);
    let writer = Writer::begin(capture.expect("the file is there"), &header).expect("memory");
    let cause = Cause {
        kind: NoteKind::DIED,
        text: "killed".into(),
    };
    let recovered = recover(&mapping, &writer, &cause);
    drop(file);

    // Whatever the pool contained, the result is a valid capture with everything that was recovered.
    let reader = Reader::open(&path);
    let Ok(reader) = reader else { return };
    let mut chunks = reader.chunks();
    let mut records = 0;
    while let Some(chunk) = chunks.next() {
        records += chunk.records().count() as u64;
    }
    assert!(chunks.findings().is_empty(), "{:?}", chunks.findings());
    // Readers take blocks of one lane with the same sequence for one block.
    assert!(records <= recovered.records + recovered.open_calls + recovered.dropped + 256);
});
