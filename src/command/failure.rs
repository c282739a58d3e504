//! Failures of commands: their exit codes and reasons.

/// Exit code of a failure of gputrail itself.
pub const FAILED: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;
/// Exit code when input was damaged, and everything else was read.
pub const DAMAGED: u8 = 1;

/// Exit code when a condition of `gputrail diff --fail-if` holds.
pub const CHANGED: u8 = 3;

/// The reason why a command ends without a result.
#[derive(Debug)]
pub struct Failure {
    /// Our exit code.
    pub code: u8,
    /// The reason.
    pub error: anyhow::Error,
}

impl Failure {
    /// The program to record does not exist.
    pub fn not_found(error: anyhow::Error) -> Failure {
        Failure {
            code: NOT_FOUND,
            error,
        }
    }

    /// The program to record cannot be executed.
    pub fn not_executable(error: anyhow::Error) -> Failure {
        Failure {
            code: NOT_EXECUTABLE,
            error,
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure {
            code: FAILED,
            error,
        }
    }
}

/// An error and its causes. Some errors include the text of their cause: then it is not repeated.
pub fn in_words(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow::anyhow!("no space")
            .context("run.pftrace: no space")
            .context("cannot write");
        assert_eq!(in_words(&error), "cannot write: run.pftrace: no space");
    }
}
