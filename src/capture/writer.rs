//! Appending to a capture, from inside somebody else's process.
//!
//! The file is written with write(2) and never mapped: a disk that fills gives an error instead of a
//! signal. The first error ends the capture: it is cut back to its last whole chunk, what comes
//! later is dropped and counted, and the program goes on undisturbed.

use super::format::{ChunkHeader, ChunkKind, FileHeader, MAX_PAYLOAD};
use crate::buffer::{BlockView, Sink};
use crate::clock;
use crate::record::{Record, Records};
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Why a capture takes no more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the capture ended at byte {bytes}: {reason}")]
pub struct WriteError {
    /// Length of the capture when it ended.
    pub bytes: u64,
    /// The system's error number, 0 if it was something else.
    pub errno: i32,
    /// The reason, in words.
    pub reason: String,
}

/// Appends chunks to one capture. Clones write to the same file.
#[derive(Clone)]
pub struct Writer {
    state: Arc<Mutex<State>>,
}

struct State {
    file: File,
    /// Device and inode: a program may close descriptors that are not its own, and get the number
    /// for a file of its own. Nothing is written to another file than the one we were given.
    identity: (u64, u64),
    bytes: u64,
    ended: Option<WriteError>,
    /// Records that came after the capture had ended.
    lost: u64,
    scratch: Vec<u8>,
}

impl Writer {
    /// A new capture at `path`, for its owner alone. Fails if something is there already, and
    /// follows no links.
    pub fn create(path: &Path, header: &FileHeader) -> io::Result<Writer> {
        let flags = OFlags::CREATE
            | OFlags::EXCL
            | OFlags::NOFOLLOW
            | OFlags::APPEND
            | OFlags::RDWR
            | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
        Writer::begin(file, header)
    }

    /// A new capture in `file`, which is empty and open for appending.
    pub fn begin(file: OwnedFd, header: &FileHeader) -> io::Result<Writer> {
        let writer = Writer::resume(file)?;
        writer
            .locked()
            .append(&[bytemuck::bytes_of(header)])
            .map_err(|error| io::Error::other(error.reason))?;
        Ok(writer)
    }

    /// Goes on at the end of `file`, which somebody else began; a torn chunk at its end stays, and
    /// readers step over it.
    pub fn resume(file: OwnedFd) -> io::Result<Writer> {
        let stat = rustix::fs::fstat(&file)?;
        let mut bytes = stat.st_size as u64;
        let file = File::from(file);
        if !bytes.is_multiple_of(8) {
            // Chunks stand at multiples of 8.
            bytes = bytes.next_multiple_of(8);
            file.set_len(bytes)?;
        }
        Ok(Writer {
            state: Arc::new(Mutex::new(State {
                file,
                identity: (stat.st_dev as u64, stat.st_ino as u64),
                bytes,
                ended: None,
                lost: 0,
                scratch: Vec::new(),
            })),
        })
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
        let header = ChunkHeader::new(ChunkKind::METADATA, payload).sealed();
        self.locked()
            .append(&[bytemuck::bytes_of(&header), payload])
    }

    /// Appends one metadata record.
    pub fn metadata_record<R: Record>(&self, record: &R) -> Result<(), WriteError> {
        self.metadata(bytemuck::bytes_of(record))
    }

    /// Says that everything has been written.
    pub fn end(&self) -> Result<(), WriteError> {
        let header = ChunkHeader::new(ChunkKind::END, &[]).sealed();
        self.locked().append(&[bytemuck::bytes_of(&header)])
    }

    /// Why the capture takes no more, and how many records came after that; `None` while it does.
    pub fn error(&self) -> Option<(WriteError, u64)> {
        let state = self.locked();
        state.ended.clone().map(|error| (error, state.lost))
    }

    /// Length of the capture.
    pub fn bytes(&self) -> u64 {
        self.locked().bytes
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, State> {
        crate::sync::lock_std(&self.state)
    }
}

impl State {
    /// Appends `parts` as one, or ends the capture.
    fn append(&mut self, parts: &[&[u8]]) -> Result<(), WriteError> {
        if let Some(ended) = &self.ended {
            return Err(ended.clone());
        }
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let result = self
            .check(total as u64)
            .and_then(|()| self.write_all(parts, total));
        if let Err(error) = result {
            // Back to the last whole chunk. If even that fails, a reader steps over the torn one.
            if self.is_ours() {
                let _ = self.file.set_len(self.bytes);
            }
            let ended = WriteError {
                bytes: self.bytes,
                errno: error.raw_os_error().unwrap_or(0),
                reason: error.to_string(),
            };
            self.ended = Some(ended.clone());
            return Err(ended);
        }
        self.bytes += total as u64;
        Ok(())
    }

    /// Refuses what would raise SIGXFSZ in the program, or go into a file of its own.
    fn check(&self, more: u64) -> io::Result<()> {
        if !self.is_ours() {
            // The program has closed the capture's descriptor.
            return Err(rustix::io::Errno::BADF.into());
        }
        let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
        match limit.current {
            Some(most) if self.bytes + more > most => Err(rustix::io::Errno::FBIG.into()),
            _ => Ok(()),
        }
    }

    fn is_ours(&self) -> bool {
        rustix::fs::fstat(&self.file)
            .is_ok_and(|stat| ({ stat.st_dev }, { stat.st_ino }) == self.identity)
    }

    fn write_all(&mut self, parts: &[&[u8]], total: usize) -> io::Result<()> {
        let mut slices: [io::IoSlice<'_>; 2] = [io::IoSlice::new(&[]), io::IoSlice::new(&[])];
        for (slice, part) in slices.iter_mut().zip(parts) {
            *slice = io::IoSlice::new(part);
        }
        let mut written = match io::Write::write_vectored(&mut self.file, &slices[..parts.len()]) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        // A write that was cut short is rare: then the rest is put together and written plainly.
        if written < total {
            self.scratch.clear();
            parts
                .iter()
                .for_each(|part| self.scratch.extend_from_slice(part));
            while written < total {
                match io::Write::write(&mut self.file, &self.scratch[written..]) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(more) => written += more,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

/// The sink that keeps records in a capture, and the host's clocks with them.
pub struct CaptureSink {
    writer: Writer,
    on_end: Box<dyn Fn(&WriteError) + Send>,
    ticks: clock::TickSource,
}

impl CaptureSink {
    /// A sink that appends to `writer`. `on_end` is told when the capture takes no more.
    pub fn new(
        writer: Writer,
        ticks: clock::TickSource,
        on_end: impl Fn(&WriteError) + Send + 'static,
    ) -> CaptureSink {
        CaptureSink {
            writer,
            on_end: Box::new(on_end),
            ticks,
        }
    }
}

impl Sink for CaptureSink {
    fn records(&mut self, view: &BlockView<'_>) {
        if let Err(error) = self.writer.records(view) {
            (self.on_end)(&error);
        }
    }

    fn tick(&mut self) {
        // A simulation keeps its own time and writes its own snapshots.
        if self.ticks != clock::TickSource::Virtual
            && let Err(error) = self.writer.metadata_record(&clock::snapshot())
        {
            (self.on_end)(&error);
        }
    }
}
