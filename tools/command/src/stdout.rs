//! What a command was asked for goes to standard output.

use crate::Failure;
use std::io::{ErrorKind, Write};

/// Prints. Where nobody reads any more, the rest is not missed.
pub fn print(text: &str) -> Result<(), Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("standard output").into())
        }
        _ => Ok(()),
    }
}
