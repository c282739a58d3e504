//! Chrome trace events: what PyTorch's profiler (Kineto) writes, and any other program's JSON of this format.
//!
//! Events stand in a file in any order, and what names their processes stands behind them. So a file is read once, into
//! records that are sorted by time in bounded memory (runs go to a temporary file), and then passed on:
//!
//! 1. [`scan`] finds the events in the bytes, and contains damage; with threads, ahead of the next step ([`batches`]).
//! 2. [`collect`] makes a record of each event, and learns what the file says about processes, threads and devices.
//! 3. [`pairs`] puts begins and ends (B/E, b/e) together, [`correlations`] calls and their work, and [`arrows`] the points of arrows
//!    and their slices.
//! 4. [`emit`] passes the records on in the order of time: device work as work, calls of device APIs as calls with the work
//!    that they caused, everything else as slices, instants, counters and flows. What overlaps without nesting gets rows of
//!    its own.
//!
//! The rows of [`tables`](super::tables) are other rows: they have a process, a queue and a stage from the beginning, and their
//! times are whole. Here lanes, begins and ends come first, and what names them last; both sort with
//! [`Sorter`](gputrail_trace::sorter::Sorter). Work is found by its correlation id, in about 32 bytes each, where `tables` sorts
//! calls and work a second time.
//!
//! Memory: the budget for sorting (128 MiB), the window of the file, each name once (up to a limit), a few hundred bytes for
//! each thread, about 32 bytes for each piece of device work and each call with a correlation id, and 200 for each arrow that is
//! not between a call and its work.
//!
//! | category of an `X` | becomes |
//! |---|---|
//! | `kernel`, `gpu_memcpy`, `gpu_memset`, and gputrail's own `gpu_sync` and `gpu_work`, with a `stream`, `device` or `correlation`, or without a process | device work |
//! | `cuda_runtime`, `cuda_driver`, `hip_*`, `rocm_runtime`, `mtia_runtime`, `xpu_*`, `glow_runtime`, `privateuse1_*`, and gputrail's own `opencl`, `hip`, `hsa`, `sim` | API call |
//! | none, in a process `/device:...` of XLA's profiler | [work, or a slice of its device](xla) |
//! | none, or another one, of other writers | [what they are in PyTorch's words](reworded) |
//! | `gpu_user_annotation`, `cuda_sync`, `cuda_event`, `cuda_profiler_range`, `gpu_pm_counter`, `mtia_ccp_events`, `mtia_insight`, `collective_comm`, `xpu_scope_profiler`, `hpu_op` | slice on a row of its device, stream and category. Numbers of a `cuda_profiler_range` are also counters from its begin to its end |
//!
//! Processes with a number above 0 keep it; others get one from 0x60000000 on. A text is the name of a process if it has a number
//! in it (`[TP00] 4242`, `4242_0`), which is its id, or calls; what is left of it is the rank. Events of process -1 and of other texts
//! have rows of their own. Threads keep ids from 1 to 2^31 - 1, the largest that viewers show; others get one, and the id is their
//! name.
//!
//! | special case | result |
//! |---|---|
//! | device work with `ts` and `dur` 0; `E` without `B` | counted, not drawn |
//! | duration that is negative or over 30 days; `B` without `E` | drawn without an end |
//! | negative times | all times are moved, and the summary says by how much |
//! | a bare array without its `]`, or with a comma before it; nesting of any depth | read |
//! | several objects or arrays, one behind the other | read; of fields beside the events, the first counts, and others are counted |
//! | an object whose `baseTimeNanoseconds` is not that of the first; what is neither object nor array behind the first | named as damage |
//! | duplicate keys | the last one counts |
//! | numbers beyond 64 bits in arguments | kept as texts |
//! | bytes that are no UTF-8 | replaced, and named as damage |
//! | control characters in strings; `NaN`, `-inf`, `1.#IND` (as texts) | kept, and named as damage |
//! | an object without `traceEvents` behind another one | named as damage; a file without any event has no known format |
//! | any other damage | skipped up to the next event, or the end of the events, and named with the number of bytes |
//!
//! JSON is parsed with serde_json, event by event, from text that is checked for UTF-8 in pieces. A scanner of our own for the same
//! grammar would save a seventh: of 1117 million instructions for `v100-resnet-ns.json` (68 692 events, 15 MB; `valgrind
//! --tool=callgrind`; 1006 million since arguments are parsed once) serde_json took 390 for events and 256 for their arguments, the
//! scanner 277 and 212. sonic-rs with lazy values is slower than serde_json, as most events are short.

pub(super) mod arguments;
mod arrows;
mod ascend;
mod batches;
mod categories;
mod collect;
mod correlations;
pub(super) mod decimal;
mod devices;
mod emit;
pub(super) mod event;
mod ids;
mod intercept;
mod kernel_details;
mod pages;
mod pairs;
mod proton;
mod record;
mod repair;
mod reworded;
pub(super) mod scan;
mod strings;
#[cfg(test)]
mod tests;
mod unitrace;
mod xla;
mod xpu;

use std::io;

use super::{Allowance, InputFile, Report};
use collect::Collected;
use event::ChromeEvent;
use gputrail_trace::model::Consumer;
use scan::ScanVisitor;

pub(super) use kernel_details::is_table as is_kernel_table;

/// Passes the events of a file, with what tables of kernels say of them, to `consumer`; without such a file, the rows of the
/// tables.
pub(super) fn read(
    (trace, tables): (Option<&InputFile>, &[InputFile]),
    allowance: Allowance,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let Some(source) = trace.or(tables.first()) else {
        return Ok(());
    };
    let mut collected = Collected::new(source.name(), allowance, report);
    if let Some(trace) = trace {
        collected.is_whole = match allowance.has_threads {
            true => batches::scan_ahead(trace.reader()?, &mut collected)?,
            false => scan::scan(trace.reader()?, &mut collected)?,
        };
        collected.end_parts();
    }
    for table in tables {
        kernel_details::read(table, &mut collected)?;
    }
    collected.file = source.name();
    pairs::join(&mut collected)?;
    collected.correlations.settle(&collected.strings);
    let arrows = arrows::find(&mut collected)?;
    let table = tables.first().map_or(source.name(), InputFile::name);
    emit::emit(source, (collected, table), arrows, consumer)
}

/// Whether a JSON file has trace events: an array of this name, which may be empty, or an event.
pub(super) fn has_events(source: &InputFile) -> io::Result<bool> {
    let mut finder = EventFinder(false);
    match scan::scan(source.reader()?, &mut finder) {
        _ if finder.0 => Ok(true),
        scanned => scanned.map(|_| false),
    }
}

/// Stops at the first event.
struct EventFinder(bool);

impl EventFinder {
    fn stop(&mut self) -> io::Result<()> {
        self.0 = true;
        Err(io::ErrorKind::Interrupted.into())
    }
}

impl ScanVisitor for EventFinder {
    fn event(&mut self, _: u64, event: &ChromeEvent<'_>) -> io::Result<()> {
        match event.ph {
            Some(_) => self.stop(),
            None => Ok(()),
        }
    }

    fn field(&mut self, _: &str, _: &str) {}

    fn long_field(&mut self, _: &str, _: u64) {}

    fn damage(&mut self, _: u64, _: String, _: &'static str) {}

    fn array(&mut self) -> io::Result<()> {
        self.stop()
    }
}
