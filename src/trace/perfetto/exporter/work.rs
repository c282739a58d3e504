//! Device work in the trace.

use std::fmt::Write as _;
use std::io;

use super::{Exporter, calls, declared};
use crate::model;
use crate::perfetto::schema::GpuApi;
use crate::perfetto::work::{ContextApi, Detail, DetailValue, RenderStageEvent, Submission};
use gputrail_record::{Domain, Nanos};

/// The API of a context, as Perfetto names it.
pub(super) fn context_api(domain: Domain) -> ContextApi {
    match calls::gpu_api(domain) {
        Some(GpuApi::OpenCl) => ContextApi::OpenCl,
        Some(GpuApi::Cuda) => ContextApi::Cuda,
        Some(GpuApi::Hip) => ContextApi::Hip,
        _ => ContextApi::Undefined,
    }
}

impl Exporter<'_> {
    #[inline]
    pub(super) fn write_work(&mut self, work: &model::Work<'_>) -> io::Result<()> {
        let (Some(start), Some(event)) = (work.start, work.event) else {
            return Ok(());
        };
        let device = self.place(work.process)?.device;
        let queue = *declared(self.queues.get(work.queue.0 as usize))?;
        let mut details = Details::default();
        details.number("bytes", (work.bytes > 0).then_some(work.bytes as i64));
        details.number("status", (work.status != 0).then_some(work.status.into()));
        if let Some(samples) = work.samples {
            details.number("samples", Some(samples.samples as i64));
            let dropped = samples.dropped as i64;
            details.number("samples dropped", (dropped > 0).then_some(dropped));
            if !samples.leading.is_empty() {
                details.text("waves", &samples.leading);
            }
        }
        // Older versions of Perfetto show no arrows, and event ids only beside calls.
        let mut waits_for = String::new();
        for event in work.waits {
            let comma = if waits_for.is_empty() { "" } else { ", " };
            write!(waits_for, "{comma}{}", event.0).expect("a string can be written to");
        }
        if !work.waits.is_empty() {
            details.text("waits_for", &waits_for);
        }
        if let Some(why) = work.unfinished {
            details.text("unfinished", why);
        }
        let since_start = |time: Nanos| time.0.wrapping_sub(start.0) as i64;
        self.writer.submitted_work(
            device,
            &RenderStageEvent {
                event,
                start: start.0,
                duration: work.duration,
                queue,
                stream: work.stream,
                stage: work.stage,
                launch: work.launch,
                resources: work.resources,
                correlation: work.correlation.0,
                waits: work.waits,
                details: details.get(),
                arguments: work.arguments,
            },
            Submission {
                queued: work.queued.map(since_start),
                submitted: work.submitted.map(since_start),
            },
        )
    }
}

/// The details of one piece of work, stored without allocation.
struct Details<'a> {
    list: [Detail<'a>; 7],
    count: usize,
}

impl Default for Details<'_> {
    fn default() -> Self {
        let none = Detail {
            name: "",
            value: DetailValue::Number(0),
        };
        Details {
            list: [none; 7],
            count: 0,
        }
    }
}

impl<'a> Details<'a> {
    fn number(&mut self, name: &'a str, value: Option<i64>) {
        if let Some(value) = value {
            self.add(name, DetailValue::Number(value));
        }
    }

    fn text(&mut self, name: &'a str, text: &'a str) {
        self.add(name, DetailValue::Text(text));
    }

    fn add(&mut self, name: &'a str, value: DetailValue<'a>) {
        self.list[self.count] = Detail { name, value };
        self.count += 1;
    }

    fn get(&self) -> &[Detail<'a>] {
        &self.list[..self.count]
    }
}
