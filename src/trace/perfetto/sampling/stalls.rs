//! Why waves waited, over time: for each agent a counter of each reason, in percent of the samples.
//!
//! Samples are counted in spans of time, which become longer when there are many of them, and where there are few
//! samples: memory is bounded, and the curves are not noise.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::code::aggregate::Outcome;
use crate::record::number_map::NumberMap;
use crate::record::{AgentId, Nanos, NotIssued};
use crate::trace::perfetto::devices::Devices;
use crate::trace::perfetto::writer::{ProcessTrack, TraceWriter};

/// What the first spans are long.
const SPAN: u64 = 100_000;
/// Most spans of one agent.
const MAX_SPANS: usize = 2048;
/// Samples that a span has on average, if there are enough.
const ENOUGH: u64 = 50;
/// Fewest spans that are made longer for want of samples.
const FEWEST: usize = 64;

/// What waves did: issued, or one of the reasons why not.
const WAYS: usize = 1 + NotIssued::ALL.len();

type Counts = [u32; WAYS];

#[derive(Debug)]
struct AgentSpans {
    length: u64,
    spans: BTreeMap<u64, Counts>,
    /// The span of the latest sample; not in `spans` yet.
    latest: (u64, Counts),
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

    /// Puts the latest span to the others.
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

fn put(spans: &mut BTreeMap<u64, Counts>, span: u64, counts: &Counts) {
    let sums = spans.entry(span).or_insert([0; WAYS]);
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum = sum.saturating_add(*count);
    }
}

/// The stalls of one process's agents.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    agents: NumberMap<AgentId, AgentSpans>,
}

impl Stalls {
    /// Takes in a stochastic sample.
    pub fn add(&mut self, agent: AgentId, time: Nanos, outcome: &Outcome) {
        let way = match outcome.issued() {
            true => 0,
            false => 1 + usize::from(outcome.reason.0).min(WAYS - 2),
        };
        self.agents
            .entry(agent)
            .or_insert_with(AgentSpans::new)
            .add(time, way);
    }

    /// Writes the counters.
    pub fn write<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        process: ProcessTrack,
        devices: &Devices,
    ) -> io::Result<()> {
        let mut agents: Vec<_> = std::mem::take(&mut self.agents).into_iter().collect();
        agents.sort_by_key(|(agent, _)| *agent);
        for (agent, mut spans) in agents {
            spans.settle();
            let samples = spans.samples();
            while spans.spans.len() > FEWEST && samples / (spans.spans.len() as u64) < ENOUGH {
                spans.lengthen();
            }
            let title = devices.title(agent).unwrap_or("unknown device");
            let parent = writer.process_child(process, &format!("{title} waves"))?;
            for way in 0..WAYS {
                if spans.spans.values().all(|counts| counts[way] == 0) {
                    continue;
                }
                let name = format!("{title} {}", name(way));
                let counter = writer.share_counter(parent, &name)?;
                let mut last = None;
                for (span, counts) in &spans.spans {
                    // Where there are no samples in between, nothing ran.
                    if let Some((end, value)) = last
                        && end < *span
                        && value != 0
                    {
                        writer.value(counter, end * spans.length, 0)?;
                        last = Some((end, 0));
                    }
                    let all: u64 = counts.iter().map(|count| u64::from(*count)).sum();
                    let share = (100 * u64::from(counts[way]) + all / 2) / all.max(1);
                    if last.is_none_or(|(_, value)| value != share) {
                        writer.value(counter, span * spans.length, share as i64)?;
                    }
                    last = Some((span + 1, share));
                }
                if let Some((end, _)) = last {
                    writer.value(counter, end * spans.length, 0)?;
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

    #[test]
    fn spans_become_longer_and_lose_nothing() {
        let mut spans = AgentSpans::new();
        let samples = 10 * MAX_SPANS as u64;
        for number in 0..samples {
            // Not in order, as where lanes are read one after the other.
            let time = (number * 7919 % samples) * SPAN;
            spans.add(Nanos(time), (number % 3) as usize);
            assert!(spans.spans.len() <= MAX_SPANS + 1);
        }
        spans.settle();
        assert_eq!(spans.samples(), samples);
        assert_eq!(spans.length, 16 * SPAN);
        assert!(spans.spans.keys().all(|span| *span <= samples / 16));
    }
}
