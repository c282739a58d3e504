//! Counting ranges of markers as a whole ([`CountingMode::Range`](super::CountingMode::Range)).
//!
//! A process has one [`CountedRanges`]. It is told of each marker of the threads, and finds the ranges that are to be counted:
//! those whose names match a pattern, or all, without ranges inside of them. One is counted at a time, since an agent cannot
//! tell which thread's range it works for: what all threads enqueue between its begin and its end belongs to it. A range
//! of another thread that begins meanwhile gets values that are invalid for that reason.
//!
//! Agents that count dispatches have those of the range counted one by one, and added up here: the source asks a tool of this
//! module for the counters of each dispatch ([`DispatchCounting`]). Values come when the last of its kernels has ended. Agents
//! whose library counts ranges do that themselves ([`RangeCounter`]).

mod following;

use super::values::{Subject, ValueRecords};
use super::{
    CounterReading, CounterSet, CountingRequest, DispatchCounting, DispatchReadings, ReadyValues,
    Sum,
};
use crate::switchboard::{Buffers, ContextKey};
use gputrail_buffer::platform::sync::QuietMutex;
use gputrail_capture::names::Names;
use gputrail_record::{
    AgentId, CorrelationId, CounterInvalid, CounterValue, DeviceTime, ExternalId, ExternalKind,
    KernelDispatch, Marker, MarkerKind, NoteKind, StringId, ThreadId, Ticks, WorkId, count,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wildmatch::WildMatch;

/// The most names of external ids that are kept.
const MAX_EXTERNAL_NAMES: usize = 4096;
/// The most ended ranges whose kernels have not ended.
const MAX_WAITING: usize = 4096;

/// Whether ranges have been counted in this process. Forked children inherit it.
static ARE_COUNTED: AtomicBool = AtomicBool::new(false);

/// Whether markers have to be passed to [`CountedRanges::follow`].
#[inline(always)]
pub(crate) fn are_counted() -> bool {
    ARE_COUNTED.load(Ordering::Relaxed)
}

/// An agent that counts ranges itself. Called on threads of the program, on one at a time.
pub trait RangeCounter: Send + Sync {
    /// A range with this name begins.
    fn begin(&self, name: &str);

    /// The range ends. Returns the values in the order of the set: once for each context of the agent on which kernels were
    /// launched in the range.
    fn end(&self) -> Vec<Result<Vec<f64>, CounterInvalid>>;
}

/// The ranges of a process that are counted.
#[derive(Default)]
pub struct CountedRanges(QuietMutex<RangesState>);

#[derive(Default)]
struct RangesState {
    agents: Vec<RangeAgent>,
    /// The pattern and the context of a recording whose agents come later.
    expected: Option<(Option<WildMatch>, ContextKey)>,
    /// Agents that count ranges themselves.
    counters: HashMap<AgentId, Arc<dyn RangeCounter>>,
    /// Names of external ids.
    externals: HashMap<(ExternalKind, ExternalId), Box<str>>,
    /// The outermost range of each thread that is to be counted. One of them is.
    open: Vec<OpenRange>,
    /// Ranges that have ended, and whose kernels have not.
    waiting: Vec<OpenRange>,
    /// Kernels that have not ended, by their calls and agents: their range, and their number.
    kernels: HashMap<(CorrelationId, AgentId), (u64, u32)>,
    /// Values that the next caller writes.
    ready: ReadyValues,
    /// Whether agents are just beginning or ending a range.
    is_changing: bool,
    /// The number of the latest range.
    latest: u64,
    /// Ranges that were not counted, as another one was.
    refused: u64,
    /// Ranges whose end was not recorded, or whose kernels were too many.
    unended: u64,
}

/// An agent that is configured to count ranges.
struct RangeAgent {
    agent: AgentId,
    set: Arc<CounterSet>,
    pattern: Option<WildMatch>,
    buffers: Buffers,
    context: ContextKey,
    names: Names,
}

/// A place in the nesting of a thread's ranges.
#[derive(Copy, Clone, PartialEq, Eq)]
enum NestingPlace {
    /// Of a domain, or of none, and the level.
    Pushed(StringId, u32),
    /// External ids of a kind, and the number of those of this kind that were pushed within.
    External(u16, u32),
}

struct OpenRange {
    number: u64,
    thread: ThreadId,
    place: NestingPlace,
    name: StringId,
    start: Ticks,
    end: Ticks,
    /// The counts of each agent that ran kernels; `None` if another range is counted.
    parts: Option<Vec<RangeCounts>>,
}

/// The counts of a range's kernels on an agent.
struct RangeCounts {
    agent: AgentId,
    /// Kernels that have not ended.
    pending: u32,
    sum: Sum,
}

impl OpenRange {
    /// Whether the marker ends it.
    fn is_ended_by(&mut self, marker: &Marker) -> bool {
        match (&mut self.place, marker.what) {
            (NestingPlace::Pushed(domain, level), MarkerKind::POP | MarkerKind::PUSH) => {
                // A push of its level or below: it ended without a record.
                *domain == domain_of(marker) && (1..=*level).contains(&marker.level())
            }
            (NestingPlace::External(kind, within), MarkerKind::EXTERNAL_PUSH) => {
                *within += u32::from(*kind == marker.external_kind);
                false
            }
            (NestingPlace::External(kind, within), MarkerKind::EXTERNAL_POP) => {
                let is_of_kind = *kind == marker.external_kind;
                let is_ended = is_of_kind && *within == 0;
                *within -= u32::from(is_of_kind && *within > 0);
                is_ended
            }
            _ => false,
        }
    }

    fn part(&mut self, agent: AgentId) -> Option<&mut RangeCounts> {
        let mut parts = self.parts.iter_mut().flatten();
        parts.find(|part| part.agent == agent)
    }

    /// A kernel of the agent begins, which the range counts.
    fn add_kernel(&mut self, agent: AgentId) {
        let Some(parts) = &mut self.parts else {
            return;
        };
        match parts.iter_mut().find(|part| part.agent == agent) {
            Some(part) => part.pending += 1,
            None => parts.push(RangeCounts {
                agent,
                pending: 1,
                sum: Sum::default(),
            }),
        }
    }

    fn subject(&self) -> Subject {
        Subject {
            span: (DeviceTime(self.start.0), DeviceTime(self.end.0)),
            range: self.name,
            ..Subject::default()
        }
    }
}

/// The domain in which the ranges of a marker nest; none if they nest in those of all domains.
fn domain_of(marker: &Marker) -> StringId {
    if marker.nests_in_its_domain() {
        marker.domain
    } else {
        StringId::NONE
    }
}

impl RangeAgent {
    /// The records of `subject` that this agent has counted as `sum`.
    fn values(&self, mut subject: Subject, sum: &Sum) -> ReadyValues {
        subject.duration = sum.duration.map(|duration| duration.0);
        let records = self.records(sum.properties.clone());
        self.to_buffers(records.of(&subject, &sum.readings))
    }

    /// The records of values without a number.
    fn invalid(&self, subject: &Subject, reason: CounterInvalid) -> ReadyValues {
        let invalid = |counted| (counted, CounterReading::invalid(reason));
        let readings: Vec<_> = self.set.counted().map(invalid).collect();
        let mut values = self.records(HashMap::new()).of(subject, &readings);
        // Of metrics, too, the reason is this one.
        values.iter_mut().for_each(|value| value.invalid = reason);
        self.to_buffers(values)
    }

    fn records(&self, properties: HashMap<gputrail_counters::Property, f64>) -> ValueRecords {
        ValueRecords::new(self.set.clone(), self.agent, properties, &self.names)
    }

    fn to_buffers(&self, values: Vec<CounterValue>) -> ReadyValues {
        let each = values.into_iter();
        each.map(|value| (self.buffers, value)).collect()
    }
}

impl RangesState {
    /// The values of the parts of a range whose kernels have all ended.
    fn values_of(&self, range: &OpenRange) -> ReadyValues {
        let mut values = Vec::new();
        for agent in &self.agents {
            let parts = range.parts.iter().flatten();
            let mut parts = parts.filter(|part| part.agent == agent.agent && part.sum.kernels > 0);
            if let Some(part) = parts.next() {
                values.extend(agent.values(range.subject(), &part.sum));
            }
        }
        values
    }

    /// A kernel of this call has ended, which has counted `sum`.
    fn ended_kernel(
        &mut self,
        call: CorrelationId,
        agent: AgentId,
        sum: Option<&DispatchReadings>,
    ) {
        let Some((number, kernels)) = self.kernels.get_mut(&(call, agent)) else {
            return;
        };
        let number = *number;
        *kernels -= 1;
        if *kernels == 0 {
            self.kernels.remove(&(call, agent));
        }
        let mut ranges = self.open.iter_mut().chain(&mut self.waiting);
        let range = ranges.find(|range| range.number == number);
        let Some(part) = range.and_then(|range| range.part(agent)) else {
            return;
        };
        part.pending = part.pending.saturating_sub(1);
        if let Some(dispatch) = sum {
            part.sum.add(dispatch);
        }
        let is_complete = |range: &OpenRange| {
            let mut parts = range.parts.iter().flatten();
            parts.all(|part| part.pending == 0)
        };
        let waits = |range: &OpenRange| range.number == number && is_complete(range);
        if let Some(place) = self.waiting.iter().position(waits) {
            let range = self.waiting.swap_remove(place);
            let values = self.values_of(&range);
            self.ready.extend(values);
        }
    }
}

impl CountedRanges {
    /// The request of ranges that `agent` counts, whose dispatches are assigned to ranges.
    pub fn assigned(self: &Arc<Self>, agent: AgentId, request: CountingRequest) -> CountingRequest {
        let tool = RangeTool {
            ranges: self.clone(),
            agent,
            set: request.set.clone(),
        };
        request.assigned_by(Arc::new(tool))
    }

    /// An agent has been configured to count ranges for `context`, into `buffers`.
    pub fn configured(
        &self,
        agent: AgentId,
        request: &CountingRequest,
        context: ContextKey,
        buffers: Buffers,
        names: &Names,
    ) {
        let mut state = self.0.lock();
        state.agents.retain(|known| known.agent != agent);
        state.agents.push(RangeAgent {
            agent,
            set: request.set.clone(),
            pattern: request.range.as_deref().map(WildMatch::new),
            buffers,
            context,
            names: names.clone(),
        });
        ARE_COUNTED.store(true, Ordering::Relaxed);
    }

    /// Has `counter` count the ranges of an agent, or nobody any more.
    pub fn count_by(&self, agent: AgentId, counter: Option<Arc<dyn RangeCounter>>, names: &Names) {
        let Some(counter) = counter else {
            self.0.lock().counters.remove(&agent);
            return;
        };
        let mut state = self.0.lock();
        let mut open = state.open.iter();
        let range = open.find(|range| range.parts.is_some());
        let range = range.map(|range| range.name);
        state.counters.insert(agent, counter.clone());
        drop(state);
        // The range began before the process used the agent.
        if let Some(name) = range {
            counter.begin(&names.text(name).unwrap_or_default());
        }
    }

    /// Follows ranges whose names match `pattern` from now on: `context` is going to count them on agents.
    pub fn expect(&self, pattern: Option<&str>, context: ContextKey) {
        self.0.lock().expected = Some((pattern.map(WildMatch::new), context));
        ARE_COUNTED.store(true, Ordering::Relaxed);
    }

    /// An external id has a name.
    pub fn name_external(&self, kind: ExternalKind, id: ExternalId, name: &str) {
        let mut state = self.0.lock();
        let known = state.externals.len();
        if known < MAX_EXTERNAL_NAMES || state.externals.contains_key(&(kind, id)) {
            state.externals.insert((kind, id), name.into());
        }
    }

    /// The recording ends: ranges that have not ended have no values. Tells how many ranges were not counted.
    pub fn finish(&self, names: &Names) {
        let (open, counters, refused, unended) = {
            let mut state = self.0.lock();
            if state.agents.is_empty() {
                // Nothing counts ranges here, which is told elsewhere.
                return;
            }
            (
                std::mem::take(&mut state.open),
                state.counters.values().cloned().collect::<Vec<_>>(),
                std::mem::take(&mut state.refused),
                std::mem::take(&mut state.unended)
                    + std::mem::take(&mut state.waiting).len() as u64,
            )
        };
        if open.iter().any(|range| range.parts.is_some()) {
            for counter in counters {
                counter.end();
            }
        }
        let mut told = Vec::new();
        if refused > 0 {
            told.push(format!(
                "{} not counted, as another one was counted at that time",
                count(refused, "range")
            ));
        }
        let unended = unended + open.len() as u64;
        if unended > 0 {
            told.push(format!(
                "{} without values, as their ends were not recorded",
                count(unended, "range")
            ));
        }
        for text in told {
            gputrail_buffer::platform::inside::message(format_args!("{text}"));
            names.note(NoteKind::OTHER, &format!("counters: {text}"));
        }
    }

    fn forget(&self, agent: AgentId, set: &Arc<CounterSet>) {
        let mut state = self.0.lock();
        let is_that = |known: &RangeAgent| known.agent == agent && Arc::ptr_eq(&known.set, set);
        state.agents.retain(|known| !is_that(known));
    }
}

/// Assigns the kernels of one agent to the range that is counted when they are enqueued.
struct RangeTool {
    ranges: Arc<CountedRanges>,
    agent: AgentId,
    set: Arc<CounterSet>,
}

impl DispatchCounting for RangeTool {
    fn choose(&self, dispatch: &KernelDispatch) -> Option<Arc<CounterSet>> {
        let mut state = self.ranges.0.lock();
        let call = (dispatch.work.correlation, self.agent);
        // The kernels of one call (a graph's) belong to one range, since they may end in another order.
        let number = match state.kernels.get(&call) {
            Some((number, _)) => *number,
            None => {
                state
                    .open
                    .iter()
                    .find(|range| range.parts.is_some())?
                    .number
            }
        };
        let state = &mut *state;
        let mut ranges = state.open.iter_mut().chain(&mut state.waiting);
        let range = ranges.find(|range| range.number == number)?;
        range.add_kernel(self.agent);
        state.kernels.entry(call).or_insert((number, 0)).1 += 1;
        Some(self.set.clone())
    }

    fn measured(&self, dispatch: &DispatchReadings) {
        let mut state = self.ranges.0.lock();
        state.ended_kernel(dispatch.call, self.agent, Some(dispatch));
    }

    fn abandoned(&self, call: CorrelationId, _: WorkId) {
        self.ranges.0.lock().ended_kernel(call, self.agent, None);
    }

    fn take_ready(&self) -> ReadyValues {
        std::mem::take(&mut self.ranges.0.lock().ready)
    }
}

impl Drop for RangeTool {
    fn drop(&mut self) {
        self.ranges.forget(self.agent, &self.set);
    }
}
