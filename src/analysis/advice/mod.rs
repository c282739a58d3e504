//! Advice: what a recording says should be done, each with what was seen, where it is worst, why it matters and what to try.
//!
//! Each rule is a function of the [`Evidence`]; it is silent where its data are missing or below its threshold, a constant beside
//! it that the documentation names. The time at stake orders the advice: the most that following it could save.

mod copies;
mod host;
mod kernels;
mod ranks;
mod recording;
#[cfg(test)]
mod tests;

use gputrail_record::Nanos;

use crate::figures::{shortened, time};
use crate::summary::{FunctionSummary, GpuSummary, SettledPlaces, Summary, WorkSummary};

/// A piece of advice.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The name of the rule.
    pub rule: &'static str,
    /// The finding, with its numbers.
    pub seen: String,
    /// When it is worst, if it is at a time.
    pub place: Option<Nanos>,
    /// The time at stake; nothing for what makes the rest uncertain.
    pub stake: Option<Nanos>,
    /// Why it matters.
    pub why: &'static str,
    /// The change to try.
    pub attempt: String,
}

/// The sums of a recording that rules look at.
pub struct Evidence<'s> {
    summary: &'s Summary,
    settled: SettledPlaces,
    functions: Vec<FunctionSummary>,
    kernels: Vec<WorkSummary>,
    others: Vec<WorkSummary>,
    gpus: Vec<GpuSummary>,
    /// From the first event to the last, ns.
    length: u64,
}

impl<'s> Evidence<'s> {
    /// The evidence of a recording.
    pub fn of(summary: &'s Summary) -> Evidence<'s> {
        let span = summary.span();
        Evidence {
            summary,
            settled: summary.places(),
            functions: summary.functions(),
            kernels: summary.kernels(),
            others: summary.other_work(),
            gpus: summary.gpus(),
            length: span.map_or(0, |(first, last)| last.0.saturating_sub(first.0)),
        }
    }

    /// The most time for which a device ran no kernels between its first work and its last, ns: what the host can save for it
    /// at most. Without devices, any time.
    fn not_computing(&self) -> u64 {
        let spans = self.gpus.iter().filter_map(|gpu| {
            let busy = gpu.busy.as_ref()?;
            let span = busy.last.0.saturating_sub(busy.first.0);
            Some(span.saturating_sub(gpu.kernels.0))
        });
        spans.max().unwrap_or(u64::MAX)
    }

    /// Whether a time is at least a share of the recording.
    fn is_much(&self, nanos: u64, share: f64) -> bool {
        self.length > 0 && nanos as f64 >= share * self.length as f64
    }
}

/// Maximum number of characters of a name in the text of an advice.
const LONGEST_NAME: usize = 100;

/// A rule.
type Rule = fn(&Evidence<'_>) -> Option<Advice>;

/// All rules.
const RULES: [Rule; 16] = [
    recording::lost_records,
    recording::clock_doubt,
    recording::failed_calls,
    host::compilation,
    host::wait_after_launch,
    host::device_waits,
    host::short_kernels,
    copies::synchronous,
    copies::pageable,
    copies::tiny,
    kernels::first_executions,
    kernels::low_occupancy,
    kernels::one_queue,
    ranks::slow_rank,
    ranks::slow_step,
    ranks::exposed_communication,
];

/// The advice for a recording: what makes the rest uncertain first, then by the time at stake.
pub fn advise(evidence: &Evidence<'_>) -> Vec<Advice> {
    let mut all: Vec<Advice> = RULES.iter().filter_map(|rule| rule(evidence)).collect();
    all.sort_by_key(|advice| std::cmp::Reverse(advice.stake.map_or(u64::MAX, |stake| stake.0)));
    all
}

/// `12.0 %` of a whole.
fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// A name for people: those of C++ may have thousands of characters.
fn name(text: &str) -> String {
    shortened(text, LONGEST_NAME)
}

/// A time for people.
fn words(nanos: u64) -> String {
    time(Nanos(nanos))
}
