//! Events of other writers of trace events, in the words of PyTorch's profiler.
//!
//! XLA, Huawei's CANN, Intel's unitrace, the intercept layer for OpenCL and Triton's Proton write device work under categories of
//! their own, or without one. Each has a module that recognises its events by what they hold, and gives them the category and the
//! arguments by which work, calls and rows of devices are told apart.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::ascend::{self, AscendState};
use super::collect::Collected;
use super::event::{ChromeEvent, text};
use super::ids::Id;
use super::intercept::{self, InterceptState};
use super::unitrace::{self, UnitraceState};
use super::{proton, xla, xpu};

/// Arguments of work by which the name of its queue and the times of its queueing are passed on.
pub(super) const QUEUE_NAME: &str = "queue name";
pub(super) const QUEUED_AT: &str = "queued (us)";
pub(super) const SUBMITTED_AT: &str = "submitted (us)";

/// Most processes whose rows are those of the host beside their work.
const MAX_HOSTS: usize = 1 << 16;

/// An event in other words. Fields that are none stay as they are.
#[derive(Debug, Default)]
pub(super) struct Reworded {
    /// The category, as JSON.
    pub category: &'static str,
    pub arguments: Option<String>,
    pub pid: Option<String>,
    /// The name, as JSON.
    pub name: Option<String>,
}

/// The outcome for an event of one of these writers.
#[derive(Debug)]
pub(super) enum Rewording {
    /// An event in other words.
    Own(Reworded),
    /// A part of an event that comes later in the file.
    Part,
}

impl Reworded {
    /// The event in these words.
    pub fn of<'e>(&'e self, event: &'e ChromeEvent<'_>) -> ChromeEvent<'e> {
        ChromeEvent {
            ph: event.ph,
            name: self.name.as_deref().or(event.name),
            cat: Some(self.category),
            pid: self.pid.as_deref().or(event.pid),
            tid: event.tid,
            ts: event.ts,
            dur: event.dur,
            args: self.arguments.as_deref().or(event.args),
            id: event.id,
            id2: event.id2,
            scope: event.scope,
            bp: event.bp,
            s: event.s,
            bind_id: event.bind_id,
            flow_in: event.flow_in,
            flow_out: event.flow_out,
            further: event.further.clone(),
        }
    }
}

/// Facts learned about the writers of a file.
#[derive(Debug, Default)]
pub(super) struct WriterState {
    pub ascend: AscendState,
    pub unitrace: UnitraceState,
    pub intercept: InterceptState,
    /// Whether PyTorch has run on an XPU.
    pub has_xpu: bool,
    /// Processes whose threads are those of the host, though work stands beside them.
    hosts: BTreeSet<Id>,
    /// Numbers of NPUs that no metadata names.
    pub npus: BTreeSet<u32>,
}

impl WriterState {
    /// Whether work was given to its devices through an API that has no name here.
    pub fn has_own_api(&self) -> bool {
        let has_npus = self.ascend.has_tasks || !self.npus.is_empty();
        has_npus || self.has_xpu || !self.unitrace.devices.is_empty()
    }

    /// A process has threads of the host, though work stands beside them.
    pub fn is_host(&mut self, pid: Id) {
        if self.hosts.len() < MAX_HOSTS {
            self.hosts.insert(pid);
        }
    }

    /// Whether the threads of a process are those of the host, though work stands beside them.
    pub fn has_host(&self, pid: Id) -> bool {
        self.hosts.contains(&pid) || self.intercept.is_of(pid)
    }
}

/// A slice of one of these writers; `None` of others.
pub(super) fn reword(
    collected: &mut Collected<'_>,
    event: &ChromeEvent<'_>,
    offset: u64,
) -> Option<Rewording> {
    let Some(category) = event.cat else {
        return intercept::translate(collected, event, offset).or_else(|| {
            let own = xla::translate(collected, event);
            let own = own.or_else(|| ascend::translate(collected, event));
            own.map(Rewording::Own)
        });
    };
    let own = match &*text(category) {
        category @ ("gpu_op" | "cpu_op") if collected.writers.unitrace.has_names => {
            unitrace::translate(collected, event, category)
        }
        category @ ("kernel" | "gpu_memcpy" | "gpu_memset") => xpu::translate(collected, event)
            .or_else(|| proton::translate(collected, event, category)),
        _ => None,
    };
    own.map(Rewording::Own)
}

/// Adds a member to an object of JSON that has no end yet.
pub(super) fn member(object: &mut String, name: &str, value: &str) {
    object.push(if object.is_empty() { '{' } else { ',' });
    // A text can always be written.
    let _ = write!(object, "{}:{value}", quoted(name));
}

/// A text as JSON.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
