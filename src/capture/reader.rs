//! Reading a capture that may be damaged.
//!
//! The reader reports damage as a [`CaptureFinding`] with its offset and continues at the next valid chunk.

use super::format::{CHUNK_MAGIC, ChunkHeader, ChunkKind, FILE_MAGIC, FileHeader};
use super::metadata::Metadata;
use gputrail_buffer::FINAL_LOSSES;
use gputrail_record::RecordRef;
use gputrail_record::{FORMAT_VERSION, Malformed, Records, ThreadId, count};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The most findings that are stored.
const MAX_FINDINGS: usize = 1000;

/// A capture that cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system reported an error.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The file is not a capture.
    #[error("{path}: not a gputrail capture: {what}")]
    NotACapture {
        /// The file.
        path: PathBuf,
        /// The contents found, and those expected.
        what: String,
    },
    /// The capture was written by another version.
    #[error(
        "{path}: capture of format version {version}, expected {FORMAT_VERSION}: use the gputrail that wrote it"
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// The format version of the capture.
        version: u32,
    },
}

/// A part of a capture that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureFinding {
    /// Its offset in the file.
    pub offset: u64,
    /// The contents found, and those expected.
    pub what: String,
}

impl std::fmt::Display for CaptureFinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.what)
    }
}

/// A capture whose names and clocks have been read.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    file: File,
    bytes: u64,
    header: FileHeader,
    metadata: Metadata,
    findings: Vec<CaptureFinding>,
    ended: bool,
    record_bytes: u64,
}

/// A run of records of one lane.
#[derive(Debug)]
pub struct Chunk<'a> {
    /// The lane, unique in the capture; 0 is the collector's.
    pub lane: u32,
    /// The lane's thread.
    pub thread: ThreadId,
    /// The number of the block in its lane.
    pub sequence: u32,
    /// The offset of the run in its block.
    pub offset: u32,
    /// Sequence number of the first record of the block.
    pub first_record: u32,
    /// The offset of the run in the file.
    pub file_offset: u64,
    bytes: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// The run of records in `payload` without the first `before` bytes.
    pub(super) fn new(
        header: &ChunkHeader,
        file_offset: u64,
        payload: &'a [u8],
        before: usize,
    ) -> Chunk<'a> {
        Chunk {
            lane: header.lane,
            thread: header.thread,
            sequence: header.sequence,
            offset: header.offset + before as u32,
            first_record: header.first_record,
            file_offset: file_offset + before as u64,
            bytes: &payload[before..],
        }
    }

    /// The records.
    pub fn records(&self) -> Records<'a> {
        Records::new(self.bytes)
    }

    /// The bytes of the records.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl Reader {
    /// Opens the capture at `path` and reads all names and clocks in it.
    pub fn open(path: &Path) -> Result<Reader, ReadError> {
        let io = |source| ReadError::Io {
            path: path.into(),
            source,
        };
        let file = File::open(path).map_err(io)?;
        let bytes = file.metadata().map_err(io)?.len();
        let header = read_file_header(path, &file, bytes)?;
        let mut reader = Reader {
            path: path.into(),
            file,
            bytes,
            header,
            metadata: Metadata::default(),
            findings: Vec::new(),
            ended: false,
            record_bytes: 0,
        };
        reader.read_metadata();
        Ok(reader)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The header of the file.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// Names and clocks.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Whether nothing in the capture says how its recording ended: whoever writes it was killed or still writes it, and
    /// records may be missing at its end.
    pub fn is_open(&self) -> bool {
        let mut notes = self.metadata.notes.iter();
        !self.ended && !notes.any(|note| note.what.is_of_end())
    }

    /// Whether the process ended its session.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The total size of all record chunks, for showing progress.
    pub fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    /// The damage found while reading the names.
    pub fn findings(&self) -> &[CaptureFinding] {
        &self.findings
    }

    /// The records, chunk by chunk.
    pub fn chunks(&self) -> Chunks<'_> {
        Chunks {
            walk: ChunkWalk::new(&self.file, self.bytes),
            delivered: DeliveredParts::default(),
        }
    }

    /// Calls `take` with the header and payload of each chunk.
    pub(super) fn each_chunk<E>(
        &self,
        mut take: impl FnMut(&ChunkHeader, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut walk = ChunkWalk::new(&self.file, self.bytes);
        while let Some((header, _)) = walk.next(|_| true) {
            take(&header, walk.payload())?;
        }
        Ok(())
    }

    fn read_metadata(&mut self) {
        let mut walk = ChunkWalk::new(&self.file, self.bytes);
        let names = |header: &ChunkHeader| header.kind == ChunkKind::METADATA;
        while let Some((header, at)) = walk.next(names) {
            match header.kind {
                ChunkKind::METADATA => {
                    let mut records = Records::new(walk.payload());
                    records
                        .by_ref()
                        .for_each(|record| self.metadata.add(&record));
                    if let Some(malformed) = records.malformed() {
                        walk.findings.add(at, format!("metadata {malformed}"));
                    }
                }
                ChunkKind::RECORDS => self.record_bytes += u64::from(header.payload_bytes),
                ChunkKind::END => self.ended = true,
                _ => {}
            }
        }
        if self.metadata.left_out > 0 {
            let what = format!(
                "{} left out, beyond {} MiB of names and clocks",
                count(self.metadata.left_out, "metadata record"),
                super::metadata::MAX_BYTES >> 20
            );
            walk.findings.add(self.bytes, what);
        }
        // Damaged record payloads are reported when they are read.
        self.findings = walk.findings.list;
    }
}

pub(super) fn read_file_header(
    path: &Path,
    file: &File,
    bytes: u64,
) -> Result<FileHeader, ReadError> {
    let not_a_capture = |what: String| ReadError::NotACapture {
        path: path.into(),
        what,
    };
    let mut raw = [0; size_of::<FileHeader>()];
    if bytes < raw.len() as u64 {
        return Err(not_a_capture(format!(
            "{bytes} bytes, expected at least {}",
            raw.len()
        )));
    }
    file.read_exact_at(&mut raw, 0)
        .map_err(|source| ReadError::Io {
            path: path.into(),
            source,
        })?;
    let header: FileHeader = bytemuck::pod_read_unaligned(&raw);
    if header.magic != FILE_MAGIC {
        return Err(not_a_capture(format!(
            "it begins with {:?}, expected \"GPUTRAIL\"",
            String::from_utf8_lossy(&header.magic)
        )));
    }
    if header.version != FORMAT_VERSION {
        return Err(ReadError::OtherVersion {
            path: path.into(),
            version: header.version,
        });
    }
    if header.checksum != header.computed_checksum() {
        return Err(not_a_capture(format!(
            "its header has checksum {:#010x}, expected {:#010x}: it is damaged",
            header.checksum,
            header.computed_checksum()
        )));
    }
    Ok(header)
}

/// Streams the record chunks of a capture. Runs that were written twice, because the process died between writing a run
/// and marking it as written, appear once.
pub struct Chunks<'a> {
    walk: ChunkWalk<'a>,
    delivered: DeliveredParts,
}

/// The last delivered part of each lane.
#[derive(Debug, Default)]
pub(super) struct DeliveredParts {
    /// The latest block of each lane and the offset in it up to which its records have been delivered.
    ends: HashMap<u32, (u32, u32)>,
    /// Whether a lane lacks blocks before one that it has.
    pub has_gaps: bool,
}

impl DeliveredParts {
    /// The number of bytes of a chunk's payload that were delivered before. This may be a part of the chunk, if the
    /// lane wrote more records between the write of a run and its mark.
    pub fn bytes_of(&self, header: &ChunkHeader) -> usize {
        // Lane 0 holds the collector's and the recovery's own records, of which only the final losses may repeat.
        let repeats = |(last, _): &&(u32, u32)| {
            header.lane != 0 || header.sequence == FINAL_LOSSES && *last == FINAL_LOSSES
        };
        let last = self.ends.get(&header.lane).filter(repeats);
        let before = match last {
            Some((sequence, _)) if header.sequence < *sequence => u32::MAX,
            Some((sequence, end)) if header.sequence == *sequence => {
                end.saturating_sub(header.offset)
            }
            _ => 0,
        };
        before.min(header.payload_bytes) as usize
    }

    /// Whether all records of a chunk were delivered before.
    pub fn has(&self, header: &ChunkHeader) -> bool {
        self.bytes_of(header) == header.payload_bytes as usize
    }

    /// Marks the records of a chunk as delivered.
    pub fn add(&mut self, header: &ChunkHeader) {
        let before = self.ends.insert(header.lane, end_of(header));
        let next = before.map_or(0, |(block, _)| block.saturating_add(1));
        // The collector numbers its own blocks in lane 0 as it likes.
        self.has_gaps |= header.lane != 0 && header.sequence > next;
    }
}

/// The block of a chunk and the offset of its end in the block.
fn end_of(header: &ChunkHeader) -> (u32, u32) {
    let end = header.offset.saturating_add(header.payload_bytes);
    (header.sequence, end)
}

impl Chunks<'_> {
    /// The next run of records, or `None` at the end. The run is valid until the next call.
    #[allow(clippy::should_implement_trait)] // the item borrows from the iterator
    pub fn next(&mut self) -> Option<Chunk<'_>> {
        let (header, at, before) = self.step()?;
        let mut records = Records::new(&self.walk.payload()[before..]);
        records.by_ref().for_each(drop);
        let malformed = records.malformed();
        self.check(at, before, malformed);
        Some(Chunk::new(&header, at, self.walk.payload(), before))
    }

    /// Calls `take` with each remaining record and the thread of its lane. Unlike [`Chunks::next`]
    /// it parses each record once.
    pub fn each<E>(
        &mut self,
        mut take: impl FnMut(ThreadId, &RecordRef<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some((header, at, before)) = self.step() {
            let mut records = Records::new(&self.walk.payload()[before..]);
            for record in records.by_ref() {
                take(header.thread, &record)?;
            }
            let malformed = records.malformed();
            self.check(at, before, malformed);
        }
        Ok(())
    }

    /// Moves to the next run of records that has not been delivered completely. Returns its header, its offset, and the
    /// number of its bytes that were delivered before.
    fn step(&mut self) -> Option<(ChunkHeader, u64, usize)> {
        loop {
            let delivered = &self.delivered;
            let due =
                |header: &ChunkHeader| header.kind == ChunkKind::RECORDS && !delivered.has(header);
            let (header, at) = self.walk.next(due)?;
            if due(&header) {
                let before = self.delivered.bytes_of(&header);
                self.delivered.add(&header);
                return Some((header, at, before));
            }
        }
    }

    /// Reports the malformed record that stopped the iteration over the run at `at`, if there was one.
    fn check(&mut self, at: u64, before: usize, malformed: Option<Malformed>) {
        if let Some(malformed) = malformed {
            let at = at + (ChunkHeader::BYTES + before + malformed.offset) as u64;
            self.walk.findings.add(at, malformed.to_string());
        }
    }

    /// Whether lanes lack blocks, so far: a flight recorder has overwritten them, or the file is damaged.
    pub fn has_gaps(&self) -> bool {
        self.delivered.has_gaps
    }

    /// The damage found so far.
    pub fn findings(&self) -> &[CaptureFinding] {
        &self.walk.findings.list
    }

    /// The number of bytes of the file processed so far.
    pub fn position(&self) -> u64 {
        self.walk.at
    }
}

#[derive(Default)]
struct CaptureFindings {
    list: Vec<CaptureFinding>,
}

impl CaptureFindings {
    fn add(&mut self, offset: u64, what: String) {
        match self.list.len() {
            MAX_FINDINGS => self.list.push(CaptureFinding {
                offset,
                what: "further findings are not listed".into(),
            }),
            fewer if fewer < MAX_FINDINGS => self.list.push(CaptureFinding { offset, what }),
            _ => {}
        }
    }
}

/// Moves through a file from chunk to chunk.
struct ChunkWalk<'a> {
    file: &'a File,
    bytes: u64,
    at: u64,
    /// Starts with the payload read last.
    buffer: Vec<u8>,
    payload_bytes: usize,
    findings: CaptureFindings,
    /// Total size of the payloads that were read and found damaged.
    wasted: u64,
}

impl<'a> ChunkWalk<'a> {
    fn new(file: &'a File, bytes: u64) -> ChunkWalk<'a> {
        ChunkWalk {
            file,
            bytes,
            at: size_of::<FileHeader>() as u64,
            buffer: Vec::new(),
            payload_bytes: 0,
            findings: CaptureFindings::default(),
            wasted: 0,
        }
    }

    /// The payload read last.
    fn payload(&self) -> &[u8] {
        &self.buffer[..self.payload_bytes]
    }

    /// The header and offset of the next valid chunk. The payload of a `wanted` chunk is read;
    /// others are skipped.
    ///
    /// The length of a chunk that was torn by the death of its writer may cover chunks that others appended later. If a
    /// payload is damaged, the search for the next chunk therefore starts right after the header.
    fn next(&mut self, wanted: impl Fn(&ChunkHeader) -> bool) -> Option<(ChunkHeader, u64)> {
        // The start of bytes that are not part of a chunk and have not been reported.
        let mut lost_since = None;
        loop {
            let at = self.at;
            let left = self.bytes.saturating_sub(at);
            if left < ChunkHeader::BYTES as u64 {
                let from = lost_since.unwrap_or(at);
                if from < self.bytes {
                    self.findings.add(
                        from,
                        count(self.bytes - from, "byte") + " outside of chunks",
                    );
                }
                self.at = self.bytes;
                return None;
            }
            let mut raw = [0; ChunkHeader::BYTES];
            if let Err(error) = self.file.read_exact_at(&mut raw, at) {
                self.findings.add(at, format!("cannot be read: {error}"));
                self.at = self.bytes;
                return None;
            }
            let header: ChunkHeader = bytemuck::pod_read_unaligned(&raw);
            if header.is_sound() {
                if let Some(from) = lost_since.filter(|from| *from < at) {
                    self.findings
                        .add(from, count(at - from, "byte") + " outside of chunks");
                }
                let needed = ChunkHeader::BYTES as u64 + u64::from(header.payload_bytes);
                if needed <= left && self.is_complete(&header, at, wanted(&header)) {
                    self.at = at + needed;
                    return Some((header, at));
                }
                if needed > left {
                    let what = format!(
                        "a chunk of {needed} bytes, but only {left} are left: the file was cut"
                    );
                    self.findings.add(at, what);
                }
                let end = (at + needed).min(self.bytes);
                lost_since = Some(end);
                // Bounds the total cost: many chunks with large false lengths must not be read
                // again and again.
                let from = if self.wasted > self.bytes {
                    end
                } else {
                    at + 8
                };
                self.at = self.search(from);
                continue;
            }
            lost_since.get_or_insert(at);
            self.at = self.search(at + 8);
        }
    }

    /// The next offset at or after `from`, in steps of 8, where a chunk may begin. Each byte is
    /// examined once.
    fn search(&mut self, from: u64) -> u64 {
        let mut window = [0; 4096];
        let mut at = from;
        while at < self.bytes {
            let length = (self.bytes - at).min(window.len() as u64) as usize;
            if self.file.read_exact_at(&mut window[..length], at).is_err() {
                return self.bytes;
            }
            let may_begin = |index: &usize| {
                let here = &window[*index..length];
                here.starts_with(&CHUNK_MAGIC)
                    && here.get(..ChunkHeader::BYTES).is_none_or(|raw| {
                        bytemuck::pod_read_unaligned::<ChunkHeader>(raw).is_sound()
                    })
            };
            match (0..length).step_by(8).find(may_begin) {
                Some(index) => return at + index as u64,
                None => at += length as u64,
            }
        }
        self.bytes
    }

    /// Whether the chunk at `at` is complete. An unwanted chunk is not read if it is followed by
    /// another chunk or the end.
    fn is_complete(&mut self, header: &ChunkHeader, at: u64, wanted: bool) -> bool {
        let end = at + ChunkHeader::BYTES as u64 + u64::from(header.payload_bytes);
        if !wanted && (end == self.bytes || self.is_chunk(end)) {
            return true;
        }
        self.read_payload(header, at)
    }

    fn is_chunk(&self, at: u64) -> bool {
        let mut raw = [0; ChunkHeader::BYTES];
        self.file.read_exact_at(&mut raw, at).is_ok()
            && bytemuck::pod_read_unaligned::<ChunkHeader>(&raw).is_sound()
    }

    /// Reads and verifies the payload of the chunk at `at`.
    fn read_payload(&mut self, header: &ChunkHeader, at: u64) -> bool {
        self.payload_bytes = header.payload_bytes as usize;
        if self.buffer.len() < self.payload_bytes {
            self.buffer.resize(self.payload_bytes, 0);
        }
        let payload = &mut self.buffer[..self.payload_bytes];
        let from = at + ChunkHeader::BYTES as u64;
        if let Err(error) = self.file.read_exact_at(payload, from) {
            self.findings.add(from, format!("cannot be read: {error}"));
            return false;
        }
        let checksum = crc32fast::hash(payload);
        if checksum != header.payload_checksum {
            self.wasted += u64::from(header.payload_bytes);
            self.findings.add(
                from,
                format!(
                    "{} of {} bytes have checksum {checksum:#010x}, expected {:#010x}: left out",
                    header.kind, header.payload_bytes, header.payload_checksum
                ),
            );
            return false;
        }
        true
    }
}
