//! The stream of an import as lines, for tests of readers.

use std::io;

use gputrail_record::Nanos;
use gputrail_trace::model::{
    Call, Consumer, CounterIndex, CounterValue, Instant, Process, ProcessIndex, Queue, QueueIndex,
    Slice, Track, TrackIndex, Value, Work,
};

/// A stream as lines.
#[derive(Default)]
pub(super) struct StreamLog {
    pub queues: Vec<String>,
    pub tracks: Vec<String>,
    pub lines: Vec<String>,
}

impl StreamLog {
    /// The lines that begin with `word`, without it.
    pub fn of(&self, word: &str) -> Vec<&str> {
        let lines = self.lines.iter();
        lines.filter_map(|line| line.strip_prefix(word)).collect()
    }
}

impl Consumer for StreamLog {
    gputrail_trace::leave_out!(clocks attributes agents counters end samples stack stack_samples loss note);

    fn process(&mut self, _: ProcessIndex, process: &Process<'_>) -> io::Result<()> {
        self.lines
            .push(format!("process {} {}", process.pid, process.name));
        Ok(())
    }

    fn track(&mut self, _: TrackIndex, track: &Track<'_>) -> io::Result<()> {
        self.tracks.push(track.name.to_owned());
        Ok(())
    }

    fn queue(&mut self, _: QueueIndex, queue: &Queue<'_>) -> io::Result<()> {
        self.queues.push(queue.name.to_owned());
        Ok(())
    }

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        let work: Vec<u64> = call.submitted.iter().map(|event| event.0 & 0xff).collect();
        self.lines.push(format!(
            "call {} {}..{} submitted {work:?}",
            call.function.name,
            call.start,
            call.end.unwrap()
        ));
        Ok(())
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        self.lines.push(format!(
            "slice {}: {} {}..{}",
            self.tracks[slice.track.0 as usize],
            slice.name,
            slice.start,
            slice.end.map_or(0, |end| end.0)
        ));
        Ok(())
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        self.lines
            .push(format!("instant {} {}", instant.name, instant.time));
        Ok(())
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        let interval = work
            .interval
            .map_or("-".to_owned(), |(start, end)| format!("{start}..{end}"));
        let arguments = work.arguments.iter().map(|one| match one.value {
            Value::Text(text) => format!(" {}={text}", one.name),
            Value::Uint(value) => format!(" {}={value}", one.name),
            Value::Double(value) => format!(" {}={value}", one.name),
            other => format!(" {}={other:?}", one.name),
        });
        let arguments: String = arguments.collect();
        let resources = work.resources;
        let registers = [
            (resources.accumulation_registers, "accumulation"),
            (resources.scalar_registers, "scalar"),
        ];
        let registers: String = registers
            .into_iter()
            .filter(|(count, _)| *count != 0)
            .map(|(count, what)| format!(" {count} {what} registers"))
            .collect();
        self.lines.push(format!(
            "work {}: {} {interval}{registers}{arguments}",
            self.queues[work.queue.0 as usize], work.stage.name
        ));
        Ok(())
    }

    fn counter_values(
        &mut self,
        block: CounterIndex,
        time: Nanos,
        values: &[CounterValue],
    ) -> io::Result<()> {
        self.lines
            .push(format!("counter {} {time} {values:?}", block.0));
        Ok(())
    }

    fn value(&mut self, track: TrackIndex, time: Nanos, value: CounterValue) -> io::Result<()> {
        let name = &self.tracks[track.0 as usize];
        self.lines.push(format!("value {name} {time} {value:?}"));
        Ok(())
    }
}
