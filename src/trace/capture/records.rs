//! The records of one process, passed on as events of the model.

use std::borrow::Cow;
use std::io;

use super::devices::{About, ProcessState};
use super::join::{At, EnqueueFields, FoundWork, ShownWork, WorkNature, is_kernel};
use super::off::OffTimes;
use super::process::{ProcessStream, known_or};
use super::sampling::ProcessSamples;
use super::waits::Entering;
use super::{StreamOutput, read};
use crate::model::{EventArgument, Parent, Slice, Track, TrackKind, Value, category};
use gputrail_record::{
    Allocation, Completion, CounterValue, Dependency, DeviceTime, Environment, GraphChange,
    GraphNode, KernelDispatch, Kind, MemoryCopy, MemorySet, Overhead, Preemption, QueueId,
    RecordRef, Synchronization, ThreadId, Ticks, UnifiedMemoryCounter, flags, queue_properties,
};

/// Capacity to which the buffer of finished work is shrunk.
const READY_CAPACITY: usize = 64;

impl ProcessStream<'_> {
    /// Reads one record of `thread`'s lane.
    #[inline]
    pub fn record(
        &mut self,
        output: &mut StreamOutput<'_>,
        thread: ThreadId,
        record: &RecordRef<'_>,
    ) -> io::Result<()> {
        match record.get() {
            // Most records are calls.
            Some(call) => self.call(output, call),
            None => self.other(output, thread, record),
        }
    }

    /// Reads a record that is not a call, or a call that cannot be read in place.
    fn other(
        &mut self,
        output: &mut StreamOutput<'_>,
        thread: ThreadId,
        record: &RecordRef<'_>,
    ) -> io::Result<()> {
        output.report.others += u64::from(is_shown_alone(record.kind()));
        match record.kind() {
            Kind::API => self.call(output, &read(record)),
            Kind::KERNEL_DISPATCH => {
                let record: Cow<'_, KernelDispatch> = read(record);
                self.enqueue(output, known_or(record.work.thread, thread), &*record)
            }
            Kind::MEMORY_COPY => {
                let record: Cow<'_, MemoryCopy> = read(record);
                self.enqueue(output, known_or(record.work.thread, thread), &*record)
            }
            Kind::MEMORY_SET => {
                let record: Cow<'_, MemorySet> = read(record);
                self.enqueue(output, known_or(record.work.thread, thread), &*record)
            }
            Kind::SYNCHRONIZATION => self.synchronization(output, thread, &read(record)),
            Kind::DEPENDENCY => self.dependency(output, thread, &read(record)),
            Kind::GRAPH_NODE => {
                let node: Cow<'_, GraphNode> = read(record);
                self.devices.add_node(&node);
                Ok(())
            }
            Kind::CHILD_KERNEL => {
                self.devices.children.add(&read(record));
                Ok(())
            }
            Kind::PREEMPTION => {
                let record: Cow<'_, Preemption> = read(record);
                let time = self.devices.time(record.agent, record.time);
                let time = self.time_or_latest(time.unwrap_or_default());
                self.devices.preempted(&mut output.stream, &record, time)
            }
            Kind::GRAPH_CHANGE => {
                let change: Cow<'_, GraphChange> = read(record);
                let time = self.time_or_latest(self.host.to_boottime(change.time));
                self.devices
                    .graphs
                    .changed(&mut output.stream, &change, time)
            }
            Kind::COMPLETION => {
                let completion: Cow<'_, Completion> = read(record);
                // Read in place: joined records are not moved.
                match &self.join.complete(&completion, &mut self.found) {
                    Some(work) => self.complete(output, work, &completion),
                    None => self.pass_on_found(output),
                }
            }
            Kind::ARGUMENTS => self.arguments(output, thread, &read(record)),
            Kind::MARKER => self.marker(output, thread, &read(record)),
            Kind::MEMORY_ALLOCATION => {
                let record: Cow<'_, Allocation> = read(record);
                let done = if record.end.is_some() {
                    record.end
                } else {
                    record.start
                };
                let time = self.time_or_latest(self.host.to_boottime(done));
                self.memory
                    .add(&mut output.stream, self.index, &self.devices, &record, time)
            }
            Kind::ENVIRONMENT => {
                let record: Cow<'_, Environment> = read(record);
                let time = self.time_or_latest(self.host.to_boottime(record.time));
                let place = (self.index, &self.devices);
                self.environments
                    .add(&mut output.stream, place, &record, time)
            }
            Kind::UNIFIED_MEMORY_COUNTER => {
                let record: Cow<'_, UnifiedMemoryCounter> = read(record);
                let time = self.time_or_latest(self.host.to_boottime(record.end));
                let place = (self.index, &self.devices);
                self.environments
                    .add_faults(&mut output.stream, place, &record, time)
            }
            Kind::OVERHEAD => self.overhead(output, thread, &read(record)),
            Kind::COUNTER_VALUE => self.counter_value(output, &read(record)),
            Kind::LOSS => self.loss(output, &read(record)),
            Kind::NOTE => self.note(output, &read(record)),
            kind if ProcessSamples::takes(kind) => {
                let (metadata, devices) = (&self.metadata, &self.devices);
                let ready = &mut self.ready;
                self.sampling
                    .record(output, metadata, devices, record, ready)?;
                self.pass_on_ready(output)
            }
            _ => Ok(()),
        }
    }

    /// Passes on everything that still waits.
    pub fn finish(&mut self, output: &mut StreamOutput<'_>) -> io::Result<()> {
        for place in 0..self.threads.len() {
            self.pass_on_calls(output, place, None)?;
        }
        self.finish_markers(output)?;
        self.memory
            .finish(&mut output.stream, self.index, &self.devices)?;
        let (metadata, devices) = (&self.metadata, &self.devices);
        self.sampling
            .finish(output, metadata, devices, &mut self.ready)?;
        self.pass_on_ready(output)?;
        output.report.left_out_counter_values += self.counters.finish(&mut self.counted);
        output.report.left_out_counter_values += self.devices.take_early();
        self.pass_on_counted(output)?;
        self.join.finish(&mut self.found);
        let mut unfinished = std::mem::take(&mut self.found);
        let end = self.cut().unwrap_or_else(|| self.end());
        self.remain_off(output, end)?;
        let source = ProcessState {
            metadata: &self.metadata,
            host: &self.host,
        };
        self.devices.pass_on_unfinished(
            output,
            source,
            &mut unfinished,
            end,
            self.may_lack_completions,
        )?;
        self.devices.graphs.finish(&mut output.stream)?;
        self.devices.finish(&mut *output.stream.consumer)?;
        output.report.clocks.extend(self.devices.clocks());
        self.introduce(output)?;
        self.undelivered(output)?;
        // Last, since a note without a time of its own is about the end.
        let notes = self.metadata.notes.iter();
        for note in notes.filter(|note| !OffTimes::concern(note)) {
            self.note(output, note)?;
        }
        Ok(())
    }

    /// Passes on the values that are held back for work that comes late.
    pub fn flush(&mut self, output: &mut StreamOutput<'_>) -> io::Result<()> {
        self.devices.flush(&mut *output.stream.consumer)?;
        output.stream.consumer.flush()
    }

    #[inline(never)]
    fn enqueue(
        &mut self,
        output: &mut StreamOutput<'_>,
        thread: ThreadId,
        record: &(impl ShownWork + Copy),
    ) -> io::Result<()> {
        let began = self.host.to_boottime(record.work().enqueued);
        let record = At(record, began);
        let work: EnqueueFields = record.into();
        self.sampling.enqueued(&work);
        let serial = self.join.enqueue(record, &mut self.found);
        let header = work.work;
        let event = self.devices.event(header.id, serial);
        self.devices.waits.enter(&Entering {
            work: header.id,
            event,
            queue: header.queue,
            enqueued: header.enqueued,
            after_all: matches!(
                work.what,
                WorkNature::Synchronization {
                    after_all: true,
                    ..
                }
            ),
            before_all: work.is_barrier() && self.is_out_of_order(header.queue),
        });
        // The call of a late record has been passed on, with the link of its announcement.
        match work.flags & flags::LATE {
            0 => self.link(output, thread, header.correlation, event, false)?,
            _ => self.announced.came(header.id),
        }
        self.pass_on_found(output)
    }

    fn is_out_of_order(&self, queue: QueueId) -> bool {
        let queue = self.metadata.queues.get(&queue);
        queue.is_some_and(|queue| queue.properties & queue_properties::OUT_OF_ORDER != 0)
    }

    fn dependency(
        &mut self,
        output: &mut StreamOutput<'_>,
        thread: ThreadId,
        record: &Dependency,
    ) -> io::Result<()> {
        let event = self.devices.event(record.waited_for, 0);
        if record.work.is_some() {
            self.devices.waits.add(record.work, event);
            return Ok(());
        }
        let waited = !record.header.has(flags::LATE);
        if !waited {
            self.announced.add(record.waited_for);
        }
        self.link(output, thread, record.correlation, event, waited)
    }

    fn synchronization(
        &mut self,
        output: &mut StreamOutput<'_>,
        thread: ThreadId,
        record: &Synchronization,
    ) -> io::Result<()> {
        let thread = known_or(record.work.thread, thread);
        if record.waited_for.is_some() {
            let event = self.devices.event(record.waited_for, 0);
            self.link(output, thread, record.work.correlation, event, true)?;
        }
        if record.work.id.is_some() {
            self.enqueue(output, thread, record)?;
        }
        Ok(())
    }

    /// Passes on work whose completion has come, after its samples.
    #[inline(always)]
    fn complete(
        &mut self,
        output: &mut StreamOutput<'_>,
        work: &EnqueueFields,
        completion: &Completion,
    ) -> io::Result<()> {
        if self.counters.concern(work) {
            let found = FoundWork::Both(*work, *completion);
            self.counters.found(found, &mut self.counted);
            return self.pass_on_counted(output);
        }
        if self.sampling.concern(work) {
            let found = FoundWork::Both(*work, *completion);
            self.sampling.found(found, &mut self.ready);
            return self.pass_on_ready(output);
        }
        let source = ProcessState {
            metadata: &self.metadata,
            host: &self.host,
        };
        self.devices
            .pass_on_complete(output, source, work, completion)
    }

    #[inline(always)]
    fn pass_on_found(&mut self, output: &mut StreamOutput<'_>) -> io::Result<()> {
        if self.found.is_empty() {
            Ok(())
        } else {
            self.pass_on_all_found(output)
        }
    }

    fn pass_on_all_found(&mut self, output: &mut StreamOutput<'_>) -> io::Result<()> {
        let mut found = std::mem::take(&mut self.found);
        for found in &found {
            match found {
                FoundWork::Both(work, completion) => self.complete(output, work, completion)?,
                FoundWork::Enqueued(_) | FoundWork::Completed(_) => {
                    let source = ProcessState {
                        metadata: &self.metadata,
                        host: &self.host,
                    };
                    self.devices
                        .pass_on(output, source, found.parts(), About::default(), None)?;
                }
            }
        }
        found.clear();
        self.found = found;
        Ok(())
    }

    /// Passes on kernels that have waited for their samples, with the other parts of their command buffers.
    fn pass_on_ready(&mut self, output: &mut StreamOutput<'_>) -> io::Result<()> {
        for (found, samples) in self.ready.drain(..) {
            let source = ProcessState {
                metadata: &self.metadata,
                host: &self.host,
            };
            let about = About {
                samples: samples.as_ref().filter(|_| is_kernel(&found)),
                counters: &[],
            };
            self.devices
                .pass_on(output, source, found.parts(), about, None)?;
        }
        // There may be a burst of it once.
        self.ready.shrink_to(READY_CAPACITY);
        Ok(())
    }

    /// Reads a value of a counter. The last value of a span of time passes on all of them.
    fn counter_value(
        &mut self,
        output: &mut StreamOutput<'_>,
        value: &CounterValue,
    ) -> io::Result<()> {
        if let Some(values) = self.counters.add(value, &mut self.counted) {
            if value.range.is_some() {
                self.counted_range(output, &values)?
            } else {
                self.devices.counted(output, &self.metadata, &values)?
            }
        }
        self.pass_on_counted(output)
    }

    /// Passes on the values of an agent's counters in a range of markers.
    fn counted_range(
        &mut self,
        output: &mut StreamOutput<'_>,
        values: &[CounterValue],
    ) -> io::Result<()> {
        let Some(first) = values.first() else {
            return Ok(());
        };
        let time = |time: DeviceTime| {
            let time = self.host.to_boottime(Ticks(time.0));
            self.time_or_latest(time)
        };
        let (start, end) = (time(first.start), time(first.end));
        let times = (start, end.max(start));
        let agent = self
            .devices
            .counted_range(output, &self.metadata, times, values)?;
        match agent {
            Some(_) => self
                .ranges
                .counted(&mut output.stream, &self.metadata, times, values),
            None => Ok(()),
        }
    }

    /// Passes on kernels that have waited for the values of their counters, with the other parts of their command buffers.
    fn pass_on_counted(&mut self, output: &mut StreamOutput<'_>) -> io::Result<()> {
        for (found, counters) in self.counted.drain(..) {
            let source = ProcessState {
                metadata: &self.metadata,
                host: &self.host,
            };
            let about = About {
                samples: None,
                counters: if is_kernel(&found) { &counters } else { &[] },
            };
            self.devices
                .pass_on(output, source, found.parts(), about, None)?;
        }
        Ok(())
    }

    /// Passes on an overhead, on a track of its own below the thread: it need not nest with calls.
    fn overhead(
        &mut self,
        output: &mut StreamOutput<'_>,
        thread: ThreadId,
        record: &Overhead,
    ) -> io::Result<()> {
        let place = self.thread_place(output, known_or(record.thread, thread))?;
        let thread = &mut self.threads[place];
        let track = match thread.overhead {
            Some(track) => track,
            None => *thread.overhead.insert(output.stream.new_track(&Track {
                parent: Parent::Track(thread.track),
                name: "overhead",
                kind: TrackKind::Slices,
                order: None,
            })?),
        };
        let detail = self.metadata.string(record.detail);
        let arguments = [EventArgument {
            name: "detail",
            value: Value::Text(detail),
        }];
        let start = self.time_or_latest(self.host.to_boottime(record.start));
        let end = record.end.is_some().then_some(record.end);
        output.stream.consumer.slice(&Slice {
            track,
            name: record.what.name().unwrap_or("overhead"),
            category: category::OVERHEAD,
            start,
            end: end.map(|end| self.host.to_boottime(end).max(start)),
            open: false,
            correlation: record.correlation,
            arguments: &arguments[..usize::from(!detail.is_empty())],
            flows: &[],
        })
    }
}

/// Whether records of a kind are shown by themselves, and counted in the report with no others.
fn is_shown_alone(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::GRAPH_CHANGE
            | Kind::MEMORY_ALLOCATION
            | Kind::ENVIRONMENT
            | Kind::UNIFIED_MEMORY_COUNTER
    )
}
