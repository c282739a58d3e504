//! The threads of the process that are sampled: all of them but ours. Which of them run kernels is the runtime's affair: its
//! worker threads, and those that wait. A thread that runs no kernels costs what any thread costs that is sampled: a share
//! of the time that it runs.

use super::event::SampleClock;
use super::ring::RingRecord;
use super::source::{SampleSource, ThreadSampler};
use super::timer;
use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;

/// The list of the process's threads.
const THREADS: &str = "/proc/self/task";
/// Looks of which one reads the list, even if it has as many threads as before.
const FULL_LOOK: u64 = 8;

/// Threads that are sampled at a time.
const MAX_THREADS: usize = 1024;
/// Looks at the list of threads after which one that could not be sampled is tried again.
const RETRY: u64 = 64;

/// The threads of this process, being sampled.
pub struct Threads {
    source: SampleSource,
    interval: u64,
    clock: SampleClock,
    ring: usize,
    sampled: HashMap<u32, Sampled>,
    /// Those that could not be sampled, and when that was tried.
    refused: HashMap<u32, u64>,
    looks: u64,
    /// Links of the list of threads at the last full look.
    links: u64,
    scratch: Vec<u8>,
    /// Why a thread could not be sampled, the first time.
    error: Option<io::Error>,
    /// Rings in which something stood that is no record.
    pub damaged: u64,
    /// Times at which the kernel held sampling back.
    pub throttled: u64,
}

struct Sampled {
    sampler: ThreadSampler,
    /// The latest time that its ring said.
    last: u64,
    has_ended: bool,
    look: u64,
}

/// What the rings tell.
#[derive(Clone, Copy)]
pub enum Told<'a> {
    /// A record.
    Record(RingRecord<'a>),
    /// So many samples were lost between these times.
    Gap(u64, u64, u64),
}

impl Threads {
    /// No threads yet. Rings hold `ring` bytes.
    pub fn new(source: SampleSource, interval: u64, clock: SampleClock, ring: usize) -> Threads {
        Threads {
            source,
            interval,
            clock,
            ring,
            sampled: HashMap::new(),
            refused: HashMap::new(),
            looks: 0,
            links: 0,
            scratch: Vec::with_capacity(ring),
            error: None,
            damaged: 0,
            throttled: 0,
        }
    }

    /// Samples the threads that there are now, but for `ours`.
    pub fn look(&mut self, ours: u32) {
        self.looks += 1;
        if self.source == SampleSource::Timers && timer::is_taken_away() {
            self.sampled.clear();
            let error = "the program handles the timers' signal itself: sampling has ended";
            self.error.get_or_insert(io::Error::other(error));
            return;
        }
        let look = self.looks;
        // Its links are as many as there are threads: mostly, nothing has changed.
        let links = std::fs::metadata(THREADS).map_or(0, |list| list.nlink());
        if links == self.links && !look.is_multiple_of(FULL_LOOK) {
            let all = self.sampled.values_mut();
            return all.for_each(|known| known.look = look);
        }
        self.links = links;
        let Ok(list) = std::fs::read_dir(THREADS) else {
            return;
        };
        let now = self.clock.now();
        for entry in list.flatten() {
            let name = entry.file_name();
            let Some(thread) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            if let Some(known) = self.sampled.get_mut(&thread) {
                known.look = look;
                continue;
            }
            let tried = self.refused.get(&thread);
            if thread == ours
                || self.sampled.len() >= MAX_THREADS
                || tried.is_some_and(|tried| look - tried < RETRY)
            {
                continue;
            }
            let opened = self
                .source
                .open(thread, self.interval, self.clock, self.ring);
            match opened {
                Ok(sampler) => {
                    let sampled = Sampled {
                        sampler,
                        last: now,
                        has_ended: false,
                        look,
                    };
                    self.sampled.insert(thread, sampled);
                }
                // It has ended meanwhile.
                Err(_) if !std::path::Path::new(THREADS).join(name).exists() => {}
                Err(error) => {
                    self.error.get_or_insert(error);
                    self.refused.insert(thread, look);
                }
            }
        }
        self.refused.retain(|_, tried| look - *tried < RETRY);
    }

    /// Takes what has come of all of them, and lets go of those that have ended.
    pub fn drain(&mut self, mut tell: impl FnMut(Told<'_>)) {
        let (looks, scratch) = (self.looks, &mut self.scratch);
        let (damaged, throttled) = (&mut self.damaged, &mut self.throttled);
        let mut has_changed = false;
        self.sampled.retain(|_, thread| {
            let (mut last, mut has_ended) = (thread.last, thread.has_ended);
            let is_damaged = thread.sampler.drain(scratch, &mut last, |told| {
                match told {
                    Told::Record(RingRecord::Exit) => has_ended = true,
                    Told::Record(RingRecord::Throttled) => *throttled += 1,
                    _ => {}
                }
                tell(told);
            });
            *damaged += u64::from(is_damaged);
            thread.last = last;
            // Another one may have taken its place.
            has_changed |= has_ended;
            // The note of its end may be lost: then the list of threads says so.
            let stays = !thread.has_ended && (!has_ended && thread.look == looks);
            thread.has_ended = has_ended;
            stays
        });
        if has_changed {
            self.links = 0;
        }
    }

    /// How many could not be sampled of late.
    pub fn refused(&self) -> usize {
        self.refused.len()
    }

    /// Why a thread could not be sampled, the first time, for people.
    pub fn why_refused(&self) -> Option<String> {
        Some(self.source.explain(self.error.as_ref()?))
    }

    /// Whether it is told what the threads map.
    pub fn tells_mappings(&self) -> bool {
        self.source == SampleSource::PerfEvents
    }
}
