//! Appending to a capture from inside the recorded program.
//!
//! The file is written with write(2) and never mapped: a full disk then gives an error instead of a signal. The first
//! error ends the capture. It is truncated to its last complete chunk, later records are dropped and counted, and the
//! program continues undisturbed.
//!
//! In a session, the recorded process has no file: its metadata goes through a [queue](super::queue) to `gputrail record`,
//! which appends everything.

use super::format::{ChunkHeader, ChunkKind, FileHeader, MAX_PAYLOAD};
#[cfg(target_os = "linux")]
use super::queue::QueueWriter;
use gputrail_buffer::{BlockView, Sink};
use gputrail_record::{ClockSnapshot, Record, Records};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Why a capture has ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the capture ended at byte {bytes}: {reason}")]
pub struct WriteError {
    /// Length of the capture when it ended.
    pub bytes: u64,
    /// The error number of the system call, or 0.
    pub errno: i32,
    /// The reason for users.
    pub reason: String,
}

/// Appends chunks to one capture. Clones share one file.
#[derive(Clone)]
pub struct Writer {
    state: Arc<Mutex<WriterState>>,
}

struct WriterState {
    output: ChunkOutput,
    ended: Option<WriteError>,
    /// Records that arrived after the capture had ended.
    lost: u64,
}

/// Where chunks go.
enum ChunkOutput {
    File(CaptureFile),
    /// To the process that writes the file.
    #[cfg(target_os = "linux")]
    Queue(QueueWriter),
}

struct CaptureFile {
    file: File,
    /// Device and inode of the capture. A program may close descriptors that it does not own, and reuse the number for
    /// a file of its own: a write to another file is refused.
    identity: (u64, u64),
    /// Its absolute path, if it was created here: it is opened again when the program has closed the descriptor.
    path: Option<PathBuf>,
    bytes: u64,
    scratch: Vec<u8>,
}

impl Writer {
    /// Creates a capture at `path` with permissions for its owner only. Fails if the path exists, and does not follow
    /// symbolic links.
    pub fn create(path: &Path, header: &FileHeader) -> io::Result<Writer> {
        let flags = OFlags::CREATE
            | OFlags::EXCL
            | OFlags::NOFOLLOW
            | OFlags::APPEND
            | OFlags::RDWR
            | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
        let writer = Writer::begin(file, header)?;
        if let ChunkOutput::File(file) = &mut writer.locked().output {
            file.path = std::path::absolute(path).ok();
        }
        Ok(writer)
    }

    /// A writer of metadata to a capture that another process writes.
    #[cfg(target_os = "linux")]
    pub fn to_queue(queue: QueueWriter) -> Writer {
        Writer::new(ChunkOutput::Queue(queue))
    }

    fn new(output: ChunkOutput) -> Writer {
        Writer {
            state: Arc::new(Mutex::new(WriterState {
                output,
                ended: None,
                lost: 0,
            })),
        }
    }

    /// Starts a capture in `file`, which must be empty and in append mode.
    pub fn begin(file: OwnedFd, header: &FileHeader) -> io::Result<Writer> {
        let writer = Writer::resume(file)?;
        writer
            .locked()
            .append(&[bytemuck::bytes_of(header)])
            .map_err(|error| match error.errno {
                0 => io::Error::other(error.reason),
                errno => io::Error::from_raw_os_error(errno),
            })?;
        Ok(writer)
    }

    /// Continues at the end of an existing capture. A torn chunk at its end remains, and readers skip it.
    pub fn resume(file: OwnedFd) -> io::Result<Writer> {
        let stat = rustix::fs::fstat(&file)?;
        let mut bytes = stat.st_size as u64;
        let file = File::from(file);
        if !bytes.is_multiple_of(8) {
            // Chunks are aligned to 8 bytes.
            bytes = bytes.next_multiple_of(8);
            file.set_len(bytes)?;
        }
        Ok(Writer::new(ChunkOutput::File(CaptureFile {
            file,
            identity: identity(&stat),
            path: None,
            bytes,
            scratch: Vec::new(),
        })))
    }

    /// Appends a run of records of one lane.
    pub fn records(&self, view: &BlockView<'_>) -> Result<(), WriteError> {
        let mut header = ChunkHeader::new(ChunkKind::RECORDS, view.bytes);
        header.lane = view.lane;
        header.thread = view.thread;
        header.sequence = view.sequence;
        header.offset = view.offset;
        header.first_record = view.first_record;
        let mut state = self.locked();
        let result = state.append(&[bytemuck::bytes_of(&header.sealed()), view.bytes]);
        if result.is_err() {
            state.lost += Records::new(view.bytes).count() as u64;
        }
        result
    }

    /// Appends metadata records.
    pub fn metadata(&self, payload: &[u8]) -> Result<(), WriteError> {
        debug_assert!(payload.len() <= MAX_PAYLOAD && payload.len().is_multiple_of(8));
        let mut state = self.locked();
        #[cfg(target_os = "linux")]
        if let ChunkOutput::Queue(queue) = &mut state.output {
            // Later metadata may find room again. The queue counts what it lost.
            return queue.metadata(payload).map_err(|error| WriteError {
                bytes: 0,
                errno: 0,
                reason: error.to_string(),
            });
        }
        let header = ChunkHeader::new(ChunkKind::METADATA, payload).sealed();
        state.append(&[bytemuck::bytes_of(&header), payload])
    }

    /// Appends a chunk.
    #[cfg(target_os = "linux")]
    pub(super) fn chunk(&self, chunk: &[u8]) -> Result<(), WriteError> {
        self.locked().append(&[chunk])
    }

    /// Appends one metadata record.
    pub fn metadata_record<R: Record>(&self, record: &R) -> Result<(), WriteError> {
        self.metadata(bytemuck::bytes_of(record))
    }

    /// Marks the capture as complete.
    pub fn end(&self) -> Result<(), WriteError> {
        let header = ChunkHeader::new(ChunkKind::END, &[]).sealed();
        self.locked().append(&[bytemuck::bytes_of(&header)])
    }

    /// The error that ended the capture and the number of records lost since, or `None` while it is open.
    pub fn error(&self) -> Option<(WriteError, u64)> {
        let state = self.locked();
        state.ended.clone().map(|error| (error, state.lost))
    }

    /// Length of the capture.
    pub fn bytes(&self) -> u64 {
        match &self.locked().output {
            ChunkOutput::File(file) => file.bytes,
            #[cfg(target_os = "linux")]
            ChunkOutput::Queue(_) => 0,
        }
    }

    fn locked(&self) -> gputrail_buffer::platform::sync::QuietGuard<'_, WriterState> {
        gputrail_buffer::platform::sync::lock_std(&self.state)
    }
}

impl WriterState {
    /// Appends `parts` as one write, or ends the capture.
    fn append(&mut self, parts: &[&[u8]]) -> Result<(), WriteError> {
        if let Some(ended) = &self.ended {
            return Err(ended.clone());
        }
        let file = match &mut self.output {
            ChunkOutput::File(file) => file,
            // Only metadata goes through a queue.
            #[cfg(target_os = "linux")]
            ChunkOutput::Queue(_) => return Ok(()),
        };
        file.append(parts).map_err(|error| {
            let ended = WriteError {
                bytes: file.bytes,
                errno: error.raw_os_error().unwrap_or(0),
                reason: error.to_string(),
            };
            self.ended.insert(ended).clone()
        })
    }
}

impl CaptureFile {
    /// Appends `parts` as one write. After an error, the file ends with its last complete chunk.
    fn append(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let mut written = 0;
        let result = self
            .check(total as u64)
            .and_then(|()| self.write_all(parts, total, &mut written));
        match result {
            Ok(()) => self.bytes += total as u64,
            Err(_) if written > 0 && self.length().is_some() => {
                let _ = self.file.set_len(self.bytes);
            }
            Err(_) => {}
        }
        result
    }

    /// Rejects a write that would raise SIGXFSZ or go to a file of the program's own.
    fn check(&mut self, more: u64) -> io::Result<()> {
        if self.length().is_none() {
            // The program has closed the descriptor of the capture.
            self.open_again()?;
        }
        self.bytes = self.length().ok_or(rustix::io::Errno::BADF)?;
        let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
        match limit.current {
            Some(most) if self.bytes + more > most => Err(rustix::io::Errno::FBIG.into()),
            _ => Ok(()),
        }
    }

    fn open_again(&mut self) -> io::Result<()> {
        let path = self.path.as_deref().ok_or(rustix::io::Errno::BADF)?;
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::empty())?;
        // The number of the old descriptor is not ours any more.
        std::mem::forget(std::mem::replace(&mut self.file, file.into()));
        Ok(())
    }

    /// The length of the capture, or `None` if the descriptor refers to another file.
    fn length(&self) -> Option<u64> {
        let stat = rustix::fs::fstat(&self.file).ok()?;
        (identity(&stat) == self.identity).then_some(stat.st_size as u64)
    }

    fn write_all(&mut self, parts: &[&[u8]], total: usize, written: &mut usize) -> io::Result<()> {
        let mut slices: [io::IoSlice<'_>; 2] = [io::IoSlice::new(&[]), io::IoSlice::new(&[])];
        for (slice, part) in slices.iter_mut().zip(parts) {
            *slice = io::IoSlice::new(part);
        }
        *written = match io::Write::write_vectored(&mut self.file, &slices[..parts.len()]) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        // Partial writes are rare: the rest is copied together and written in a loop.
        if *written < total {
            self.scratch.clear();
            parts
                .iter()
                .for_each(|part| self.scratch.extend_from_slice(part));
            while *written < total {
                match io::Write::write(&mut self.file, &self.scratch[*written..]) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(more) => *written += more,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

/// The sink that writes records and snapshots of the host's clocks to a capture.
pub struct CaptureSink {
    writer: Writer,
}

impl CaptureSink {
    /// A sink that appends to `writer`.
    pub fn new(writer: Writer) -> CaptureSink {
        CaptureSink { writer }
    }
}

impl Sink for CaptureSink {
    fn records(&mut self, view: &BlockView<'_>) {
        // The writer holds its error and counts the lost records.
        let _ = self.writer.records(view);
    }

    fn tick(&mut self, reading: Option<&ClockSnapshot>) {
        if let Some(reading) = reading {
            let _ = self.writer.metadata_record(reading);
        }
    }
}

/// The size of the capture `file` up to the end of its last complete chunk, while another process
/// may be appending.
pub fn complete_bytes(file: &mut File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let mut complete = size_of::<FileHeader>() as u64;
    loop {
        let mut header: ChunkHeader = bytemuck::Zeroable::zeroed();
        file.seek(SeekFrom::Start(complete))?;
        if file
            .read_exact(bytemuck::bytes_of_mut(&mut header))
            .is_err()
            || !header.is_sound()
        {
            return Ok(complete);
        }
        let end = complete + ChunkHeader::BYTES as u64 + u64::from(header.payload_bytes);
        if end > length {
            return Ok(complete);
        }
        complete = end;
    }
}

/// Device and inode of a file, which identify it regardless of its path.
#[allow(clippy::unnecessary_cast)] // the types differ between systems
fn identity(stat: &rustix::fs::Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}
