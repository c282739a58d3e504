//! `gputrail demo --ranks N`: the profiles of a training run on N ranks, as PyTorch's profiler writes them, some of which are
//! slow for reasons that are known.
//!
//! Each step loads data, runs layers forward and backward, sums gradients over all ranks, in buckets, while the backward pass goes on,
//! and updates parameters. A rank leaves a sum when the last rank has come and the data has been exchanged: so one slow rank keeps
//! all waiting.

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use gputrail_convert::export::ChromeWriter;
use gputrail_record::{
    ContextId, CorrelationId, Domain, ExternalId, Nanos, OperationGroup, ProcessId, ThreadId,
};
use gputrail_trace::model::{
    Agent, AgentIndex, Call, Consumer, EventArgument, EventId, Function, FunctionIndex, Parent,
    Process, ProcessIndex, Queue, QueueIndex, Resources, Slice, Stage, StageId, SystemClocks,
    TraceHeader, Track, TrackIndex, TrackKind, Value, Work, WorkKind,
};
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Layers of the network.
const LAYERS: u64 = 8;
/// Buckets of gradients.
const BUCKETS: u64 = 4;
/// Bytes of a bucket.
const BUCKET_BYTES: u64 = 64 << 20;
/// The time of day at which the run begins, ns.
const BEGIN: u64 = 1_760_000_000_000_000_000;
/// A part of a millisecond, ns.
const US: u64 = 1_000;

/// A run on many ranks.
#[derive(Copy, Clone, Debug)]
pub struct Job {
    pub ranks: u64,
    pub steps: u64,
    pub seed: u64,
}

/// Why a rank is slow.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Slow {
    /// Its matrix products take a quarter longer.
    Device,
    /// Its data takes 7 ms to load, and not 1 ms.
    Data,
    /// One step, with this number, begins 15 ms late.
    Step(u64),
}

impl fmt::Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slow::Device => write!(f, "its matrix products take 1.25 times as long"),
            Slow::Data => write!(
                f,
                "it loads data for 7 ms in each step, where others take 1 ms"
            ),
            Slow::Step(step) => write!(f, "its step {step} begins 15 ms late"),
        }
    }
}

/// A number that follows from others, as good as random.
fn mixed(parts: [u64; 4]) -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for part in parts {
        state = (state ^ part).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state ^= state >> 29;
    }
    state
}

impl Job {
    /// The slow ranks.
    pub fn slow(&self) -> Vec<(u64, Slow)> {
        let apart = self.ranks / 3;
        let first = (self.seed.wrapping_mul(7) + self.ranks / 5) % self.ranks;
        let all = [Slow::Device, Slow::Data, Slow::Step(self.steps / 2)];
        // Few ranks have one slow rank.
        let count = if self.ranks < 7 { 1 } else { 3 };
        let rank = |place: u64| (first + place * apart + place) % self.ranks;
        (0..).map(rank).zip(all).take(count).collect()
    }

    fn slow_by(&self, rank: u64) -> Option<Slow> {
        let slow = self.slow();
        slow.iter()
            .find(|(slow, _)| *slow == rank)
            .map(|(_, why)| *why)
    }

    /// A duration with a noise of 1 %.
    fn noisy(&self, (rank, step, number): (u64, u64, u64), duration: u64) -> u64 {
        let noise = mixed([self.seed, rank, step, number]) % (duration / 50);
        duration - duration / 100 + noise
    }

    /// The kernels of a step before its sums end: forward pass, then backward pass.
    fn kernels(&self, rank: u64, step: u64) -> Vec<(&'static str, u64)> {
        let slow = self.slow_by(rank) == Some(Slow::Device);
        let mut kernels = Vec::new();
        for number in 0..2 * LAYERS {
            let (product, rest) = if number < LAYERS {
                (("gemm_forward", 400 * US), ("gelu_forward", 100 * US))
            } else {
                (("gemm_backward", 800 * US), ("gelu_backward", 150 * US))
            };
            let longer = if slow { product.1 / 4 } else { 0 };
            let time = |number, duration| self.noisy((rank, step, number), duration);
            kernels.push((product.0, time(2 * number, product.1 + longer)));
            kernels.push((rest.0, time(2 * number + 1, rest.1)));
        }
        kernels
    }

    /// When a rank's first kernel of a step begins, if the step begins at `begin`.
    fn first_kernel(&self, rank: u64, step: u64, begin: u64) -> u64 {
        let load = match self.slow_by(rank) {
            Some(Slow::Data) => 7_000 * US,
            Some(Slow::Step(slow)) if slow == step => 16_000 * US,
            _ => 1_000 * US,
        };
        begin + self.noisy((rank, step, 100), load)
    }

    /// When the gradients of each bucket of a rank are there.
    fn ready(&self, rank: u64, step: u64, begin: u64) -> [u64; BUCKETS as usize] {
        let mut time = self.first_kernel(rank, step, begin);
        let mut ready = [0; BUCKETS as usize];
        for (number, (_, duration)) in (1..).zip(self.kernels(rank, step)) {
            time += duration;
            if number > 2 * LAYERS && number % (2 * LAYERS / BUCKETS) == 0 {
                let done = number - 2 * LAYERS;
                ready[(done * BUCKETS / (2 * LAYERS)) as usize - 1] = time;
            }
        }
        ready
    }

    /// When a rank ends a step whose sums end at `sums`.
    fn end(&self, rank: u64, step: u64, sums: &Sums) -> u64 {
        sums[BUCKETS as usize - 1] + self.noisy((rank, step, 101), 600 * US) + 50 * US
    }

    /// When the sums of each step end, on all ranks.
    fn sums(&self) -> Vec<Sums> {
        let mut begins = vec![BEGIN; self.ranks as usize];
        let mut all = Vec::new();
        for step in 0..self.steps {
            let mut sums: Sums = [0; BUCKETS as usize];
            let ready: Vec<Sums> = (0..)
                .zip(&begins)
                .map(|(rank, begin)| self.ready(rank, step, *begin))
                .collect();
            let mut before = 0;
            for (bucket, end) in sums.iter_mut().enumerate() {
                let last = ready.iter().map(|ready| ready[bucket]).max();
                *end = last.unwrap_or(0).max(before) + 900 * US;
                before = *end;
            }
            for (rank, begin) in (0..).zip(&mut begins) {
                *begin = self.end(rank, step, &sums);
            }
            all.push(sums);
        }
        all
    }

    /// The name of the profile of a rank.
    pub fn file_name(&self, rank: u64) -> String {
        let digits = (self.ranks - 1).to_string().len();
        format!("rank{rank:0digits$}.json.gz")
    }

    /// Writes the profile of each rank into `folder`.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let sums = self.sums();
        for rank in 0..self.ranks {
            let file = BufWriter::new(File::create_new(folder.join(self.file_name(rank)))?);
            let packed = GzEncoder::new(file, Compression::fast());
            let mut writer = ChromeWriter::new(packed);
            RankProfile::new(self, rank, &mut writer).produce(&sums)?;
            writer.into_inner().finish()?.flush()?;
        }
        Ok(())
    }
}

/// When the sum of each bucket of a step ends.
type Sums = [u64; BUCKETS as usize];

const THREAD: TrackIndex = TrackIndex(0);
const COMPUTE: (QueueIndex, u32) = (QueueIndex(0), 7);
const COMMUNICATION: (QueueIndex, u32) = (QueueIndex(1), 20);

/// Passes on the profile of one rank.
struct RankProfile<'a> {
    job: &'a Job,
    rank: u64,
    out: &'a mut dyn Consumer,
    launch: Function,
    synchronize: Function,
    calls: u64,
}

impl<'a> RankProfile<'a> {
    fn new(job: &'a Job, rank: u64, out: &'a mut dyn Consumer) -> RankProfile<'a> {
        let function = |index, name: &str, group| Function {
            index: FunctionIndex(index),
            name: name.into(),
            domain: Domain::CUDA_RUNTIME,
            category: Some("cuda_runtime".into()),
            group,
            parameters: Vec::new(),
        };
        RankProfile {
            job,
            rank,
            out,
            launch: function(0, "cudaLaunchKernel", OperationGroup::ENQUEUE),
            synchronize: function(1, "cudaStreamSynchronize", OperationGroup::SYNCHRONIZE),
            calls: 0,
        }
    }

    fn pid(&self) -> u32 {
        10_000 + self.rank as u32
    }

    fn declare(&mut self) -> io::Result<()> {
        self.out.begin(&TraceHeader {
            identity: mixed([self.job.seed, self.rank, 0, 0]),
            clocks: SystemClocks {
                boottime: Nanos(BEGIN),
                realtime: Nanos(BEGIN),
                ..SystemClocks::default()
            },
            ..TraceHeader::default()
        })?;
        self.out.agents(
            AgentIndex(0),
            &[Agent {
                title: "GPU 0".to_owned(),
                name: "Simulated GPU".to_owned(),
                ..Agent::default()
            }],
        )?;
        self.out.process(
            ProcessIndex(0),
            &Process {
                pid: ProcessId(self.pid()),
                name: "train",
                rank: &format!("rank {} of {}", self.rank, self.job.ranks),
                command: &[],
                order: None,
            },
        )?;
        self.out.track(
            THREAD,
            &Track {
                parent: Parent::Process(ProcessIndex(0)),
                name: "main",
                kind: TrackKind::Thread(ProcessIndex(0), ThreadId(self.pid())),
                order: None,
            },
        )?;
        for (index, name) in [(COMPUTE.0, "stream 7"), (COMMUNICATION.0, "stream 20")] {
            self.out.queue(
                index,
                &Queue {
                    process: ProcessIndex(0),
                    agent: AgentIndex(0),
                    context: ContextId::default(),
                    domain: Domain::CUDA_RUNTIME,
                    name,
                    out_of_order: false,
                },
            )?;
        }
        Ok(())
    }

    fn produce(mut self, sums: &[Sums]) -> io::Result<()> {
        self.declare()?;
        let mut begin = BEGIN;
        for (step, sums) in (0..).zip(sums) {
            let end = self.job.end(self.rank, step, sums);
            self.step(step, (begin, end), sums)?;
            begin = end;
        }
        self.out.finish()
    }

    fn step(&mut self, step: u64, (begin, end): (u64, u64), sums: &Sums) -> io::Result<()> {
        let job = self.job;
        self.slice(&format!("ProfilerStep#{step}"), (begin, end), true)?;
        let mut time = job.first_kernel(self.rank, step, begin);
        self.slice("load data", (begin, time - 10 * US), false)?;
        let mut host = time - 8 * US;
        let mut work = Vec::new();
        for (name, duration) in job.kernels(self.rank, step) {
            work.push((name, COMPUTE, (time, time + duration)));
            time += duration;
        }
        let mut before = 0;
        for (ready, end) in job.ready(self.rank, step, begin).into_iter().zip(sums) {
            let start = ready.max(before);
            work.push((ALL_REDUCE, COMMUNICATION, (start, *end)));
            before = *end;
        }
        work.push(("adam_step", COMPUTE, (before, end - 50 * US)));
        // Calls come before the work that they enqueue.
        work.sort_by_key(|(_, _, (start, _))| *start);
        for (name, queue, interval) in work {
            self.launch(host, name, queue, interval)?;
            host += 6 * US;
        }
        let correlation = self.next_call();
        let synchronize = self.synchronize.clone();
        self.call(&synchronize, correlation, (host, end - US), &[])?;
        self.out.end(THREAD, Nanos(end))
    }

    fn next_call(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    fn slice(&mut self, name: &str, (start, end): (u64, u64), open: bool) -> io::Result<()> {
        self.out.slice(&Slice {
            track: THREAD,
            name,
            category: "user_annotation",
            start: Nanos(start),
            end: (!open).then_some(Nanos(end)),
            open,
            correlation: CorrelationId::NONE,
            arguments: &[],
            flows: &[],
        })
    }

    fn call(
        &mut self,
        function: &Function,
        correlation: u64,
        (start, end): (u64, u64),
        submitted: &[EventId],
    ) -> io::Result<()> {
        self.out.call(&Call {
            process: ProcessIndex(0),
            thread: ThreadId(self.pid()),
            track: THREAD,
            function,
            start: Nanos(start),
            end: Some(Nanos(end)),
            open: false,
            nested: false,
            correlation: CorrelationId(correlation),
            external: ExternalId::NONE,
            error: None,
            submitted,
            waited: &[],
            arguments: &[],
            flows: &[],
        })
    }

    /// A kernel, and the call that enqueues it.
    fn launch(
        &mut self,
        host: u64,
        name: &str,
        (queue, stream): (QueueIndex, u32),
        (start, end): (u64, u64),
    ) -> io::Result<()> {
        let correlation = self.next_call();
        let event = EventId(correlation);
        let launch = self.launch.clone();
        self.call(&launch, correlation, (host, host + 4 * US), &[event])?;
        let text = |name, text| EventArgument {
            name,
            value: Value::Text(text),
        };
        let number = |name, number| EventArgument {
            name,
            value: Value::Uint(number),
        };
        let collective = [
            text("Collective name", "allreduce"),
            text("Process Group Name", "0"),
            number("Group size", self.job.ranks),
            number("In msg nelems", BUCKET_BYTES / 4),
            text("dtype", "Float"),
        ];
        let arguments = match name {
            ALL_REDUCE => &collective[..],
            _ => &[],
        };
        self.out.work(&Work {
            process: ProcessIndex(0),
            thread: ThreadId(self.pid()),
            correlation: CorrelationId(correlation),
            event: Some(event),
            agent: AgentIndex(0),
            queue,
            stream,
            stage: Stage {
                id: StageId(0),
                kind: WorkKind::Kernel,
                name,
                demangled: "",
                architecture: "",
            },
            enqueued: Some(Nanos(host)),
            queued: None,
            submitted: None,
            interval: Some((Nanos(start), Nanos(end))),
            start: Some(Nanos(start)),
            duration: Some(end - start),
            unfinished: None,
            launch: None,
            resources: Resources::default(),
            bytes: 0,
            status: 0,
            waits: &[],
            samples: None,
            arguments,
        })
    }
}

/// The kernel that sums a bucket over all ranks.
const ALL_REDUCE: &str =
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_ranks_are_distinct_and_all_ranks_leave_a_sum_together() {
        for ranks in [2, 6, 7, 8, 9, 64, 1000] {
            let job = Job {
                ranks,
                steps: 2,
                seed: 1,
            };
            let mut slow: Vec<u64> = job.slow().iter().map(|(rank, _)| *rank).collect();
            slow.sort_unstable();
            slow.dedup();
            assert_eq!(slow.len(), job.slow().len());
            assert!(slow.iter().all(|rank| *rank < ranks));
            for sums in job.sums() {
                assert!(sums.is_sorted() && sums[0] > BEGIN);
            }
        }
    }
}
