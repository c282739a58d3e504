//! Captures to a Perfetto trace.

use std::io;

use super::capture::{Captures, Options, Report};
use super::model::{Consumer, Producer};
use super::perfetto::Exporter;
use crate::capture::Reader;

/// The trace could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the trace cannot be written: {source} (its first {written} bytes are whole)")]
pub struct ConvertError {
    /// Bytes that the file has taken as whole packets: cut there, it is a readable trace.
    pub written: u64,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// A trace that was made.
#[derive(Clone, Debug, Default)]
pub struct Converted {
    /// Counts of what it was made of.
    pub report: Report,
    /// Its length.
    pub bytes: u64,
}

/// Makes one trace of `captures`, the processes of one machine, and passes the same stream to `observer`.
pub fn convert(
    captures: &[Reader],
    mut trace: Exporter<'_>,
    options: &Options,
    observer: &mut dyn Consumer,
) -> Result<Converted, ConvertError> {
    match Captures::new(captures, options).produce(&mut (&mut trace, observer)) {
        Ok(report) => Ok(Converted {
            report,
            bytes: trace.bytes(),
        }),
        Err(source) => Err(ConvertError {
            written: trace.written(),
            source,
        }),
    }
}
