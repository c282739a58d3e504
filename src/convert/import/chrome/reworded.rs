//! Events of other writers of trace events, in the words of PyTorch's profiler.
//!
//! XLA, Huawei's CANN, Intel's unitrace and the intercept layer for OpenCL write device work under categories of their own, or
//! without one. Each has a module that recognises its events by what they hold, and gives them the category and the arguments by
//! which work, calls and rows of devices are told apart.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::ascend::{self, AscendState};
use super::collect::Collected;
use super::event::ChromeEvent;
use super::xla;

/// An event in other words. Fields that are none stay as they are.
#[derive(Debug, Default)]
pub(super) struct Reworded {
    /// The category, as JSON.
    pub category: &'static str,
    pub arguments: Option<String>,
    pub pid: Option<String>,
}

impl Reworded {
    /// The event in these words.
    pub fn of<'e>(&'e self, event: &'e ChromeEvent<'_>) -> ChromeEvent<'e> {
        ChromeEvent {
            ph: event.ph,
            name: event.name,
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

/// What has been learned about the writers of a file.
#[derive(Debug, Default)]
pub(super) struct WriterState {
    pub ascend: AscendState,
    /// Numbers of NPUs that no metadata names.
    pub npus: BTreeSet<u32>,
}

impl WriterState {
    /// Whether work was given to its devices through an API that has no name here.
    pub fn has_own_api(&self) -> bool {
        self.ascend.has_tasks || !self.npus.is_empty()
    }
}

/// A slice of one of these writers; `None` of others.
pub(super) fn reword(collected: &mut Collected<'_>, event: &ChromeEvent<'_>) -> Option<Reworded> {
    match event.cat {
        None => xla::translate(collected, event).or_else(|| ascend::translate(collected, event)),
        Some(_) => None,
    }
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
