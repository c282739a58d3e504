//! Kernels of Triton's Proton in the trace events of its newer versions, in the words of PyTorch's profiler.
//!
//! Older versions write an object for each stream, with kernels that have no process. Newer ones write one process, with a thread
//! `GPU Stream 7` for each stream beside the scopes of the host, and an arrow from a scope to a kernel.

use serde_json::value::RawValue;

use super::arguments;
use super::collect::Collected;
use super::event::ChromeEvent;
use super::reworded::{Reworded, member};

/// The category and the name of arrows from scopes to kernels.
pub(super) const ARROW: (&str, &str) = ("flow", "launch->kernel");
/// The name of the thread of a stream, without its number.
const STREAM: &str = "GPU Stream ";

/// A kernel of a stream; `None` of other events.
pub(super) fn translate(
    collected: &mut Collected<'_>,
    event: &ChromeEvent<'_>,
    category: &str,
) -> Option<Reworded> {
    let args = event.args?;
    if category != "kernel" || event.pid.is_none() || !args.contains("\"call_stack\"") {
        return None;
    }
    let (pid, tid) = (collected.id(event.pid), collected.id(event.tid));
    let name = collected.threads.get(&(pid, tid))?.name.as_deref()?;
    let stream: u32 = name.strip_prefix(STREAM)?.parse().ok()?;
    collected.writers.is_host(pid);
    let mut object = String::new();
    member(&mut object, "stream", &stream.to_string());
    arguments::each(args, |argument, value: &RawValue| {
        member(&mut object, argument, value.get());
    });
    object.push('}');
    Some(Reworded {
        category: "\"kernel\"",
        arguments: Some(object),
        ..Reworded::default()
    })
}
