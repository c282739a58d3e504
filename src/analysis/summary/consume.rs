//! How a summary takes the stream of a trace.

use std::collections::BTreeMap;
use std::io;

use gputrail_record::{Nanos, Unfinished};
use gputrail_trace::model::{
    Agent, AgentIndex, Call, Consumer, CounterBlock, CounterIndex, CounterUnit, CounterValue,
    FunctionIndex, Instant, Loss, Note, Parent, Process, ProcessIndex, Queue, QueueIndex, Slice,
    StageId, Track, TrackIndex, TrackKind, Value, Work, WorkKind, category,
};
use gputrail_trace::ranks::is_communication;

use super::call_stacks::LaunchedWork;
use super::ranges::{RangePlace, RangeTrack, ThreadEntry};
use super::{
    Distribution, FunctionRole, FunctionSummary, KnownWork, MAX_CODES, MAX_MISSING,
    MAX_RANGE_TRACKS, MAX_ROWS, Occasion, Opener, REST, Summary, TINY_BYTES, WorkClass,
    WorkSummary,
};

/// Helpers of the consumer.
impl Summary {
    /// A range begins, and ends if its end is known and nothing follows in it.
    fn begin_range(&mut self, place: RangePlace, slice: &Slice<'_>, is_operator: bool) {
        let is_step = self.step_patterns.is_step(slice.name, is_operator);
        let step = if is_step {
            self.places
                .begin_step(place.process, slice.name, slice.start)
        } else {
            None
        };
        // The end of a step is told as soon as it is known, once.
        let open_step = match (step, slice.end) {
            (Some(step), Some(end)) => {
                self.places.end_step(step, end);
                None
            }
            _ => step,
        };
        let name = (slice.name, is_operator);
        self.ranges
            .begin(place, name, (slice.start, slice.end), open_step);
        if let (false, Some(end)) = (slice.open, slice.end) {
            self.end_range(place, end);
        }
    }

    fn end_range(&mut self, place: RangePlace, end: Nanos) {
        if let Some(ended) = self.ranges.end(place, end) {
            let took = end.0.saturating_sub(ended.start.0);
            let name = &self.ranges.name(ended.label);
            self.host.span(place.process, name, ended.start, took);
            if let Some(step) = ended.step {
                self.places.end_step(step, end);
            }
        }
    }

    /// Work that ran on a device.
    fn add_busy(
        &mut self,
        work: &Work<'_>,
        interval: (Nanos, Nanos),
        class: WorkClass,
        opener: Option<Opener>,
    ) {
        let Some(gpu) = self.gpus.get_mut(&work.agent) else {
            return;
        };
        let (start, end) = interval;
        gpu.all.add(start, end, opener);
        let of_kind = match work.stage.kind {
            WorkKind::Kernel => &mut gpu.kernels,
            _ => &mut gpu.transfers,
        };
        of_kind.add(start, end, None);
        let place = (work.process, work.agent, work.queue);
        self.places.work(place, interval, class);
    }
}

/// The class of work of a kind with a name.
fn class_of(kind: WorkKind, name: &str) -> WorkClass {
    match kind {
        WorkKind::Kernel if is_communication(name) => WorkClass::Communication,
        WorkKind::Kernel => WorkClass::Compute,
        _ => WorkClass::Transfer,
    }
}

/// A launch with as many workgroups fills a good part of a device.
pub const MANY_WORKGROUPS: u64 = 64;

/// The share of the most waves that a device holds, 0 to 1, as PyTorch's profiler says it beside a kernel.
fn occupancy_of(work: &Work<'_>) -> Option<f64> {
    let wanted = |name: &str| name == "est. achieved occupancy %";
    let found = work.arguments.iter().find(|one| wanted(one.name))?;
    let percent = match found.value {
        Value::Uint(number) => number as f64,
        Value::Int(number) => number as f64,
        Value::Double(number) => number,
        _ => return None,
    };
    // 0 % of a kernel with many workgroups is an estimate that failed: PyTorch knows no launch with more local memory than is
    // allowed without asking for it.
    let has_few_groups = || {
        let groups = work.launch?.workgroups()?;
        let groups: u64 = groups.iter().map(|size| u64::from(*size)).product();
        Some(groups < MANY_WORKGROUPS)
    };
    let is_known = percent > 0.0 || has_few_groups().unwrap_or(true);
    ((0.0..=100.0).contains(&percent) && is_known).then_some(percent / 100.0)
}

impl Consumer for Summary {
    gputrail_trace::leave_out!(clocks attributes samples stack stack_samples);

    fn agents(&mut self, first: AgentIndex, agents: &[Agent]) -> io::Result<()> {
        for (index, agent) in (first.0..).zip(agents) {
            let time = self.gpus.entry(AgentIndex(index)).or_default();
            (time.title, time.name) = (agent.title.clone(), agent.name.clone());
            for (start, end) in &self.off_spans {
                time.all.exclude(*start, *end);
            }
        }
        Ok(())
    }

    fn process(&mut self, index: ProcessIndex, process: &Process<'_>) -> io::Result<()> {
        self.names.declare_process(index, process);
        Ok(())
    }

    fn queue(&mut self, index: QueueIndex, queue: &Queue<'_>) -> io::Result<()> {
        self.names.declare_queue(index, queue);
        Ok(())
    }

    fn track(&mut self, index: TrackIndex, track: &Track<'_>) -> io::Result<()> {
        let parent = match track.parent {
            Parent::Process(process) => Some(process),
            _ => None,
        };
        let of_thread = |process, thread| RangePlace {
            process,
            thread,
            track: index,
        };
        let ranges = match track.kind {
            TrackKind::ThreadRanges(process, thread) => {
                RangeTrack::of_thread(of_thread(process, thread), true)
            }
            TrackKind::Thread(process, thread) => {
                RangeTrack::of_thread(of_thread(process, thread), false)
            }
            TrackKind::Ranges => RangeTrack::Whole(parent),
            TrackKind::Counter(CounterUnit::Bytes) => {
                self.names.declare_memory(index, parent, track.name);
                return Ok(());
            }
            _ => return Ok(()),
        };
        if self.range_tracks.len() < MAX_RANGE_TRACKS {
            self.range_tracks.insert(index, ranges);
        }
        Ok(())
    }

    fn counters(&mut self, index: CounterIndex, block: &CounterBlock) -> io::Result<()> {
        self.counters.declare(index, block);
        Ok(())
    }

    fn value(&mut self, track: TrackIndex, time: Nanos, value: CounterValue) -> io::Result<()> {
        if let Some((process, bytes)) = self.names.memory(track, time, value) {
            self.places.steps.memory(process, time, bytes);
        }
        Ok(())
    }

    fn counter_values(
        &mut self,
        block: CounterIndex,
        _: Nanos,
        values: &[CounterValue],
    ) -> io::Result<()> {
        self.counters.add_period(block, values);
        Ok(())
    }

    fn derived_values(&mut self, _: CounterIndex, _: Nanos, _: &[CounterValue]) -> io::Result<()> {
        Ok(())
    }

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        self.extend(call.start, call.end.unwrap_or(call.start));
        let room = self.functions.len() < MAX_ROWS;
        let mut key = call.function.index;
        let mut name = &*call.function.name;
        if !room && !self.functions.contains_key(&key) {
            (key, name) = (FunctionIndex(u32::MAX), REST);
        }
        let function = self
            .functions
            .entry(key)
            .or_insert_with(|| FunctionSummary {
                name: name.to_owned(),
                domain: call.function.domain,
                group: call.function.group,
                times: Distribution::default(),
                outermost: (0, 0),
                unfinished: 0,
                failures: BTreeMap::new(),
                role: FunctionRole::of(call.function),
                longest: None,
                first_failure: None,
            });
        // Operators on the track of a thread are no calls.
        let nested = match self.range_tracks.get_mut(&call.track) {
            Some(RangeTrack::Thread(thread)) if !thread.only_ranges => {
                let nested = thread.in_calls();
                if call.open {
                    thread.push(ThreadEntry::Call);
                }
                nested
            }
            _ => call.nested,
        };
        let (launches, work, keys) = (&mut self.launches, &mut self.work, &self.label_keys);
        launches.call(call, |label, parts| {
            let known = keys.get(label as usize).and_then(|key| work.get_mut(key));
            if let Some(known) = known {
                known.sum.parts.add(&parts);
            }
        });
        if let Some(stacks) = &mut self.launch_stacks {
            stacks.call(call);
        }
        if let (false, Some(end)) = (nested, call.end) {
            let took = end.0.saturating_sub(call.start.0);
            function.outermost.0 += 1;
            function.outermost.1 += took;
            self.ranges
                .call(call.process, call.thread, call.start, took);
            self.host.span(call.process, name, call.start, took);
            let thread = (call.process, call.thread);
            self.host
                .call(thread, function.role, (name, call.start, took));
        }
        match call.end {
            Some(end) => {
                let took = end.0.saturating_sub(call.start.0);
                function.times.add(took);
                let start = call.start;
                Occasion::keep_longest(&mut function.longest, Some(Occasion { start, took }));
            }
            None => function.unfinished += 1,
        }
        if let Some(code) = call.error {
            let failures = [function.first_failure, Some(call.start)];
            function.first_failure = failures.into_iter().flatten().min();
            let codes = function.failures.len();
            match function.failures.get_mut(&code) {
                Some(count) => *count += 1,
                None if codes < MAX_CODES => drop(function.failures.insert(code, 1)),
                None => *function.failures.entry(i32::MIN).or_default() += 1,
            }
        }
        Ok(())
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        self.counters.add(work);
        let kind = work.stage.kind;
        let room = self.work.len() < MAX_ROWS;
        let mut key = (work.process, work.stage.id);
        let mut name = work.stage.name;
        if !room && !self.work.contains_key(&key) {
            let rest = StageId(kind as u64);
            (key, name) = ((ProcessIndex(u32::MAX), rest), REST);
        }
        let (labels, keys) = (&mut self.labels, &mut self.label_keys);
        let known = self.work.entry(key).or_insert_with(|| {
            labels.push(name.to_owned());
            keys.push(key);
            KnownWork {
                label: labels.len() as u32 - 1,
                class: class_of(kind, name),
                sum: WorkSummary::named(name, kind),
            }
        });
        let (label, class, sum) = (known.label, known.class, &mut known.sum);
        if work.bytes > 0 {
            sum.sizes.add(work.bytes);
        }
        sum.failed += u64::from(work.status < 0);
        match work.interval {
            Some((start, end)) => {
                let took = end.0.saturating_sub(start.0);
                sum.times.add(took);
                if work.bytes > 0 {
                    sum.sized_time += took;
                }
                if (1..=TINY_BYTES).contains(&work.bytes) {
                    sum.tiny_count += 1;
                    sum.tiny_time += took;
                }
                let occasion = Occasion { start, took };
                sum.first.get_or_insert(occasion);
                Occasion::keep_longest(&mut sum.longest, Some(occasion));
                if kind == WorkKind::Kernel {
                    if let Some(share) = occupancy_of(work) {
                        sum.occupied += share * took as f64;
                        sum.occupancy_time += took;
                    }
                    let launch = work.launch.filter(|_| sum.shape.is_none());
                    sum.shape = sum.shape.or(launch.map(|launch| (launch, work.resources)));
                }
                if let Some(parts) = self.launches.work(label, work) {
                    sum.parts.add(&parts);
                }
                if let Some(enqueued) = work.enqueued {
                    sum.latency.add(start.0.saturating_sub(enqueued.0));
                    let before = enqueued.0.saturating_sub(start.0);
                    if before > 0 {
                        let (count, earliest) = &mut self.early;
                        *count += 1;
                        if earliest.is_none_or(|(_, most)| before > most) {
                            *earliest = Some((start, before));
                        }
                    }
                    let thread = (work.process, work.thread);
                    let kernel = (kind == WorkKind::Kernel).then_some(label);
                    self.ranges.work(thread, enqueued, took, kernel);
                }
                if kind.is_busy()
                    && let Some(stacks) = &mut self.stacks
                {
                    let process = self.names.process(work.process).text();
                    let thread = (work.process, work.thread);
                    let ranges = work.enqueued.map(|time| self.ranges.stack(thread, time));
                    let ranges = ranges.unwrap_or_default();
                    let frames = std::iter::once(&*process).chain(ranges);
                    stacks.add(frames.chain([name]), took);
                }
                if kind.is_busy()
                    && let Some(stacks) = &mut self.launch_stacks
                {
                    let launched = LaunchedWork {
                        process: work.process,
                        label,
                        took,
                    };
                    stacks.work(work.event, launched);
                }
                if class == WorkClass::Communication {
                    self.collectives.add(work, took);
                }
                let opener = Opener {
                    label,
                    enqueued: work.enqueued,
                };
                self.extend(start, end);
                if kind.is_busy() {
                    self.add_busy(work, (start, end), class, Some(opener));
                }
            }
            None if work.unfinished == Unfinished::NO_TIMES.name() => {
                sum.untimed += 1;
                if let Some(gpu) = self.gpus.get_mut(&work.agent) {
                    gpu.untimed += 1;
                }
            }
            None if work.unfinished == Some(Work::UNRECORDED) => {
                sum.untimed += 1;
            }
            None => {
                sum.unfinished += 1;
                // It was running until the end, or it is not known to have started.
                if let Some((start, end)) = work.measured() {
                    sum.times.add(end.0.saturating_sub(start.0));
                    self.extend(start, end);
                    if kind.is_busy() {
                        self.add_busy(work, (start, end), class, None);
                    }
                } else {
                    sum.untimed += 1;
                }
            }
        }
        Ok(())
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        if slice.is_off() {
            self.add_off(slice.start, slice.end.unwrap_or(slice.start));
        }
        if slice.category == category::COUNTED_RANGE {
            self.counters.add_range(slice);
        }
        let (place, is_operator) = match self.range_tracks.get_mut(&slice.track) {
            None => return Ok(()),
            Some(RangeTrack::Whole(process)) => {
                let process = *process;
                self.ranges.add(slice.name, slice.start, slice.end);
                if let (Some(process), Some(end)) = (process, slice.end)
                    && self.step_patterns.is_step(slice.name, false)
                    && let Some(step) = self.places.begin_step(process, slice.name, slice.start)
                {
                    self.places.end_step(step, end);
                }
                self.extend(slice.start, slice.end.unwrap_or(slice.start));
                return Ok(());
            }
            Some(RangeTrack::Thread(thread)) => {
                let range = thread.range(slice.category);
                let entry = match range {
                    Some(_) => ThreadEntry::Range,
                    None => ThreadEntry::Other,
                };
                if slice.open && !thread.push(entry) {
                    return Ok(());
                }
                match range {
                    Some(is_operator) => (thread.place, is_operator),
                    None => return Ok(()),
                }
            }
        };
        self.begin_range(place, slice, is_operator);
        self.extend(slice.start, slice.end.unwrap_or(slice.start));
        Ok(())
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        let track = self.range_tracks.get(&instant.track);
        if track.is_some_and(RangeTrack::has_only_ranges) {
            self.extend(instant.time, instant.time);
        }
        Ok(())
    }

    fn end(&mut self, track: TrackIndex, end: Nanos) -> io::Result<()> {
        if let Some(RangeTrack::Thread(thread)) = self.range_tracks.get_mut(&track) {
            let (place, entry) = (thread.place, thread.pop());
            if entry == Some(ThreadEntry::Range) {
                self.end_range(place, end);
                self.extend(end, end);
            }
        }
        Ok(())
    }

    fn loss(&mut self, loss: &Loss) -> io::Result<()> {
        self.lost = self.lost.saturating_add(loss.count);
        Ok(())
    }

    fn note(&mut self, note: &Note<'_>) -> io::Result<()> {
        if let Some(reason) = note.missing() {
            let is_known = self.missing.contains_key(reason);
            let reason = if is_known || self.missing.len() < MAX_MISSING {
                reason
            } else {
                REST
            };
            *self.missing.entry(reason.to_owned()).or_default() += 1;
        }
        Ok(())
    }
}
