//! Reading a capture while it is being written.
//!
//! A chunk that is completely visible is final: it was written by one write, or it is not the last. Names precede the
//! records that refer to them, so one pass suffices. Damage is left to a [`Reader`](super::Reader) once the capture is
//! complete.

use super::format::{ChunkHeader, ChunkKind, FileHeader};
use super::reader::{CaptureFinding, Chunk, DeliveredParts, ReadError, read_file_header};
use gputrail_record::Records;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Reads a growing capture from front to back.
#[derive(Debug)]
pub struct Follower {
    file: File,
    header: FileHeader,
    at: u64,
    payload: Vec<u8>,
    delivered: DeliveredParts,
}

/// The next part of a growing capture.
#[derive(Debug)]
pub enum Step<'a> {
    /// Records of one lane.
    Records(Chunk<'a>),
    /// Names and clocks.
    Metadata(Records<'a>),
    /// Nothing has been appended since.
    Nothing,
}

impl Follower {
    /// Opens the capture at `path`, or returns `None` while it has no header.
    pub fn open(path: &Path) -> Result<Option<Follower>, ReadError> {
        let io = |source| ReadError::Io {
            path: path.into(),
            source,
        };
        let file = File::open(path).map_err(io)?;
        let bytes = file.metadata().map_err(io)?.len();
        if bytes < size_of::<FileHeader>() as u64 {
            return Ok(None);
        }
        Ok(Some(Follower {
            header: read_file_header(path, &file, bytes)?,
            file,
            at: size_of::<FileHeader>() as u64,
            payload: Vec::new(),
            delivered: DeliveredParts::default(),
        }))
    }

    /// The header of the file.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// Whether lanes lack blocks, so far: see [`Chunks::has_gaps`](super::Chunks::has_gaps).
    pub fn has_gaps(&self) -> bool {
        self.delivered.has_gaps
    }

    /// Reads the next chunk if it has been written. An error means that the file is damaged here.
    pub fn step(&mut self) -> Result<Step<'_>, CaptureFinding> {
        loop {
            let at = self.at;
            let damaged = |what: &str| CaptureFinding {
                offset: at,
                what: what.into(),
            };
            let mut raw = [0; ChunkHeader::BYTES];
            if !self.read(&mut raw, at)? {
                return Ok(Step::Nothing);
            }
            let header: ChunkHeader = bytemuck::pod_read_unaligned(&raw);
            if !header.is_sound() {
                return Err(damaged("no chunk begins here"));
            }
            let mut payload = std::mem::take(&mut self.payload);
            payload.resize(header.payload_bytes as usize, 0);
            let complete = self.read(&mut payload, at + ChunkHeader::BYTES as u64);
            self.payload = payload;
            if !complete? {
                return Ok(Step::Nothing);
            }
            if crc32fast::hash(&self.payload) != header.payload_checksum {
                return Err(damaged("a chunk with a wrong checksum"));
            }
            self.at = at + (ChunkHeader::BYTES + self.payload.len()) as u64;
            match header.kind {
                ChunkKind::RECORDS if !self.delivered.has(&header) => {
                    let before = self.delivered.bytes_of(&header);
                    self.delivered.add(&header);
                    let chunk = Chunk::new(&header, at, &self.payload, before);
                    return Ok(Step::Records(chunk));
                }
                ChunkKind::METADATA => return Ok(Step::Metadata(Records::new(&self.payload))),
                _ => {}
            }
        }
    }

    /// Reads `bytes` at `at`, or returns `false` if the file does not contain all of them yet.
    fn read(&self, bytes: &mut [u8], at: u64) -> Result<bool, CaptureFinding> {
        match self.file.read_exact_at(bytes, at) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(CaptureFinding {
                offset: at,
                what: format!("cannot be read: {error}"),
            }),
        }
    }
}
