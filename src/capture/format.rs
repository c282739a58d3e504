//! The layout of the capture file.

use bytemuck::{Pod, Zeroable};
use gputrail_record::{FORMAT_VERSION, ProcessId, ThreadId};

pub(super) const FILE_MAGIC: [u8; 8] = *b"GPUTRAIL";
pub(super) const CHUNK_MAGIC: [u8; 4] = *b"GTCK";
/// The largest payload of a chunk: the largest block, or the largest run of metadata.
pub(super) const MAX_PAYLOAD: usize = 64 << 20;

/// The first 64 bytes of a capture.
///
/// ```text
///  0 magic "GPUTRAIL"   8 version       12 header bytes
/// 16 tick source       20 process id    24 ticks per second
/// 32 CLOCK_REALTIME at creation         40 identity (16 bytes)
/// 56 crc32 of bytes 0..56               60 reserved
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct FileHeader {
    pub(super) magic: [u8; 8],
    /// Version of the format.
    pub version: u32,
    pub(super) header_bytes: u32,
    /// Code of the tick source ([`gputrail_buffer::clock::TickSource::code`]).
    pub tick_source: u32,
    /// The recorded process.
    pub process: ProcessId,
    /// Ticks per second, measured at the start.
    pub tick_frequency: u64,
    /// CLOCK_REALTIME at creation, in nanoseconds.
    pub created: u64,
    /// Random bytes that identify the capture.
    pub identity: [u8; 16],
    pub(super) checksum: u32,
    pub(super) reserved: u32,
}

impl FileHeader {
    /// The header of a new capture.
    pub fn new(
        tick_source: u32,
        process: ProcessId,
        tick_frequency: u64,
        created: u64,
        identity: [u8; 16],
    ) -> FileHeader {
        let mut header = FileHeader {
            magic: FILE_MAGIC,
            version: FORMAT_VERSION,
            header_bytes: size_of::<FileHeader>() as u32,
            tick_source,
            process,
            tick_frequency,
            created,
            identity,
            checksum: 0,
            reserved: 0,
        };
        header.checksum = header.computed_checksum();
        header
    }

    pub(super) fn computed_checksum(&self) -> u32 {
        crc32fast::hash(&bytemuck::bytes_of(self)[..56])
    }
}

gputrail_record::open_enum! {
    /// The contents of a chunk.
    ChunkKind(u16) {
        /// Records of one lane.
        RECORDS = 1, "records";
        /// Metadata records: names, clocks, notes.
        METADATA = 2, "metadata";
        /// No payload: the process ended its session, and the capture is complete.
        END = 3, "end";
    }
}

/// The header of a chunk, which precedes its payload. 48 bytes.
///
/// ```text
///  0 magic "GTCK"   4 kind         6 flags    8 payload bytes   12 crc32 of the payload
/// 16 lane          20 thread      24 sequence                   28 offset in the block
/// 32 first record  36 reserved    40 reserved                   44 crc32 of bytes 0..44
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ChunkHeader {
    pub magic: [u8; 4],
    pub kind: ChunkKind,
    pub flags: u16,
    pub payload_bytes: u32,
    pub payload_checksum: u32,
    pub lane: u32,
    pub thread: ThreadId,
    pub sequence: u32,
    pub offset: u32,
    pub first_record: u32,
    pub reserved: [u32; 2],
    pub checksum: u32,
}

impl ChunkHeader {
    pub const BYTES: usize = size_of::<ChunkHeader>();

    pub fn new(kind: ChunkKind, payload: &[u8]) -> ChunkHeader {
        ChunkHeader {
            magic: CHUNK_MAGIC,
            kind,
            payload_bytes: payload.len() as u32,
            payload_checksum: crc32fast::hash(payload),
            ..Zeroable::zeroed()
        }
    }

    pub fn sealed(mut self) -> ChunkHeader {
        self.checksum = self.computed_checksum();
        self
    }

    pub fn computed_checksum(&self) -> u32 {
        crc32fast::hash(&bytemuck::bytes_of(self)[..44])
    }

    /// Whether magic, checksum and length are valid.
    pub fn is_sound(&self) -> bool {
        self.magic == CHUNK_MAGIC
            && self.checksum == self.computed_checksum()
            && self.payload_bytes as usize <= MAX_PAYLOAD
            && self.payload_bytes.is_multiple_of(8)
    }
}

const _: () = assert!(size_of::<FileHeader>() == 64 && size_of::<ChunkHeader>() == 48);
