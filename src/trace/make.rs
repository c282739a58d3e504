//! Captures to a Perfetto trace.

use std::io;

use super::capture::{Captures, Options, Report};
use super::filter::Filter;
use super::model::{Consumer, DeviceRows, Producer};
use super::perfetto::Exporter;
use super::selection::{Selection, TimeBound};
use gputrail_capture::Reader;

/// The trace could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the trace cannot be written: {source} (its first {written} bytes are whole)")]
pub struct MakeTraceError {
    /// Bytes that the file has taken as whole packets: cut there, it is a readable trace.
    pub written: u64,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// A trace that was made.
#[derive(Clone, Debug, Default)]
pub struct MadeTrace {
    /// Counts of what it was made of.
    pub report: Report,
    /// Its length.
    pub bytes: u64,
    /// The number of events that ended before [`Options::from`], which are left out.
    pub left_out: u64,
}

/// Makes one trace of `captures`, the processes of one machine, and passes the same stream to `observer`.
pub fn make_trace(
    captures: &[Reader],
    mut trace: Exporter<'_>,
    options: &Options,
    observer: &mut dyn Consumer,
) -> Result<MadeTrace, MakeTraceError> {
    let captures = Captures::new(captures, options);
    let produce = |consumer: &mut dyn Consumer| match options.from {
        None => (captures.produce(consumer), 0),
        Some(from) => {
            let selection = Selection {
                from: Some(TimeBound::Absolute(from)),
                ..Selection::default()
            };
            let mut filter = Filter::new(selection, consumer);
            let produced = captures.produce(&mut filter);
            (produced, filter.left_out())
        }
    };
    let (produced, left_out) = if options.device_rows {
        produce(&mut (DeviceRows::new(&mut trace), observer))
    } else {
        produce(&mut (&mut trace, observer))
    };
    match produced {
        Ok(report) => Ok(MadeTrace {
            report,
            bytes: trace.bytes(),
            left_out,
        }),
        Err(source) => Err(MakeTraceError {
            written: trace.written(),
            source,
        }),
    }
}
