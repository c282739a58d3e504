//! The size of the same recording as JSON in Chrome's trace format.

use std::io::{self, Write};

use gputrail_record::Nanos;
use gputrail_trace::model::{Call, Consumer, Work};

/// Writes one complete event, and a comma.
fn event(
    text: &mut Vec<u8>,
    track: &str,
    name: &str,
    (start, end): (Nanos, Nanos),
    rest: std::fmt::Arguments<'_>,
) {
    let (start, took) = (start.0 as f64 / 1e3, (end.0 - start.0) as f64 / 1e3);
    writeln!(
        text,
        r#"{{"ph":"X",{track},"name":"{name}","ts":{start:.3},"dur":{took:.3}{rest}}},"#
    )
    .expect("room");
}

/// The lines of the OpenCL intercept layer for an enqueue and its kernel, in the form of that layer's sources
/// (`ChromeCallLogging`, `ChromePerformanceTimingInStages`: the times of queueing, submission and execution, as in our
/// trace). They are made from the same records; the layer was not run.
#[derive(Default)]
pub struct LayerLines {
    pub text: Vec<u8>,
    calls: u64,
    work: u64,
}

impl Consumer for LayerLines {
    gputrail_trace::leave_out!(
        clocks attributes agents process track queue counters slice end instant value counter_values samples stack
        stack_samples loss note
    );

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        let function = &call.function.name;
        if !function.contains("Enqueue") {
            return Ok(());
        }
        self.calls += 1;
        let name = format!("{function}( saxpy )");
        let track = format!(r#""pid":4242,"tid":{}"#, call.thread.0);
        let times = (call.start, call.end.unwrap_or(call.start));
        event(
            &mut self.text,
            &track,
            &name,
            times,
            format_args!(r#","args":{{"id":{}}}"#, self.calls),
        );
        Ok(())
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        let (start, end) = work.interval.expect("all work ran");
        self.work += 1;
        let id = self.work;
        let queued = Nanos(start.0 - crate::capture::QUEUED_BEFORE);
        let submitted = Nanos(start.0 - crate::capture::SUBMITTED_BEFORE);
        for (suffix, colour, times) in [
            ("Queued", "thread_state_runnable", (queued, submitted)),
            ("Submitted", "cq_build_running", (submitted, start)),
            ("Execution", "thread_state_iowait", (start, end)),
        ] {
            event(
                &mut self.text,
                &format!(r#""pid":4242,"tid":{id}.1"#),
                &format!("{} ({suffix})", work.stage.name),
                times,
                format_args!(r#","cname":"{colour}","args":{{"id":{id}}}"#),
            );
        }
        Ok(())
    }
}

/// The form of calls.
#[derive(Copy, Clone, PartialEq)]
pub enum Calls {
    /// An event at the begin and one at the end, as in our traces.
    BeginsAndEnds,
    /// One event at the end, as most writers of such files do.
    Complete,
}

/// A whole trace with the same facts about each event as ours, in the form of PyTorch's profiler: a correlation id for
/// each event, and for kernels the launch, the queue, and the times of queueing and submission. It has no arrows, since
/// the version of trace processor that loads it draws none for ours.
pub struct Chrome {
    text: Vec<u8>,
    of_calls: Calls,
    calls: u64,
    work: u64,
}

impl Chrome {
    pub fn new(of_calls: Calls) -> Chrome {
        Chrome {
            text: b"[\n".to_vec(),
            of_calls,
            calls: 0,
            work: 0,
        }
    }

    /// The whole file.
    pub fn finish(mut self) -> Vec<u8> {
        self.text.truncate(self.text.len() - 2);
        self.text.extend_from_slice(b"\n]\n");
        self.text
    }
}

impl Consumer for Chrome {
    gputrail_trace::leave_out!(
        clocks attributes agents process track queue counters slice end instant value counter_values samples stack
        stack_samples loss note
    );

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        self.calls += 1;
        let track = format!(r#""cat":"opencl","pid":4242,"tid":{}"#, call.thread.0);
        let (start, end) = (call.start, call.end.unwrap_or(call.start));
        let arguments = format!(r#","args":{{"correlation":{}}}"#, self.calls);
        if self.of_calls == Calls::Complete {
            let rest = format_args!("{arguments}");
            let name = &call.function.name;
            event(&mut self.text, &track, name, (start, end), rest);
            return Ok(());
        }
        let (name, start, end) = (
            &call.function.name,
            start.0 as f64 / 1e3,
            end.0 as f64 / 1e3,
        );
        writeln!(
            self.text,
            "{{\"ph\":\"B\",{track},\"name\":\"{name}\",\"ts\":{start:.3}{arguments}}},\n\
             {{\"ph\":\"E\",{track},\"ts\":{end:.3}}},"
        )
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        self.work += 1;
        let launch = work.launch.expect("all work is kernels");
        event(
            &mut self.text,
            r#""cat":"kernel","pid":1,"tid":1"#,
            work.stage.name,
            work.interval.expect("all work ran"),
            format_args!(
                r#","args":{{"correlation":{},"device":0,"context":1,"queue":0,"queued":-{},"submit":-{},"grid":{:?},"block":{:?}}}"#,
                5 * self.work,
                crate::capture::QUEUED_BEFORE,
                crate::capture::SUBMITTED_BEFORE,
                launch.grid,
                launch.workgroup,
            ),
        );
        Ok(())
    }
}
