//! Output of commands on standard output.

use crate::Failure;
use std::io::{ErrorKind, Write};

/// Prints `text`. If the reader has closed the pipe, the rest is dropped silently.
pub fn print(text: &str) -> Result<(), Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("standard output").into())
        }
        _ => Ok(()),
    }
}
