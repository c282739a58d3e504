//! Stall reasons over time: for each agent a counter of each reason, in percent of the samples.
//!
//! Samples are counted in spans of time. Spans become longer if there are many of them, and if they have few samples:
//! so memory is bounded and the curves are not noise.

use std::collections::BTreeMap;
use std::io;

use super::{CounterUnit, CounterValue, Parent, ProcessIndex, Stream, Track, TrackKind};
use gputrail_code::aggregate::WaveOutcome;
use gputrail_record::number_map::NumberMap;
use gputrail_record::{AgentId, Nanos, NotIssued};

/// Length of the first spans, ns.
const SPAN: u64 = 100_000;
/// Maximum number of spans of one agent.
const MAX_SPANS: usize = 2048;
/// Minimum average number of samples in a span.
const SAMPLES_PER_SPAN: u64 = 50;
/// Number of spans at which they are no longer made longer for lack of samples.
const MIN_SPANS: usize = 64;

/// Number of outcomes: issued, or one of the reasons for not issuing.
const WAYS: usize = 1 + NotIssued::ALL.len();

type StallCounts = [u32; WAYS];

#[derive(Debug)]
struct AgentSpans {
    length: u64,
    spans: BTreeMap<u64, StallCounts>,
    /// The span of the latest sample, which is not in `spans` yet.
    latest: (u64, StallCounts),
}

impl AgentSpans {
    fn new() -> AgentSpans {
        AgentSpans {
            length: SPAN,
            spans: BTreeMap::new(),
            latest: (0, [0; WAYS]),
        }
    }

    fn add(&mut self, time: Nanos, way: usize) {
        let span = time.0 / self.length;
        if span != self.latest.0 {
            self.settle();
            while self.spans.len() > MAX_SPANS {
                self.lengthen();
            }
            self.latest.0 = time.0 / self.length;
        }
        let count = &mut self.latest.1[way];
        *count = count.saturating_add(1);
    }

    /// Adds the latest span to the others.
    fn settle(&mut self) {
        let (span, counts) = std::mem::take(&mut self.latest);
        if counts != [0; WAYS] {
            put(&mut self.spans, span, &counts);
        }
    }

    fn lengthen(&mut self) {
        self.length *= 2;
        let spans = std::mem::take(&mut self.spans);
        for (span, counts) in spans {
            put(&mut self.spans, span / 2, &counts);
        }
    }

    fn samples(&self) -> u64 {
        let all = self.spans.values().flatten();
        all.map(|count| u64::from(*count)).sum()
    }
}

fn put(spans: &mut BTreeMap<u64, StallCounts>, span: u64, counts: &StallCounts) {
    let sums = spans.entry(span).or_insert([0; WAYS]);
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum = sum.saturating_add(*count);
    }
}

/// The stalls of one process's agents.
#[derive(Debug, Default)]
pub struct Stalls {
    agents: NumberMap<AgentId, AgentSpans>,
}

impl Stalls {
    /// Adds a stochastic sample.
    pub fn add(&mut self, agent: AgentId, time: Nanos, outcome: &WaveOutcome) {
        let way = if outcome.issued() {
            0
        } else {
            1 + usize::from(outcome.reason.0).min(WAYS - 2)
        };
        self.agents
            .entry(agent)
            .or_insert_with(AgentSpans::new)
            .add(time, way);
    }

    /// Passes on the counters. `title` gives the titles of agents.
    pub fn finish(
        &mut self,
        stream: &mut Stream<'_>,
        process: ProcessIndex,
        title: impl Fn(AgentId) -> String,
    ) -> io::Result<()> {
        let mut agents: Vec<_> = std::mem::take(&mut self.agents).into_iter().collect();
        agents.sort_by_key(|(agent, _)| *agent);
        for (agent, mut spans) in agents {
            spans.settle();
            let samples = spans.samples();
            while spans.spans.len() > MIN_SPANS
                && samples / (spans.spans.len() as u64) < SAMPLES_PER_SPAN
            {
                spans.lengthen();
            }
            let title = title(agent);
            let parent = stream.new_track(&Track {
                parent: Parent::Process(process),
                name: &format!("{title} waves"),
                kind: TrackKind::Slices,
                order: None,
            })?;
            for way in 0..WAYS {
                if spans.spans.values().all(|counts| counts[way] == 0) {
                    continue;
                }
                let counter = stream.new_track(&Track {
                    parent: Parent::Track(parent),
                    name: &format!("{title} {}", name(way)),
                    kind: TrackKind::Counter(CounterUnit::Percent),
                    order: None,
                })?;
                let mut value = |span: u64, value: u64| {
                    let time = Nanos(span * spans.length);
                    stream
                        .consumer
                        .derived_value(counter, time, CounterValue::Int(value as i64))
                };
                let mut last = None;
                for (span, counts) in &spans.spans {
                    // If there are no samples in between, nothing ran.
                    if let Some((end, latest)) = last
                        && end < *span
                        && latest != 0
                    {
                        value(end, 0)?;
                        last = Some((end, 0));
                    }
                    let all: u64 = counts.iter().map(|count| u64::from(*count)).sum();
                    let share = (100 * u64::from(counts[way]) + all / 2) / all.max(1);
                    if last.is_none_or(|(_, latest)| latest != share) {
                        value(*span, share)?;
                    }
                    last = Some((span + 1, share));
                }
                if let Some((end, _)) = last {
                    value(end, 0)?;
                }
            }
        }
        Ok(())
    }
}

fn name(way: usize) -> String {
    match way {
        0 => "issued".to_owned(),
        1 => "not issued, reason unknown".to_owned(),
        way => {
            let reason = NotIssued((way - 1) as u8).name().unwrap_or("other");
            format!("stalled: {reason}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Consumer, TrackIndex};
    use gputrail_record::{InstructionType, SamplingMethod, StallReason};

    #[test]
    fn spans_become_longer_and_lose_nothing() {
        let mut spans = AgentSpans::new();
        let samples = 10 * MAX_SPANS as u64;
        for number in 0..samples {
            // Not in order, as when lanes are read one after the other.
            let time = (number * 7919 % samples) * SPAN;
            spans.add(Nanos(time), (number % 3) as usize);
            assert!(spans.spans.len() <= MAX_SPANS + 1);
        }
        spans.settle();
        assert_eq!(spans.samples(), samples);
        assert_eq!(spans.length, 16 * SPAN);
        assert!(spans.spans.keys().all(|span| *span <= samples / 16));
    }

    /// The values of each counter, with their times in ms.
    #[derive(Default)]
    struct Values(Vec<(String, Vec<(f64, i64)>)>);

    impl Consumer for Values {
        crate::leave_out!(
            clocks attributes agents process queue counters call slice end instant work counter_values samples stack
            stack_samples loss note
        );

        fn track(&mut self, _: TrackIndex, track: &Track<'_>) -> io::Result<()> {
            self.0.push((track.name.to_owned(), Vec::new()));
            Ok(())
        }

        fn value(&mut self, track: TrackIndex, time: Nanos, value: CounterValue) -> io::Result<()> {
            let CounterValue::Int(value) = value else {
                panic!("{value:?}");
            };
            let values = &mut self.0[track.0 as usize].1;
            values.push((time.0 as f64 / 1e6, value));
            Ok(())
        }
    }

    #[test]
    fn each_outcome_has_its_share_of_the_samples_of_its_time() {
        let mut stalls = Stalls::default();
        let outcome = |issued| WaveOutcome {
            method: SamplingMethod::STOCHASTIC,
            instruction: InstructionType::NONE,
            reason: NotIssued(2),
            stall: if issued {
                StallReason::NONE
            } else {
                StallReason::OTHER
            },
        };
        // From 10 ms on one sample in four issues, from 20 ms on all do, and from 40 ms on one in two.
        for number in 0..8_000_u64 {
            let time = 10_000_000 + number * 5_000;
            let is_issued = match time / 10_000_000 {
                1 => number % 4 == 0,
                2 => true,
                3 => continue,
                _ => number % 2 == 0,
            };
            stalls.add(AgentId(1), Nanos(time), &outcome(is_issued));
        }
        let mut values = Values::default();
        let mut stream = Stream::new(&mut values);
        stalls
            .finish(&mut stream, ProcessIndex(0), |agent| {
                format!("GPU {}", agent.0)
            })
            .unwrap();
        let stalled = format!("GPU 1 stalled: {}", NotIssued(2).name().unwrap());
        let expected = [
            ("GPU 1 waves".to_owned(), vec![]),
            (
                "GPU 1 issued".to_owned(),
                vec![(10.0, 25), (20.0, 100), (30.0, 0), (40.0, 50), (50.0, 0)],
            ),
            (stalled, vec![(10.0, 75), (20.0, 0), (40.0, 50), (50.0, 0)]),
        ];
        assert_eq!(values.0, expected);
    }
}
