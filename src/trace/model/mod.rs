//! The model of a trace: a typed stream of what happened, joined and in nanoseconds.
//!
//! A [`Producer`] reads some form of a recording and passes it, event by event, to a [`Consumer`]. Captures
//! ([`Captures`](crate::capture::Captures)) and Perfetto traces
//! ([`TraceReplay`](crate::perfetto::reader::TraceReplay)) are producers; the Perfetto writer
//! ([`Exporter`](crate::perfetto::Exporter)), the summary and hotspots (`gputrail-analysis`) are
//! consumers. Neither side knows the other: a new importer implements [`Producer`], a new exporter implements
//! [`Consumer`], and each then works with all that exists.
//!
//! # The stream
//!
//! | family | file | declared once | then |
//! |---|---|---|---|
//! | trace | [`header`](TraceHeader) | [`begin`](Consumer::begin), [`clocks`](Consumer::clocks), [`attributes`](Consumer::attributes) | |
//! | agents, queues | [`agent`](Agent) | [`agents`](Consumer::agents), [`queue`](Consumer::queue) | [`work`](Consumer::work) |
//! | processes, tracks | [`track`](Track) | [`process`](Consumer::process), [`track`](Consumer::track) | |
//! | API calls | [`call`](Call) | | [`call`](Consumer::call), [`end`](Consumer::end) |
//! | ranges and other slices, markers | [`slice`](Slice) | | [`slice`](Consumer::slice), [`end`](Consumer::end), [`end_slice`](Consumer::end_slice), [`instant`](Consumer::instant) |
//! | counters of a track | [`track`](Track) | [`track`](Consumer::track) | [`value`](Consumer::value), [`derived_value`](Consumer::derived_value) |
//! | counters of an agent | [`counter`](CounterBlock) | [`counters`](Consumer::counters) | [`counter_values`](Consumer::counter_values), [`derived_values`](Consumer::derived_values) |
//! | samples of the program counter | [`samples`](Samples) | [`stack`](Consumer::stack) | [`samples`](Consumer::samples), [`stack_samples`](Consumer::stack_samples) |
//! | dependencies | ids in [`Call`] and [`Work`], [`FlowPoint`]s of slices and instants | | |
//! | losses, notes | [`note`](Note) | | [`loss`](Consumer::loss), [`note`](Consumer::note) |
//!
//! # Rules for producers
//!
//! * [`Consumer::begin`] comes first, [`Consumer::finish`] last.
//! * Times are nanoseconds of CLOCK_BOOTTIME of the recorded machine (`Nanos`). A time that is
//!   not known is `None`; an importer without a common clock chooses one and says so in the attributes.
//! * Processes, tracks, agents, queues and counters have dense indices from 0 ([`ProcessIndex`], [`TrackIndex`], ...), and
//!   are declared before the first event that names them.
//! * Names are borrowed for the time of one call. Where a name repeats millions of times, an index of the producer's
//!   choosing stands beside it ([`Function::index`], [`Stage::id`]): a consumer remembers what it made of that name.
//! * Slices of one track nest. They come in the order of their begins, an outer slice before those inside it;
//!   `Nesting` brings complete slices into this order. A slice inside which others may begin is
//!   [`open`](Slice::open), and [`Consumer::end`] ends it. What overlaps without nesting (async ranges) takes a
//!   track for each row.
//! * Device work is passed on once, when all of it is known; `join` puts the enqueue and the completion together, and
//!   `hold` keeps work back until data of another kind (samples, counters) has come. Calls name the work that they
//!   submitted or waited for, and work the work that it waited for, by [`EventId`]s that are unique in the trace.
//! * A consumer's error ends the stream: pass it on with `?`.
//!
//! # Rules for consumers
//!
//! * All methods have an empty default: implement those of interest. [`Consumer::wants_calls`] saves the producer the
//!   work for calls.
//! * Ids may be hostile where a producer reads files: bound what you keep for them.
//! * Several consumers of one stream are a tuple: `(&mut exporter, &mut summary)`.
//!
//! # Extending it
//!
//! Values that only one format has (colours, occupancy, units of an importer's own) are [`EventArgument`]s. A property that
//! a consumer acts on becomes a field of its family; a new kind of lane becomes a [`TrackKind`]; a new family becomes a
//! file here and a method of [`Consumer`] with an empty default, so that nothing else changes.

/// The latest time that events can have: 146 years after the machine was started. Importers leave out what is later.
pub const LATEST: u64 = 1 << 62;

mod agent;
mod call;
mod counter;
mod device_rows;
pub mod flame;
pub mod gauges;
mod header;
pub(crate) mod hold;
mod ids;
pub(crate) mod nesting;
mod note;
mod projected_ranges;
mod samples;
mod slice;
pub mod stalls;
mod track;
mod work;

use std::io;

pub use agent::{Agent, LINK, Queue};
pub use agent::{KIND, TITLE, TITLES as AGENT_TITLES, UNKNOWN_DEVICE, title as agent_title};
pub use call::{Call, Function, Parameter, STACK};
pub use counter::{CounterBlock, CounterDescription, CounterUnit, CounterValue};
pub use device_rows::DeviceRows;
pub use header::{Machine, SharedEvent, SystemClocks, TraceHeader};
pub use ids::{
    AgentIndex, CounterIndex, EventId, FlowId, FunctionIndex, ProcessIndex, QueueIndex,
    SamplerIndex, StackIndex, StageId, TrackIndex,
};
pub use note::{Loss, Note};
pub use projected_ranges::ProjectedRanges;
pub use samples::{
    AgentConfiguration, CodeAddress, CodeFrame, ExecutionCount, Executions, OutcomeCount,
    RawSample, SampleCount, SampleTotals, Samples, SourceText, StackFrame, StackSamples,
};
pub use slice::{EventArgument, FlowPoint, Instant, Slice, SliceEnd, Value, category};
pub use track::{Parent, Process, Track, TrackKind};
pub use work::{Launch, Resources, Stage, Work, WorkKind, WorkSamples};

pub use gputrail_record::Nanos;

/// Reads a recording and passes it to a consumer.
pub trait Producer {
    /// Counts and findings about what was read.
    type Outcome;

    /// Passes the whole stream to `consumer`. Bytes that cannot be read are findings of the outcome; the error is the
    /// consumer's.
    fn produce(self, consumer: &mut dyn Consumer) -> io::Result<Self::Outcome>;
}

/// Takes the stream of a trace. The [module's page](self) has the rules.
pub trait Consumer: Send {
    /// Whether calls are of interest, which most of a trace is made of. Asked once; without interest in them their
    /// threads need not be declared.
    fn wants_calls(&self) -> bool {
        true
    }

    /// The stream begins.
    fn begin(&mut self, header: &TraceHeader) -> io::Result<()> {
        let _ = header;
        Ok(())
    }

    /// Several system clocks, read at one instant.
    fn clocks(&mut self, clocks: &SystemClocks) -> io::Result<()>;

    /// Facts about the recording as a whole: keys and values.
    fn attributes(&mut self, attributes: &[(String, String)]) -> io::Result<()>;

    /// Declares agents; `agents[0]` has the index `first`.
    fn agents(&mut self, first: AgentIndex, agents: &[Agent]) -> io::Result<()>;

    /// Declares a process.
    fn process(&mut self, index: ProcessIndex, process: &Process<'_>) -> io::Result<()>;

    /// Declares a track.
    fn track(&mut self, index: TrackIndex, track: &Track<'_>) -> io::Result<()>;

    /// Declares a queue of an agent.
    fn queue(&mut self, index: QueueIndex, queue: &Queue<'_>) -> io::Result<()>;

    /// Declares counters of an agent that change together.
    fn counters(&mut self, index: CounterIndex, block: &CounterBlock) -> io::Result<()>;

    /// An API call.
    fn call(&mut self, call: &Call<'_>) -> io::Result<()>;

    /// A slice that is no API call begins: a range, an overhead, an external id that is pushed.
    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()>;

    /// The innermost [open](Slice::open) call or slice of a track ends. There is none where it began before the
    /// recording.
    fn end(&mut self, track: TrackIndex, end: Nanos) -> io::Result<()>;

    /// As [`end`](Consumer::end), with what became known of the slice since it began.
    fn end_slice(&mut self, end: &SliceEnd<'_>) -> io::Result<()> {
        self.end(end.track, end.time)
    }

    /// A marker: something that happens at a point in time.
    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()>;

    /// Work of an agent.
    fn work(&mut self, work: &Work<'_>) -> io::Result<()>;

    /// The counter of a track has `value` from `time` on.
    fn value(&mut self, track: TrackIndex, time: Nanos, value: CounterValue) -> io::Result<()>;

    /// The counters of a block had `values` up to `time`, since the time of the values before.
    fn counter_values(
        &mut self,
        block: CounterIndex,
        time: Nanos,
        values: &[CounterValue],
    ) -> io::Result<()>;

    /// As [`value`](Consumer::value), of a counter that the producer makes of other events: its values are no events of the
    /// recording, and are not counted as such.
    fn derived_value(
        &mut self,
        track: TrackIndex,
        time: Nanos,
        value: CounterValue,
    ) -> io::Result<()> {
        self.value(track, time, value)
    }

    /// As [`counter_values`](Consumer::counter_values), of counters that the producer makes of other events.
    fn derived_values(
        &mut self,
        block: CounterIndex,
        time: Nanos,
        values: &[CounterValue],
    ) -> io::Result<()> {
        self.counter_values(block, time, values)
    }

    /// Samples of the program counter, exactly counted. They come in several parts.
    fn samples(&mut self, samples: &Samples) -> io::Result<()>;

    /// Declares a stack of a track of samples: its frames, outermost first.
    fn stack(
        &mut self,
        track: TrackIndex,
        stack: StackIndex,
        frames: &[StackFrame],
    ) -> io::Result<()>;

    /// Samples by themselves, with their times and stacks.
    fn stack_samples(&mut self, samples: &StackSamples<'_>) -> io::Result<()>;

    /// Records are missing.
    fn loss(&mut self, loss: &Loss) -> io::Result<()>;

    /// A fact about the recording of a process: how it was made, what was noticed, what is not readable.
    fn note(&mut self, note: &Note<'_>) -> io::Result<()>;

    /// There will be no events for a while: what is buffered can be written.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The stream has ended.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A consumer, as a producer writes to it: gives out the dense indices.
pub struct Stream<'a> {
    /// The consumer.
    pub consumer: &'a mut dyn Consumer,
    /// The indices that have been given out.
    pub indices: Indices,
}

/// The next index of each kind.
#[derive(Copy, Clone, Debug, Default)]
pub struct Indices {
    tracks: u32,
    queues: u32,
    counters: u32,
    functions: u32,
}

/// Takes the next number.
fn next(count: &mut u32) -> u32 {
    *count += 1;
    *count - 1
}

impl<'a> Stream<'a> {
    /// A stream to `consumer`, from its beginning.
    pub fn new(consumer: &'a mut dyn Consumer) -> Stream<'a> {
        Stream {
            consumer,
            indices: Indices::default(),
        }
    }

    /// Declares a track.
    pub fn new_track(&mut self, track: &Track<'_>) -> io::Result<TrackIndex> {
        let index = TrackIndex(next(&mut self.indices.tracks));
        self.consumer.track(index, track)?;
        Ok(index)
    }

    /// Declares a queue.
    pub fn new_queue(&mut self, queue: &Queue<'_>) -> io::Result<QueueIndex> {
        let index = QueueIndex(next(&mut self.indices.queues));
        self.consumer.queue(index, queue)?;
        Ok(index)
    }

    /// The index of a block of counters, which is to be declared before its first values.
    pub fn new_counters(&mut self) -> CounterIndex {
        CounterIndex(next(&mut self.indices.counters))
    }

    /// The index of a function.
    pub fn new_function(&mut self) -> FunctionIndex {
        FunctionIndex(next(&mut self.indices.functions))
    }
}

/// Writes methods of a [`Consumer`](crate::model::Consumer) that pass what they get on to the consumers in parentheses; all methods
/// but `wants_calls`, unless some are named. See [`leave_out`](crate::leave_out).
#[macro_export]
macro_rules! forward {
    (@begin $self:ident, ($($to:expr),*)) => {
        fn begin(&mut $self, header: &$crate::model::TraceHeader) -> ::std::io::Result<()> {
            let _ = header;
            $($to.begin(header)?;)*
            Ok(())
        }
    };
    (@clocks $self:ident, ($($to:expr),*)) => {
        fn clocks(&mut $self, clocks: &$crate::model::SystemClocks) -> ::std::io::Result<()> {
            let _ = clocks;
            $($to.clocks(clocks)?;)*
            Ok(())
        }
    };
    (@attributes $self:ident, ($($to:expr),*)) => {
        fn attributes(&mut $self, attributes: &[(String, String)]) -> ::std::io::Result<()> {
            let _ = attributes;
            $($to.attributes(attributes)?;)*
            Ok(())
        }
    };
    (@agents $self:ident, ($($to:expr),*)) => {
        fn agents(&mut $self, first: $crate::model::AgentIndex, agents: &[$crate::model::Agent]) -> ::std::io::Result<()> {
            let _ = (first, agents);
            $($to.agents(first, agents)?;)*
            Ok(())
        }
    };
    (@process $self:ident, ($($to:expr),*)) => {
        fn process(&mut $self, index: $crate::model::ProcessIndex, process: &$crate::model::Process<'_>) -> ::std::io::Result<()> {
            let _ = (index, process);
            $($to.process(index, process)?;)*
            Ok(())
        }
    };
    (@track $self:ident, ($($to:expr),*)) => {
        fn track(&mut $self, index: $crate::model::TrackIndex, track: &$crate::model::Track<'_>) -> ::std::io::Result<()> {
            let _ = (index, track);
            $($to.track(index, track)?;)*
            Ok(())
        }
    };
    (@queue $self:ident, ($($to:expr),*)) => {
        fn queue(&mut $self, index: $crate::model::QueueIndex, queue: &$crate::model::Queue<'_>) -> ::std::io::Result<()> {
            let _ = (index, queue);
            $($to.queue(index, queue)?;)*
            Ok(())
        }
    };
    (@counters $self:ident, ($($to:expr),*)) => {
        fn counters(&mut $self, index: $crate::model::CounterIndex, block: &$crate::model::CounterBlock) -> ::std::io::Result<()> {
            let _ = (index, block);
            $($to.counters(index, block)?;)*
            Ok(())
        }
    };
    (@call $self:ident, ($($to:expr),*)) => {
        #[inline]
        fn call(&mut $self, call: &$crate::model::Call<'_>) -> ::std::io::Result<()> {
            let _ = call;
            $($to.call(call)?;)*
            Ok(())
        }
    };
    (@slice $self:ident, ($($to:expr),*)) => {
        #[inline]
        fn slice(&mut $self, slice: &$crate::model::Slice<'_>) -> ::std::io::Result<()> {
            let _ = slice;
            $($to.slice(slice)?;)*
            Ok(())
        }
    };
    (@end $self:ident, ($($to:expr),*)) => {
        #[inline]
        fn end(&mut $self, track: $crate::model::TrackIndex, end: $crate::model::Nanos) -> ::std::io::Result<()> {
            let _ = (track, end);
            $($to.end(track, end)?;)*
            Ok(())
        }
    };
    (@end_slice $self:ident, ($($to:expr),*)) => {
        #[inline]
        fn end_slice(&mut $self, end: &$crate::model::SliceEnd<'_>) -> ::std::io::Result<()> {
            let _ = end;
            $($to.end_slice(end)?;)*
            Ok(())
        }
    };
    (@instant $self:ident, ($($to:expr),*)) => {
        fn instant(&mut $self, instant: &$crate::model::Instant<'_>) -> ::std::io::Result<()> {
            let _ = instant;
            $($to.instant(instant)?;)*
            Ok(())
        }
    };
    (@work $self:ident, ($($to:expr),*)) => {
        #[inline]
        fn work(&mut $self, work: &$crate::model::Work<'_>) -> ::std::io::Result<()> {
            let _ = work;
            $($to.work(work)?;)*
            Ok(())
        }
    };
    (@value $self:ident, ($($to:expr),*)) => {
        fn value(&mut $self, track: $crate::model::TrackIndex, time: $crate::model::Nanos, value: $crate::model::CounterValue) -> ::std::io::Result<()> {
            let _ = (track, time, value);
            $($to.value(track, time, value)?;)*
            Ok(())
        }
    };
    (@counter_values $self:ident, ($($to:expr),*)) => {
        fn counter_values(&mut $self, block: $crate::model::CounterIndex, time: $crate::model::Nanos, values: &[$crate::model::CounterValue]) -> ::std::io::Result<()> {
            let _ = (block, time, values);
            $($to.counter_values(block, time, values)?;)*
            Ok(())
        }
    };
    (@derived_value $self:ident, ($($to:expr),*)) => {
        fn derived_value(&mut $self, track: $crate::model::TrackIndex, time: $crate::model::Nanos, value: $crate::model::CounterValue) -> ::std::io::Result<()> {
            let _ = (track, time, value);
            $($to.derived_value(track, time, value)?;)*
            Ok(())
        }
    };
    (@derived_values $self:ident, ($($to:expr),*)) => {
        fn derived_values(&mut $self, block: $crate::model::CounterIndex, time: $crate::model::Nanos, values: &[$crate::model::CounterValue]) -> ::std::io::Result<()> {
            let _ = (block, time, values);
            $($to.derived_values(block, time, values)?;)*
            Ok(())
        }
    };
    (@samples $self:ident, ($($to:expr),*)) => {
        fn samples(&mut $self, samples: &$crate::model::Samples) -> ::std::io::Result<()> {
            let _ = samples;
            $($to.samples(samples)?;)*
            Ok(())
        }
    };
    (@stack $self:ident, ($($to:expr),*)) => {
        fn stack(&mut $self, track: $crate::model::TrackIndex, stack: $crate::model::StackIndex, frames: &[$crate::model::StackFrame]) -> ::std::io::Result<()> {
            let _ = (track, stack, frames);
            $($to.stack(track, stack, frames)?;)*
            Ok(())
        }
    };
    (@stack_samples $self:ident, ($($to:expr),*)) => {
        fn stack_samples(&mut $self, samples: &$crate::model::StackSamples<'_>) -> ::std::io::Result<()> {
            let _ = samples;
            $($to.stack_samples(samples)?;)*
            Ok(())
        }
    };
    (@loss $self:ident, ($($to:expr),*)) => {
        fn loss(&mut $self, loss: &$crate::model::Loss) -> ::std::io::Result<()> {
            let _ = loss;
            $($to.loss(loss)?;)*
            Ok(())
        }
    };
    (@note $self:ident, ($($to:expr),*)) => {
        fn note(&mut $self, note: &$crate::model::Note<'_>) -> ::std::io::Result<()> {
            let _ = note;
            $($to.note(note)?;)*
            Ok(())
        }
    };
    (@flush $self:ident, ($($to:expr),*)) => {
        fn flush(&mut $self) -> ::std::io::Result<()> {
            $($to.flush()?;)*
            Ok(())
        }
    };
    (@finish $self:ident, ($($to:expr),*)) => {
        fn finish(&mut $self) -> ::std::io::Result<()> {
            $($to.finish()?;)*
            Ok(())
        }
    };
    ($self:ident, ($($to:expr),*)) => {
        $crate::forward!(
            $self, ($($to),*),
            begin clocks attributes agents process track queue counters call slice end end_slice instant
            work value counter_values derived_value derived_values samples stack stack_samples loss note flush finish
        );
    };
    ($self:ident, $to:tt, $($method:ident)*) => {
        $($crate::forward!(@$method $self, $to);)*
    };
}

/// Writes methods of a [`Consumer`](crate::model::Consumer) that take no interest in what they get. A consumer names what it
/// leaves out, so that it cannot forget what is added to traces.
#[macro_export]
macro_rules! leave_out {
    ($($method:ident)*) => {
        $crate::forward!(self, (), $($method)*);
    };
}

/// A consumer behind a reference.
impl<C: Consumer + ?Sized> Consumer for &mut C {
    forward!(self, (**self));

    fn wants_calls(&self) -> bool {
        (**self).wants_calls()
    }
}

/// A consumer in a box.
impl<C: Consumer + ?Sized> Consumer for Box<C> {
    forward!(self, (**self));

    fn wants_calls(&self) -> bool {
        (**self).wants_calls()
    }
}

/// Two consumers of one stream.
impl<A: Consumer, B: Consumer> Consumer for (A, B) {
    forward!(self, (self.0, self.1));

    fn wants_calls(&self) -> bool {
        self.0.wants_calls() || self.1.wants_calls()
    }
}

/// A consumer that takes no interest.
impl Consumer for () {
    forward!(self, ());

    fn wants_calls(&self) -> bool {
        false
    }
}
