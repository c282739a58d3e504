//! Measures whether the collector, when it writes a capture, keeps up with a producer that is paced by the rate of
//! plain write(2) in the same run.
//!
//! Both write to the same disk, and the written data is soon removed from the file, so that the disk is neither
//! measured nor filled.

use crate::Outcome;
use gputrail_buffer::Policy;
use gputrail_capture::Writer;
use gputrail_collect::recorder::{Recorder, RecorderOptions};
use gputrail_record::{Api, CorrelationId, ProcessId, ThreadId};
use rustix::fs::{FallocateFlags, OFlags};
use std::fs::File;
use std::io::{IoSlice, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The producer's rate, as a share of the rate of write(2), and the length of its bursts.
const SHARE: f64 = 0.6;
const BLOCKS_LAST: Duration = Duration::from_millis(100);
const BLOCK: usize = 256 << 10;
/// Bytes of a chunk's header in a capture.
const HEADER: usize = 48;
/// Number of bytes that a file keeps, and that are removed at a time.
const KEPT: u64 = 512 << 20;
const STEP: u64 = 64 << 20;
/// The time for which write(2) is measured.
const ALONE: Duration = Duration::from_secs(5);
/// Number of records between two reads of the clock, and the maximum that a late producer makes up for.
const BATCH: u64 = 256;
const BURST: Duration = Duration::from_millis(2);

/// The result of the measurement.
pub struct Report {
    seconds: f64,
    /// Bytes per second: write(2) alone, and the producer with its share.
    alone: f64,
    produced: f64,
    records: u64,
    dropped: u64,
    error: Option<String>,
}

/// Paces a producer for `seconds` seconds.
pub fn measure(folder: &Path, seconds: u64) -> Outcome<Report> {
    let alone = write_alone(&folder.join("alone"))?;
    let pace = SHARE * alone;
    let path = folder.join("paced.gputrail");
    let options = RecorderOptions {
        pool_bytes: (pace * BLOCKS_LAST.as_secs_f64()) as usize,
        block_bytes: BLOCK,
        policy: Policy::Discard,
        lanes: 16,
        ..RecorderOptions::default()
    };
    let header = Recorder::file_header(options.ticks, ProcessId(std::process::id()));
    let recorder = Recorder::start(&options, None, Writer::create(&path, &header)?)?;
    let mut lane = recorder
        .buffer()
        .lane(ThreadId(1))
        .ok_or("no lane is free")?;
    let limit = Duration::from_secs(seconds);
    let batch = Duration::from_secs_f64((BATCH * size_of::<Api>() as u64) as f64 / pace);
    let (mut records, mut dropped, mut elapsed) = (0, 0, Duration::ZERO);
    trimmed(&path, || {
        let start = Instant::now();
        let mut paid = Duration::ZERO;
        while elapsed < limit {
            // A producer that lost its core does not make up for it in a burst.
            paid = paid.max(elapsed.saturating_sub(BURST));
            if paid >= elapsed {
                thread::sleep(Duration::from_micros(50));
            }
            while paid < elapsed {
                for _ in 0..BATCH {
                    let mut api = Api::blank();
                    api.correlation = CorrelationId(records);
                    dropped += u64::from(!lane.write(api));
                    records += 1;
                }
                paid += batch;
            }
            elapsed = start.elapsed();
        }
        Ok(())
    })?;
    drop(lane);
    let mut error = recorder.finish().err().map(|(error, _)| error.to_string());
    let (written, length) = (records - dropped, std::fs::metadata(&path)?.len());
    if length < written * size_of::<Api>() as u64 {
        error.get_or_insert(format!("{length} bytes cannot hold {written} records"));
    }
    let seconds = elapsed.as_secs_f64();
    Ok(Report {
        seconds,
        alone,
        produced: (records * size_of::<Api>() as u64) as f64 / seconds,
        records,
        dropped,
        error,
    })
}

impl Report {
    pub fn print(&self) {
        println!("| the collector, writing a capture | result | target | |");
        println!("|---|---|---|---|");
        let error = self
            .error
            .as_ref()
            .map_or(String::new(), |error| format!("; {error}"));
        println!(
            "| a producer paced at {SHARE} x write(2) alone for {:.0} s, with blocks for {} ms | {} of {} records dropped, at {:.2} x write(2) \
             alone{error} | none dropped | {} |",
            self.seconds,
            BLOCKS_LAST.as_millis(),
            self.dropped,
            self.records,
            self.produced / self.alone,
            if self.dropped == 0 && self.error.is_none() {
                "met"
            } else {
                "missed"
            },
        );
    }
}

/// The rate of write(2) in bytes per second, with chunks like those of a capture.
fn write_alone(path: &Path) -> Outcome<f64> {
    let file = rustix::fs::open(
        path,
        OFlags::CREATE | OFlags::EXCL | OFlags::APPEND | OFlags::WRONLY,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
    )?;
    let mut file = File::from(file);
    let (header, block) = (vec![1; HEADER], vec![1; BLOCK]);
    let mut bytes = 0;
    let mut elapsed = Duration::ZERO;
    trimmed(path, || {
        let start = Instant::now();
        while elapsed < ALONE {
            bytes += file.write_vectored(&[IoSlice::new(&header), IoSlice::new(&block)])?;
            elapsed = start.elapsed();
        }
        Ok(())
    })?;
    std::fs::remove_file(path)?;
    Ok(bytes as f64 / elapsed.as_secs_f64())
}

/// Runs `work`, and meanwhile removes the beginning of the growing file at `path`.
fn trimmed(path: &Path, work: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
    let file = File::options().write(true).open(path)?;
    let running = AtomicBool::new(true);
    thread::scope(|scope| {
        let trimmer = scope.spawn(|| -> std::io::Result<()> {
            let mut from = 0;
            while running.load(Ordering::Relaxed) {
                let bytes = file.metadata()?.len();
                if bytes < from + KEPT + STEP {
                    thread::sleep(Duration::from_millis(5));
                    continue;
                }
                let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                rustix::fs::fallocate(&file, hole, from, STEP)?;
                from += STEP;
            }
            Ok(())
        });
        let worked = work();
        running.store(false, Ordering::Relaxed);
        trimmer.join().expect("it does not panic")?;
        worked
    })
}
