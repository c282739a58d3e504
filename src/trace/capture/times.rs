//! The times of device work: an agent's clock converted to the trace's, and compared with the host's.
//!
//! A command buffer lasts from when the runtime took it, or from the end of the work before it in its queue if that is later, or
//! from an earlier measured start, to its measured end. Its commands have equal shares of that time.

use super::Report;
use super::agents::title;
use super::join::EnqueueFields;
use crate::model::AgentIndex;
use gputrail_buffer::clock::{AgentClock, Causality, HostClock, clamp, clamp_all};
use gputrail_capture::Metadata;
use gputrail_record::{
    Agent, AgentId, ClockPair, Completion, DeviceTime, Domain, Nanos, Ticks, Unfinished,
};

/// An agent as one process sees it.
#[derive(Debug)]
pub(super) struct AgentView {
    pub id: AgentId,
    pub index: AgentIndex,
    pub clock: AgentClock,
    pub architecture: String,
    /// Number of compute units; 0 if unknown.
    pub compute_units: u32,
    pub domain: Domain,
    /// Its kind and index: "GPU 0".
    pub title: String,
    /// How far work may seem to start before its enqueue.
    bound: Nanos,
}

impl AgentView {
    pub fn new(
        agent: &Agent,
        metadata: &Metadata,
        index: AgentIndex,
        host: &HostClock,
        pairs: &[ClockPair],
    ) -> AgentView {
        let clock = AgentClock::new(host, pairs);
        AgentView {
            id: agent.id,
            index,
            bound: bound(&clock, host),
            clock,
            architecture: metadata.string(agent.architecture).to_owned(),
            compute_units: agent.compute_units,
            domain: agent.domain,
            title: title(agent.kind, index),
        }
    }

    /// Fits the clock again.
    pub fn set_clock(&mut self, host: &HostClock, pairs: &[ClockPair]) {
        self.clock = AgentClock::new(host, pairs);
        self.bound = bound(&self.clock, host);
    }
}

/// The error bound of a time of `clock` compared with one of `host`.
fn bound(clock: &AgentClock, host: &HostClock) -> Nanos {
    Nanos(clock.error_bound().0.saturating_add(host.error_bound().0))
}

/// The known times of a piece of work.
#[derive(Copy, Clone, Debug)]
pub(super) struct KnownTimes {
    pub enqueued: Option<Nanos>,
    pub queued: Option<Nanos>,
    pub submitted: Option<Nanos>,
    start: Option<Nanos>,
    end: Option<Nanos>,
    /// When the host learnt of the completion.
    learnt: Option<Nanos>,
    pub unfinished: Unfinished,
}

impl KnownTimes {
    #[inline(always)]
    pub fn new(
        view: Option<&AgentView>,
        host: &HostClock,
        work: Option<&EnqueueFields>,
        completion: Option<&Completion>,
        report: &mut Report,
    ) -> KnownTimes {
        let known = |time: Nanos| time.is_some().then_some(time);
        let enqueued = work.map_or(Nanos::NONE, |work| work.began);
        let learnt = completion.map_or(Ticks::NONE, |completion| completion.completed);
        let learnt = host.to_boottime(learnt);
        let mut times = KnownTimes {
            enqueued: known(enqueued),
            queued: None,
            submitted: None,
            start: None,
            end: None,
            learnt: known(learnt),
            unfinished: Unfinished::AT_END,
        };
        if let Some(completion) = completion {
            times.complete(view, completion, report);
        }
        times
    }

    #[inline(always)]
    fn complete(&mut self, view: Option<&AgentView>, completion: &Completion, report: &mut Report) {
        if let Some(AgentView { clock, .. }) = view {
            let Completion {
                queued,
                submitted,
                start,
                end,
                ..
            } = *completion;
            [self.queued, self.submitted, self.start, self.end] =
                clock.all_to_boottime([queued, submitted, start, end]);
        }
        let mut bound = view.map_or(Nanos(0), |view| view.bound);
        if let (None, Some(learnt)) = (self.start, self.learnt)
            && completion.start.is_some()
            && completion.end.is_some()
        {
            // The clock is unknown, but not the time at which the host learnt of the end.
            report.estimated += 1;
            bound = Nanos(u64::MAX);
            let before_end = |time: DeviceTime| {
                let span = completion.end.0.saturating_sub(time.0);
                time.is_some()
                    .then(|| Nanos(learnt.0.saturating_sub(span).max(1)))
            };
            self.queued = before_end(completion.queued);
            self.submitted = before_end(completion.submitted);
            self.start = before_end(completion.start);
            self.end = before_end(completion.end);
        }
        if let (Some(enqueued), Some(start)) = (self.enqueued, self.start) {
            let clamped = clamp(enqueued, start, bound);
            match clamped.causality {
                Causality::Unchanged => {}
                Causality::Clamped => report.clamped += 1,
                Causality::Violated => report.before_enqueue += 1,
            }
            self.start = Some(clamped.start);
            [self.queued, self.submitted] =
                clamp_all(enqueued, [self.queued, self.submitted], bound);
        }
        self.unfinished = match (self.start, self.end, completion.unfinished) {
            (Some(_), Some(_), unfinished) => unfinished,
            (_, _, Unfinished::NO) => Unfinished::NO_TIMES,
            (_, _, unfinished) => unfinished,
        };
    }

    /// From start to end, if the work is known to have ended.
    pub fn interval(&self) -> Option<(Nanos, Nanos)> {
        match (self.unfinished, self.start, self.end) {
            (Unfinished::NO, Some(start), Some(end)) => Some((start, end.max(start))),
            _ => None,
        }
    }

    /// The time at which it is shown to begin: its start, else its enqueue, else the time at which the host learnt of
    /// its end.
    pub fn begin(&self) -> Option<Nanos> {
        self.start.or(self.enqueued).or(self.learnt)
    }

    /// The duration that is shown, ns. Work without an end that was running when the recording gave up lasts until
    /// then.
    pub fn duration(&self) -> Option<u64> {
        let start = self.start?;
        let end = self.end.or(self.learnt)?;
        Some(end.0.saturating_sub(start.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_buffer::clock::{TickSource, virtual_snapshot};
    use gputrail_record::MemorySet;

    /// The times of work whose call began at `began`, and whose end at 900 of an unknown clock the host learnt of at
    /// 1100.
    fn times(began: u64, start: u64) -> (KnownTimes, Report) {
        let snapshots = [1, 1_000_000_000].map(|time| virtual_snapshot(Ticks(time)));
        let host = HostClock::new(TickSource::Virtual, 1_000_000_000, &snapshots).unwrap();
        let mut record = MemorySet::blank();
        // The time that another reading of the clocks gives.
        record.work.enqueued = Ticks(began - 2);
        let enqueued = EnqueueFields {
            began: Nanos(began),
            ..EnqueueFields::from(&record)
        };
        let completion = Completion {
            start: DeviceTime(start),
            end: DeviceTime(900),
            completed: Ticks(1100),
            ..Completion::blank()
        };
        let mut report = Report::default();
        let times = KnownTimes::new(None, &host, Some(&enqueued), Some(&completion), &mut report);
        (times, report)
    }

    #[test]
    fn work_begins_no_earlier_than_its_call_is_shown_to_begin() {
        let (times, report) = times(1000, 500);
        assert_eq!(times.enqueued, Some(Nanos(1000)));
        assert_eq!(times.interval(), Some((Nanos(1000), Nanos(1100))));
        assert_eq!((report.estimated, report.clamped), (1, 1));
    }

    #[test]
    fn an_estimated_start_behind_the_call_stays() {
        let (times, report) = times(1000, 880);
        assert_eq!(times.interval(), Some((Nanos(1080), Nanos(1100))));
        assert_eq!((report.estimated, report.clamped), (1, 0));
    }
}
