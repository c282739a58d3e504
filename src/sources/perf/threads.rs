//! The sampled threads: all threads of the process except the drain thread, as any thread may run kernels: the workers
//! of the runtime, and threads that wait for work. Sampling a thread costs a share of its CPU time.

use super::event::sample_time;
use super::ring::RingRecord;
use super::source::{self, ThreadData, ThreadSampler};
use super::timer;
use gputrail_collect::sampling::SampleSource;
use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;

/// The directory that lists the threads of the process.
const THREADS: &str = "/proc/self/task";
/// The number of scans after which the directory is read even if its link count is unchanged.
const FULL_SCAN: u64 = 8;

/// The most threads that are sampled at the same time.
const MAX_THREADS: usize = 1024;
/// The number of scans after which a thread that could not be sampled is tried again.
const RETRY: u64 = 64;

/// The sampled threads of this process.
pub struct Threads {
    source: SampleSource,
    interval: u64,
    ring: usize,
    sampled: HashMap<u32, SampledThread>,
    /// Threads that could not be sampled, with the scan of the last attempt.
    refused: HashMap<u32, u64>,
    scans: u64,
    /// The link count of the directory at the last full scan.
    links: u64,
    scratch: Vec<u8>,
    /// The first error of opening a sampler.
    error: Option<io::Error>,
    /// Rings that contained a malformed record.
    pub damaged: u64,
    /// The number of times that the kernel throttled sampling.
    pub throttled: u64,
}

struct SampledThread {
    sampler: ThreadSampler,
    /// The time of its latest record.
    last: u64,
    has_ended: bool,
    scan: u64,
}

impl Threads {
    /// Creates an empty set. The ring of each thread will have `ring` bytes.
    pub fn new(source: SampleSource, interval: u64, ring: usize) -> Threads {
        Threads {
            source,
            interval,
            ring,
            sampled: HashMap::new(),
            refused: HashMap::new(),
            scans: 0,
            links: 0,
            scratch: Vec::with_capacity(ring),
            error: None,
            damaged: 0,
            throttled: 0,
        }
    }

    /// Updates the set to the threads that exist now, except `own_thread`.
    pub fn scan(&mut self, own_thread: u32) {
        self.scans += 1;
        if self.source == SampleSource::Timers && timer::is_overridden() {
            self.sampled.clear();
            let error = "the program handles the timers' signal itself: sampling has ended";
            self.error.get_or_insert(io::Error::other(error));
            return;
        }
        let scan = self.scans;
        // The link count equals the number of threads plus two. It is mostly unchanged.
        let links = std::fs::metadata(THREADS).map_or(0, |list| list.nlink());
        if links == self.links && !scan.is_multiple_of(FULL_SCAN) {
            let all = self.sampled.values_mut();
            return all.for_each(|known| known.scan = scan);
        }
        self.links = links;
        let Ok(list) = std::fs::read_dir(THREADS) else {
            return;
        };
        let now = sample_time();
        for entry in list.flatten() {
            let name = entry.file_name();
            let Some(thread) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            if let Some(known) = self.sampled.get_mut(&thread) {
                known.scan = scan;
                continue;
            }
            let tried = self.refused.get(&thread);
            if thread == own_thread
                || self.sampled.len() >= MAX_THREADS
                || tried.is_some_and(|tried| scan - tried < RETRY)
            {
                continue;
            }
            let opened = ThreadSampler::open(self.source, thread, self.interval, self.ring);
            match opened {
                Ok(sampler) => {
                    let sampled = SampledThread {
                        sampler,
                        last: now,
                        has_ended: false,
                        scan,
                    };
                    self.sampled.insert(thread, sampled);
                }
                // The thread has exited.
                Err(_) if !std::path::Path::new(THREADS).join(name).exists() => {}
                Err(error) => {
                    self.error.get_or_insert(error);
                    self.refused.insert(thread, scan);
                }
            }
        }
        self.refused.retain(|_, tried| scan - *tried < RETRY);
    }

    /// Reports everything taken from all threads, and removes threads that have exited.
    pub fn drain(&mut self, mut report: impl FnMut(ThreadData<'_>)) {
        let (scans, scratch) = (self.scans, &mut self.scratch);
        let (damaged, throttled) = (&mut self.damaged, &mut self.throttled);
        let mut has_changed = false;
        self.sampled.retain(|_, thread| {
            let (mut last, mut has_ended) = (thread.last, thread.has_ended);
            let is_damaged = thread.sampler.drain(scratch, &mut last, |data| {
                match data {
                    ThreadData::Record(RingRecord::Exit) => has_ended = true,
                    ThreadData::Record(RingRecord::Throttled) => *throttled += 1,
                    _ => {}
                }
                report(data);
            });
            *damaged += u64::from(is_damaged);
            thread.last = last;
            // Another thread may have been created: the link count may be unchanged.
            has_changed |= has_ended;
            // The exit record may have been lost: the directory decides then.
            let keep = !thread.has_ended && (!has_ended && thread.scan == scans);
            thread.has_ended = has_ended;
            keep
        });
        if has_changed {
            self.links = 0;
        }
    }

    /// The number of threads that could not be sampled recently.
    pub fn refused(&self) -> usize {
        self.refused.len()
    }

    /// Explains the first error of opening a sampler.
    pub fn why_refused(&self) -> Option<String> {
        Some(source::explain(self.source, self.error.as_ref()?))
    }

    /// Whether mappings of the threads are reported.
    pub fn reports_mappings(&self) -> bool {
        self.source == SampleSource::PerfEvents
    }
}
