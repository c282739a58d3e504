//! Reading a capture, whatever its bytes are.
//!
//! Everything that can be read is read. What cannot is reported as a [`Finding`] with its offset, and
//! the reader goes on at the next sound chunk.

use super::format::{CHUNK_MAGIC, ChunkHeader, ChunkKind, FILE_MAGIC, FileHeader};
use super::metadata::Metadata;
#[cfg(feature = "perfetto")]
use crate::record::RecordRef;
use crate::record::{FORMAT_VERSION, Malformed, Records, ThreadId};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Findings that are kept; more are counted.
const MAX_FINDINGS: usize = 1000;

/// A capture that cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system would not let us.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is something else.
    #[error("{path}: not a gputrail capture: {what}")]
    NotACapture {
        /// The file.
        path: PathBuf,
        /// What was found and what was expected.
        what: String,
    },
    /// It was written by a newer version.
    #[error(
        "{path}: capture of format version {version}, this gputrail reads up to {FORMAT_VERSION}; use a newer one"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
}

/// Something in a capture that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where in the file.
    pub offset: u64,
    /// What was found and what was expected.
    pub what: String,
}

impl std::fmt::Display for Finding {
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
    findings: Vec<Finding>,
    ended: bool,
    record_bytes: u64,
}

/// A run of records of one lane.
#[derive(Debug)]
pub struct Chunk<'a> {
    /// The lane, unique in the capture; 0 is the collector.
    pub lane: u32,
    /// The lane's thread.
    pub thread: ThreadId,
    /// Number of the block in its lane.
    pub sequence: u32,
    /// Offset of the run in its block.
    pub offset: u32,
    /// Sequence number of the first record of the block.
    pub first_record: u32,
    /// Where the run lies in the file.
    pub file_offset: u64,
    bytes: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// What `payload` has behind the first `before` bytes.
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
    #[cfg(feature = "perfetto")]
    pub(crate) fn bytes(&self) -> &'a [u8] {
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

    /// Its header.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// Names and clocks.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Whether the process ended its session; if not, the capture was cut.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Bytes of records in it, for showing progress.
    pub fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    /// What could not be read when the names were read.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The records, run by run.
    pub fn chunks(&self) -> Chunks<'_> {
        Chunks {
            walk: Walk::new(&self.file, self.bytes),
            delivered: Delivered::default(),
        }
    }

    fn read_metadata(&mut self) {
        let mut walk = Walk::new(&self.file, self.bytes);
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
                "{} metadata records more than fit were left out",
                self.metadata.left_out
            );
            walk.findings.add(self.bytes, what);
        }
        // Damaged payloads of records are reported when they are read.
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
    if header.version > FORMAT_VERSION {
        return Err(ReadError::Newer {
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

/// Streams the record chunks of a capture. Runs that were written twice, because the process died
/// between writing one and noting that it had, come once.
pub struct Chunks<'a> {
    walk: Walk<'a>,
    delivered: Delivered,
}

/// For each lane the block, and the end in it, up to which records have been delivered.
#[derive(Debug, Default)]
pub(super) struct Delivered(HashMap<u32, (u32, u32)>);

impl Delivered {
    /// How many bytes of a chunk's payload have come before. Not all, where a lane went on after they had been written
    /// and before that had been noted.
    pub fn bytes_of(&self, header: &ChunkHeader) -> usize {
        // Lane 0 is no lane: what the collector and the recovery say for themselves.
        let last = self.0.get(&header.lane).filter(|_| header.lane != 0);
        let before = match last {
            Some((sequence, _)) if header.sequence < *sequence => u32::MAX,
            Some((sequence, end)) if header.sequence == *sequence => {
                end.saturating_sub(header.offset)
            }
            _ => 0,
        };
        before.min(header.payload_bytes) as usize
    }

    /// Whether all records of a chunk have come before.
    pub fn has(&self, header: &ChunkHeader) -> bool {
        self.bytes_of(header) == header.payload_bytes as usize
    }

    /// The records of a chunk have come.
    pub fn add(&mut self, header: &ChunkHeader) {
        self.0.insert(header.lane, place(header));
    }
}

/// The block of a chunk, and its end in it.
fn place(header: &ChunkHeader) -> (u32, u32) {
    let end = header.offset.saturating_add(header.payload_bytes);
    (header.sequence, end)
}

impl Chunks<'_> {
    /// The next run of records, or `None` at the end. It is valid until the next call.
    #[allow(clippy::should_implement_trait)] // the item borrows from the iterator
    pub fn next(&mut self) -> Option<Chunk<'_>> {
        let (header, at, before) = self.step()?;
        let mut records = Records::new(&self.walk.payload()[before..]);
        records.by_ref().for_each(drop);
        let malformed = records.malformed();
        self.check(at, before, malformed);
        Some(Chunk::new(&header, at, self.walk.payload(), before))
    }

    /// Hands all records that are left to `take`, with the threads of their lanes. Unlike with [`Chunks::next`], each is
    /// looked at once.
    #[cfg(feature = "perfetto")]
    pub(crate) fn each<E>(
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

    /// Goes to the next run of records that has not been delivered, and tells its header, where it is, and how many of its
    /// bytes have been delivered all the same.
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

    /// Notes what stopped the walk over the records of the run at `at`, if anything did.
    fn check(&mut self, at: u64, before: usize, malformed: Option<Malformed>) {
        if let Some(malformed) = malformed {
            let at = at + (ChunkHeader::BYTES + before + malformed.offset) as u64;
            self.walk.findings.add(at, malformed.to_string());
        }
    }

    /// What could not be read so far.
    pub fn findings(&self) -> &[Finding] {
        &self.walk.findings.list
    }

    /// Bytes of the file passed so far.
    pub fn position(&self) -> u64 {
        self.walk.at
    }
}

#[derive(Default)]
struct Findings {
    list: Vec<Finding>,
}

impl Findings {
    fn add(&mut self, offset: u64, what: String) {
        match self.list.len() {
            MAX_FINDINGS => self.list.push(Finding {
                offset,
                what: "more findings are not listed".into(),
            }),
            fewer if fewer < MAX_FINDINGS => self.list.push(Finding { offset, what }),
            _ => {}
        }
    }
}

/// From chunk to chunk through a file.
struct Walk<'a> {
    file: &'a File,
    bytes: u64,
    at: u64,
    /// The payload read last stands at the front.
    buffer: Vec<u8>,
    payload_bytes: usize,
    findings: Findings,
    /// Bytes of payloads that were read and not whole.
    in_vain: u64,
}

impl<'a> Walk<'a> {
    fn new(file: &'a File, bytes: u64) -> Walk<'a> {
        Walk {
            file,
            bytes,
            at: size_of::<FileHeader>() as u64,
            buffer: Vec::new(),
            payload_bytes: 0,
            findings: Findings::default(),
            in_vain: 0,
        }
    }

    /// The payload read last.
    fn payload(&self) -> &[u8] {
        &self.buffer[..self.payload_bytes]
    }

    /// The next whole chunk's header, and its offset. Of a chunk that is `wanted` the payload has been
    /// read; any other is stepped over.
    ///
    /// A chunk that was torn because its writer died claims bytes that others may have appended since:
    /// where a payload is not whole, the next chunk is looked for right behind its header.
    fn next(&mut self, wanted: impl Fn(&ChunkHeader) -> bool) -> Option<(ChunkHeader, u64)> {
        // From where on bytes belong to nothing and have not been reported.
        let mut lost_since = None;
        loop {
            let at = self.at;
            let left = self.bytes.saturating_sub(at);
            if left < ChunkHeader::BYTES as u64 {
                let from = lost_since.unwrap_or(at);
                if from < self.bytes {
                    self.findings.add(
                        from,
                        format!("{} bytes that are no chunk", self.bytes - from),
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
                        .add(from, format!("{} bytes that are no chunk", at - from));
                }
                let needed = ChunkHeader::BYTES as u64 + u64::from(header.payload_bytes);
                if needed <= left && self.is_whole(&header, at, wanted(&header)) {
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
                // Many that claim much and hold nothing are not to cost more than the file twice.
                let from = if self.in_vain > self.bytes {
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

    /// The next place from `from` on, in steps of 8, where a chunk may begin. Looks at each place once,
    /// whatever the bytes are: what only begins like a chunk costs no more than what does not.
    fn search(&mut self, from: u64) -> u64 {
        let mut window = [0; 4096];
        let mut at = from;
        while at < self.bytes {
            let length = (self.bytes - at).min(window.len() as u64) as usize;
            if self.file.read_exact_at(&mut window[..length], at).is_err() {
                return self.bytes;
            }
            let may_begin = |place: &usize| {
                let here = &window[*place..length];
                here.starts_with(&CHUNK_MAGIC)
                    && here.get(..ChunkHeader::BYTES).is_none_or(|raw| {
                        bytemuck::pod_read_unaligned::<ChunkHeader>(raw).is_sound()
                    })
            };
            match (0..length).step_by(8).find(may_begin) {
                Some(place) => return at + place as u64,
                None => at += length as u64,
            }
        }
        self.bytes
    }

    /// Whether the chunk at `at` is whole. One that is not `wanted` is not read to know that when another
    /// chunk, or the end, follows on it.
    fn is_whole(&mut self, header: &ChunkHeader, at: u64, wanted: bool) -> bool {
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

    /// Reads the payload of the chunk at `at` and checks it.
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
            self.in_vain += u64::from(header.payload_bytes);
            self.findings.add(
                from,
                format!(
                    "{:?} of {} bytes have checksum {checksum:#010x}, expected {:#010x}: left out",
                    header.kind, header.payload_bytes, header.payload_checksum
                ),
            );
            return false;
        }
        true
    }
}
