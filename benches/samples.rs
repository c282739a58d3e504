//! The speed of the aggregation of samples, beside memcpy of the same bytes.
//!
//! `cargo bench -p gputrail --bench samples`. Every figure is the best of many rounds in one run, in processor time;
//! machines differ, but the ratios carry over.

use std::hint::black_box;
use std::time::Duration;

use bytemuck::bytes_of;
use gputrail_code::aggregate::Aggregates;
use gputrail_record::*;
use rustix::time::{ClockId, clock_gettime};

const ROUNDS: usize = 15;
/// Number of samples in a round: 100 MB and more, so that they do not stay in the cache.
const SAMPLES: u64 = 1 << 20;

/// The distribution of the samples of a run.
struct Spread {
    name: &'static str,
    /// Number of dispatches whose samples are interleaved.
    at_once: u64,
    /// Number of samples of a dispatch.
    each: u64,
    /// Number of sampled addresses of a kernel.
    addresses: u64,
}

const SPREADS: [Spread; 3] = [
    Spread {
        name: "one long dispatch, 64 addresses",
        at_once: 1,
        each: SAMPLES,
        addresses: 64,
    },
    Spread {
        name: "four dispatches at once, 1000 addresses",
        at_once: 4,
        each: SAMPLES / 16,
        addresses: 1000,
    },
    Spread {
        name: "short dispatches, 100 samples each",
        at_once: 1,
        each: 100,
        addresses: 50,
    },
];

fn main() {
    println!("aggregating samples, one core");
    println!(
        "                                            M samples/s    GB/s   memcpy GB/s   ratio"
    );
    for spread in &SPREADS {
        for (kind, bytes) in [
            ("host-trap", host_trap(spread)),
            ("stochastic", stochastic(spread)),
        ] {
            let taken = best(|| aggregate(&bytes, spread));
            let mut copy = vec![0_u8; bytes.len()];
            let copied = best(|| black_box(&mut copy).copy_from_slice(black_box(&bytes)));
            let gigabytes = |time: Duration| bytes.len() as f64 / time.as_secs_f64() / 1e9;
            println!(
                "{:40} {kind:10} {:6.1} {:7.1} {:13.1} {:7.2}",
                spread.name,
                SAMPLES as f64 / taken.as_secs_f64() / 1e6,
                gigabytes(taken),
                gigabytes(copied),
                gigabytes(taken) / gigabytes(copied),
            );
        }
    }
}

fn aggregate(bytes: &[u8], spread: &Spread) {
    let mut aggregates = Aggregates::default();
    let mut counted = 0;
    let mut latest = 0;
    for record in Records::new(bytes) {
        let work = match record.kind() {
            Kind::PC_SAMPLE_HOST_TRAP => {
                let sample: &HostTrapSample = record.get().expect("it is whole");
                aggregates.host_trap(sample);
                sample.work
            }
            _ => {
                let sample: &StochasticSample = record.get().expect("it is whole");
                aggregates.stochastic(sample);
                sample.work
            }
        };
        // At the point where totals come: after the last sample of a dispatch.
        let batch = work.0 / spread.at_once;
        if batch != latest {
            for work in latest * spread.at_once..batch * spread.at_once {
                if let Some(dispatch) = aggregates.take(WorkId(work)) {
                    counted += dispatch.samples();
                    aggregates.give_back(dispatch);
                }
            }
            latest = batch;
        }
        assert!(aggregates.excess().is_none());
    }
    while let Some(dispatch) = aggregates.oldest() {
        counted += dispatch.samples();
    }
    assert_eq!(counted, SAMPLES);
}

/// Numbers without a pattern (xorshift).
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// The dispatch and the address of each sample.
fn samples(spread: &Spread) -> impl Iterator<Item = (WorkId, u64, u64)> {
    let mut state = 1;
    (0..SAMPLES).map(move |number| {
        let batch = number / (spread.each * spread.at_once);
        let random = random(&mut state);
        let work = (1 + batch) * spread.at_once + random % spread.at_once;
        (
            WorkId(work),
            random / 64 % spread.addresses * 8,
            random >> 32,
        )
    })
}

fn host_trap(spread: &Spread) -> Vec<u8> {
    let sample = |(work, offset, _)| HostTrapSample {
        work,
        offset,
        code_object: CodeObjectId(1),
        kernel: KernelId(1),
        agent: AgentId(1),
        ..HostTrapSample::blank()
    };
    let samples = samples(spread).map(sample);
    samples
        .flat_map(|sample| bytes_of(&sample).to_vec())
        .collect()
}

fn stochastic(spread: &Spread) -> Vec<u8> {
    let sample = |(work, offset, random): (WorkId, u64, u64)| StochasticSample {
        work,
        offset,
        code_object: CodeObjectId(1),
        kernel: KernelId(1),
        agent: AgentId(1),
        issue: Issue((random & 1) as u8).with_instruction((offset / 8 % 8) as u8),
        snapshot: Snapshot(0).with_reason_not_issued(2 + (random >> 8) as u32 % 3),
        ..StochasticSample::blank()
    };
    let samples = samples(spread).map(sample);
    samples
        .flat_map(|sample| bytes_of(&sample).to_vec())
        .collect()
}

/// The shortest of several rounds.
fn best(mut round: impl FnMut()) -> Duration {
    let timed = |_| {
        let start = processor_time();
        round();
        processor_time() - start
    };
    (0..ROUNDS).map(timed).min().expect("at least one round")
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
