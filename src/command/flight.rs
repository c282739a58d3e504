//! `gputrail record --flight-recorder`: how much is kept, the triggers that have it written out, and the traces that
//! are made of these dumps while the program goes on.

use crate::cli::contents::Contents;
use crate::cli::record::{Keep, Record};
use crate::figures::{count, time};
use crate::messages::say;
use crate::output::Output;
use crate::trace::{Made, TraceOrder};
use gputrail_collect::session::{Flight, FlightDump};
use gputrail_record::Nanos;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The flight recorder that the command line requests.
pub struct Asked<'a> {
    /// The settings of the session.
    pub flight: Flight,
    /// The maker of traces from its dumps.
    pub traces: Traces<'a>,
}

/// Makes traces of dumps.
pub struct Traces<'a> {
    dumps: Receiver<FlightDump>,
    output: &'a Output,
    /// A private directory on the output's disk.
    workshop: &'a Path,
    contents: Contents,
    keep: Option<Duration>,
    quiet: bool,
}

impl<'a> Asked<'a> {
    /// The flight recorder that `arguments` request, if any.
    pub fn of(arguments: &Record, output: &'a Output, workshop: &'a Path) -> Option<Asked<'a>> {
        let (sender, dumps) = channel();
        let keep = match arguments.flight_recorder? {
            Keep::Bytes(_) => None,
            Keep::Time(time) => Some(time),
        };
        Some(Asked {
            flight: Flight {
                keep,
                slow_call: arguments.slower_than,
                max_dumps: arguments.dumps,
                dumps: sender,
            },
            traces: Traces {
                dumps,
                output,
                workshop,
                contents: arguments.contents,
                keep,
                quiet: arguments.quiet,
            },
        })
    }
}

impl Traces<'_> {
    /// Makes a trace of each dump of the program `pid`, until the session has ended.
    pub fn make(self, pid: u32) {
        for dump in &self.dumps {
            if let Some(failed) = &dump.failed {
                say!("what was kept could not be written out: {failed}");
            }
            if let (Some(reach), Some(keep)) = (dump.reach, self.keep) {
                let [reach, keep] = [reach, keep]
                    .map(|span| time(Nanos(span.as_nanos().try_into().unwrap_or(u64::MAX))));
                say!(
                    "the memory reaches back {reach} of the {keep} that are asked for; --buffers makes more"
                );
            }
            if dump.captures.is_empty() {
                continue;
            }
            match self.trace(pid, &dump) {
                Ok(made) if !self.quiet => {
                    let older = match made.left_out {
                        0 => String::new(),
                        older => format!(" ({} left out)", count(older, "older event")),
                    };
                    say!("what happened last is in {}{older}", made.path.display());
                }
                Ok(_) => {}
                Err(error) => say!(
                    "the trace of dump {} could not be made: {error:#}",
                    dump.number
                ),
            }
            for capture in &dump.captures {
                // If this fails, the directory is removed at the end.
                let _ = std::fs::remove_file(capture);
            }
        }
    }

    fn trace(&self, pid: u32, dump: &FlightDump) -> anyhow::Result<Made> {
        let of_all = match self.output.is_file() {
            true => self.output.path(pid)?,
            // No file can be put beside a device or a pipe.
            false => PathBuf::from(format!("gputrail-{pid}.pftrace")),
        };
        let mut name = of_all.file_stem().unwrap_or_default().to_owned();
        name.push(format!("-flight-{}.pftrace", dump.number));
        let output = Output::beside(&of_all.with_file_name(name), "pftrace")?;
        let path = output.path(pid)?;
        let order = TraceOrder {
            captures: &dump.captures,
            output: &output,
            path: &path,
            workshop: self.workshop,
            contents: self.contents,
            captures_may_go: true,
            is_growing: false,
        };
        order.make_from(dump.since)
    }
}
