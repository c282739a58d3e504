//! The flight recorder of a session: each process keeps what happens last in its own memory, and the parent writes it
//! out when something asks for it, while the programs go on.
//!
//! A dump is a capture for each process: its records, in the order in which each lane wrote them; the calls it is in;
//! and a copy of what its own capture has, which under this policy is everything that has been named, and the clocks.
//! So names never fall out.

use super::server::Live;
use gputrail_buffer::BlockView;
use gputrail_buffer::clock::{self, SystemClock, TickSource};
use gputrail_buffer::platform::sync::lock_std;
use gputrail_capture::{self as capture, FileHeader, Writer};
use gputrail_record::{Api, Nanos, ThreadId, Ticks};
use rustix::fs::{Mode, OFlags};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// The settings of a flight recorder: how much it keeps, and when it dumps.
#[derive(Clone, Debug)]
pub struct Flight {
    /// Time that is written out, counted back from the dump, as far as the memory reaches; `None` for all of it.
    pub keep: Option<Duration>,
    /// A call that takes at least as long triggers a dump.
    pub slow_call: Option<Duration>,
    /// Dumps, at most.
    pub max_dumps: u32,
    /// Receives each dump; the last sender goes with the session.
    pub dumps: Sender<FlightDump>,
}

/// One dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlightDump {
    /// Its number, from 1.
    pub number: u32,
    /// A capture for each process that had recorded something.
    pub captures: Vec<PathBuf>,
    /// Why there are not more, if there should be.
    pub failed: Option<String>,
    /// How far back the memory reaches, if that is less than [`Flight::keep`].
    pub reach: Option<Duration>,
    /// When [`Flight::keep`] began, on CLOCK_BOOTTIME. Blocks are written whole, so that the captures hold older records,
    /// too. `None` without such a limit, and for processes whose times are virtual.
    pub since: Option<Nanos>,
}

impl Flight {
    /// Writes out what `processes` keep now, as dump `number`, into `folder`.
    pub(super) fn dump(&self, number: u32, processes: &[Live], folder: &Path) {
        let mut dump = FlightDump {
            number,
            captures: Vec::new(),
            failed: None,
            reach: None,
            since: self.since(processes),
        };
        for live in processes {
            let name = format!("flight-{number}-{}.gputrail", live.capture.process);
            let path = folder.join(name);
            match self.dump_process(live, &path) {
                Ok(Some(reach)) => {
                    let shortest = dump.reach.into_iter().chain(reach).min();
                    dump.reach = shortest;
                    dump.captures.push(path);
                }
                Ok(None) => {}
                Err(error) => {
                    let _ = std::fs::remove_file(&path);
                    dump.failed = Some(format!("process {}: {error}", live.capture.pid));
                }
            }
        }
        // The receiver is gone when the command is ending.
        let _ = self.dumps.send(dump);
    }

    /// See [`FlightDump::since`].
    fn since(&self, processes: &[Live]) -> Option<Nanos> {
        let is_virtual = |live: &Live| live.ticks == TickSource::Virtual;
        let keep = self.keep.filter(|_| !processes.iter().any(is_virtual))?;
        let nanos = keep.as_nanos().try_into().unwrap_or(u64::MAX);
        let now = SystemClock::Boottime.read().0;
        Some(Nanos(now.saturating_sub(nanos)))
    }

    /// Returns how far back the memory reaches, if that is less than what is to be kept. `None`: the process has not begun
    /// to record.
    fn dump_process(&self, live: &Live, path: &Path) -> io::Result<Option<Option<Duration>>> {
        lock_std(&live.metadata).drain(&live.writer);
        if lock_std(&live.metadata).is_unused() {
            return Ok(None);
        }
        let mut own = File::open(&live.capture.path)?;
        let mut header = [0; size_of::<FileHeader>()];
        own.read_exact(&mut header)?;
        let file = rustix::fs::open(
            path,
            OFlags::RDWR
                | OFlags::APPEND
                | OFlags::CREATE
                | OFlags::EXCL
                | OFlags::NOFOLLOW
                | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        )?;
        let mut file = File::from(file);
        io::Write::write_all(&mut file, &header)?;
        let writer = Writer::resume(file.try_clone()?.into())?;
        let now = clock::now_of(live.ticks);
        let since = self.keep.map_or(Ticks::NONE, |keep| {
            Ticks(now.0.saturating_sub(clock::ticks_of(keep)))
        });
        // The last call of each lane may have ended and still stand among those in progress.
        let mut ended = HashSet::new();
        let reach = live.buffer.dump(since, |view| {
            let calls = view.records().filter_map(|record| record.read::<Api>());
            ended.extend(calls.last().map(|call| call.correlation));
            // An error stays with the writer.
            let _ = writer.records(view);
        });
        let open = capture::open_calls(live.buffer.mapping(), &ended);
        if !open.is_empty() {
            let _ = writer.records(&BlockView {
                lane: 0,
                thread: ThreadId::NONE,
                sequence: u32::MAX,
                offset: 0,
                first_record: 0,
                bytes: &open,
            });
        }
        let _ = writer.metadata_record(&clock::snapshot_of(live.ticks));
        // Last: what the records refer to was named before they were written.
        lock_std(&live.metadata).drain(&live.writer);
        let complete = capture::complete_bytes(&mut own)?;
        own.seek(SeekFrom::Start(header.len() as u64))?;
        io::copy(&mut own.take(complete - header.len() as u64), &mut file)?;
        let _ = writer.end();
        match writer.error() {
            Some((error, _)) => Err(io::Error::other(error)),
            None => Ok(Some(reach.filter(|_| self.keep.is_some()).map(|reach| {
                let ticks = u128::from(now.0.saturating_sub(reach.0));
                let nanos = ticks * 1_000_000_000 / u128::from(clock::frequency_of(live.ticks));
                Duration::from_nanos(nanos.try_into().unwrap_or(u64::MAX))
            }))),
        }
    }
}
