//! Work of Intel's GPUs in the trace events of PyTorch's profiler: its arguments have the times at which it was appended to a list
//! of commands and submitted, and the category of device work as on other GPUs.

use serde_json::value::RawValue;

use super::arguments;
use super::collect::Collected;
use super::event::{ChromeEvent, text};
use super::reworded::{QUEUED_AT, Reworded, SUBMITTED_AT, member, quoted};

/// Work with the times of its queueing; `None` of other work.
pub(super) fn translate(
    collected: &mut Collected<'_>,
    event: &ChromeEvent<'_>,
) -> Option<Reworded> {
    let args = event.args?;
    if !args.contains("\"l0 queue\"") {
        return None;
    }
    collected.writers.has_xpu = true;
    // Older versions write times of another clock, without what follows from them.
    if !args.contains("\"submitted_rel_to_start\"") {
        return None;
    }
    let mut object = String::new();
    arguments::each(args, |argument, value: &RawValue| {
        let name = match argument {
            "appended" => QUEUED_AT,
            "submitted" => SUBMITTED_AT,
            other => other,
        };
        let value = match name {
            QUEUED_AT | SUBMITTED_AT => quoted(text(value.get()).trim()),
            _ => value.get().to_owned(),
        };
        member(&mut object, name, &value);
    });
    object.push('}');
    Some(Reworded {
        category: match event.cat.map(text).as_deref() {
            Some("gpu_memcpy") => "\"gpu_memcpy\"",
            Some("gpu_memset") => "\"gpu_memset\"",
            _ => "\"kernel\"",
        },
        arguments: Some(object),
        ..Reworded::default()
    })
}
