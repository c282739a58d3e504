//! Inputs of the fuzz targets: files in memory, and captures with valid checksums, so that the code after the checks is
//! reached. Written from `schemas/capture.md`, without the library's own writer.

pub mod databases;
pub mod traces;

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// A file in memory, and a path that leads to it.
pub fn file_of(bytes: &[u8]) -> (File, PathBuf) {
    let file = rustix::fs::memfd_create("fuzz", MemfdFlags::CLOEXEC).expect("a memfd");
    let mut file = File::from(file);
    file.write_all(bytes).expect("room in memory");
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    (file, path.into())
}

/// Any bytes, or a capture of any chunks, by the first byte of the input.
pub fn capture_of(data: &[u8]) -> Vec<u8> {
    let mut input = Unstructured::new(data);
    match input.arbitrary::<u8>() {
        Ok(0) | Err(_) => data.get(1..).unwrap_or_default().to_vec(),
        Ok(_) => {
            let mut capture = Vec::new();
            // The input's end ends the capture.
            let _ = build(&mut input, &mut capture);
            capture
        }
    }
}

fn build(input: &mut Unstructured<'_>, capture: &mut Vec<u8>) -> Result<()> {
    let mut header = Vec::new();
    header.extend_from_slice(b"GPUTRAIL");
    for word in [1_u32, 64, input.int_in_range(1..=4)?, 77] {
        header.extend_from_slice(&word.to_le_bytes());
    }
    header.extend_from_slice(&input.arbitrary::<u64>()?.to_le_bytes());
    header.extend_from_slice(&[0; 24]);
    let checksum = crc32fast::hash(&header);
    header.extend_from_slice(&checksum.to_le_bytes());
    header.extend_from_slice(&[0; 4]);
    capture.extend_from_slice(&header);
    while !input.is_empty() {
        if input.ratio(1, 40)? {
            // Bytes between two chunks.
            let rubbish = input.int_in_range(0..=64)?;
            capture.extend_from_slice(input.bytes(rubbish)?);
        }
        chunk(input, capture)?;
    }
    if input.ratio(1, 8)? {
        capture.truncate(input.choose_index(capture.len())?);
    }
    Ok(())
}

fn chunk(input: &mut Unstructured<'_>, capture: &mut Vec<u8>) -> Result<()> {
    let kind = input.int_in_range(0_u16..=4)?;
    let records = input.int_in_range(0..=24)?;
    let mut payload = Vec::new();
    for _ in 0..records {
        if record(input, &mut payload).is_err() {
            break;
        }
    }
    payload.resize(payload.len().next_multiple_of(8), 0);
    let mut header = Vec::new();
    header.extend_from_slice(b"GTCK");
    header.extend_from_slice(&kind.to_le_bytes());
    header.extend_from_slice(&0_u16.to_le_bytes());
    header.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    header.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
    for bound in [3_u32, 2, 3, u32::MAX, u32::MAX] {
        header.extend_from_slice(&input.int_in_range(0..=bound).unwrap_or(0).to_le_bytes());
    }
    header.extend_from_slice(&[0; 8]);
    let checksum = crc32fast::hash(&header);
    header.extend_from_slice(&checksum.to_le_bytes());
    capture.extend_from_slice(&header);
    capture.extend_from_slice(&payload);
    Ok(())
}

/// Sizes of the records, by kind; some entries are of kinds without records.
const KINDS: [(u8, u16); 34] = [
    (0x01, 64),
    (0x10, 152),
    (0x11, 112),
    (0x12, 88),
    (0x13, 80),
    (0x14, 96),
    (0x15, 80),
    (0x16, 16),
    (0x20, 184),
    (0x21, 56),
    (0x22, 40),
    (0x30, 56),
    (0x31, 40),
    (0x40, 48),
    (0x41, 48),
    (0x42, 24),
    (0x43, 88),
    (0x44, 32),
    (0x45, 40),
    (0x46, 40),
    (0x47, 24),
    (0x48, 40),
    (0x49, 48),
    (0x4a, 64),
    (0x4b, 24),
    (0x4c, 24),
    (0x50, 40),
    (0x70, 96),
    (0x71, 112),
    (0x72, 32),
    (0x73, 56),
    (0x74, 72),
    (0x77, 8),
    (0xff, 24),
];

/// One record. Most of its words are small, so that ids coincide.
fn record(input: &mut Unstructured<'_>, payload: &mut Vec<u8>) -> Result<()> {
    let (kind, bytes) = *input.choose(&KINDS)?;
    let mut words = bytes / 8;
    if input.ratio(1, 30)? {
        words = input.arbitrary()?;
    }
    let begin = payload.len();
    payload.push(kind);
    payload.push(input.arbitrary()?);
    payload.extend_from_slice(&words.to_le_bytes());
    payload.extend_from_slice(&input.arbitrary::<u32>()?.to_le_bytes());
    while payload.len() < begin + usize::from(bytes) {
        let half: u32 = match input.int_in_range(0..=7)? {
            0 => input.arbitrary()?,
            1 => u32::MAX,
            2 => 1 << input.int_in_range(8..=31)?,
            _ => input.int_in_range(0..=6)?,
        };
        payload.extend_from_slice(&half.to_le_bytes());
    }
    Ok(())
}
