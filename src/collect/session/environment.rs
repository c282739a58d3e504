//! The variables that instruct the injected library, and the sizes that people write there and on the command line.

use super::pattern::{OutputPattern, PatternError};
use crate::recorder::{DEFAULT_BLOCK_BYTES, DEFAULT_LANES, DEFAULT_POOL_BYTES};
use crate::scope::{SCOPE_VARIABLE, Scope, ScopeError};
use gputrail_buffer::platform::environment::variable;
use gputrail_buffer::{Layout, LayoutError, Policy, UnknownPolicy};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Directory of the session that `gputrail record` opened.
pub const SESSION_VARIABLE: &str = "GPUTRAIL_SESSION";
/// Where to write a capture when there is no session: a name with `%p`, `%h`, `%q{VAR}`, `%%`.
pub const CAPTURE_VARIABLE: &str = "GPUTRAIL_CAPTURE";
/// Size of the pool when there is no session.
pub const BUFFERS_VARIABLE: &str = "GPUTRAIL_BUFFERS";
/// Size of a block when there is no session.
pub const BLOCK_VARIABLE: &str = "GPUTRAIL_BUFFER_SIZE";
/// Policy when there is no session.
pub const POLICY_VARIABLE: &str = "GPUTRAIL_POLICY";

/// The scope that the environment gives.
fn scope(text: Option<OsString>) -> Result<Scope, EnvironmentError> {
    let text = text.unwrap_or_default();
    let text = text
        .to_str()
        .ok_or_else(|| ScopeError::Key(text.to_string_lossy().into()));
    text.and_then(Scope::parse).map_err(EnvironmentError::Scope)
}

/// The recording that the environment asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestedStart {
    /// Nothing: no variable asks for anything.
    Nothing,
    /// Attach to the session in this directory, and record this much.
    Session(PathBuf, Scope),
    /// Record to a capture without a parent.
    Capture(CaptureOptions),
}

/// A recording without a parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Name of the capture.
    pub path: OutputPattern,
    /// How the pool is divided.
    pub layout: Layout,
    /// The policy when it is full.
    pub policy: Policy,
    /// The scope.
    pub scope: Scope,
}

/// A malformed variable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// The session's directory is no absolute path.
    #[error(
        "{SESSION_VARIABLE}={0:?}: expected the absolute path of a directory, as `gputrail record` sets it"
    )]
    Session(OsString),
    /// Not a file name.
    #[error("{CAPTURE_VARIABLE}: {0}")]
    Capture(PatternError),
    /// Not a size.
    #[error("{0}: {1}")]
    Size(&'static str, SizeError),
    /// Sizes that do not go together.
    #[error("{BUFFERS_VARIABLE}, {BLOCK_VARIABLE}: {0}")]
    Layout(LayoutError),
    /// Not a scope.
    #[error("{SCOPE_VARIABLE}: {0}")]
    Scope(ScopeError),
    /// Not a policy.
    #[error("{POLICY_VARIABLE}: {0}")]
    Policy(UnknownPolicy),
}

impl RequestedStart {
    /// Reads the environment of this process.
    pub fn from_environment() -> Result<RequestedStart, EnvironmentError> {
        RequestedStart::from_variables(&variable)
    }

    /// Reads variables through `lookup`. An empty variable counts as not set.
    pub fn from_variables(
        lookup: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<RequestedStart, EnvironmentError> {
        let variable = |name: &str| lookup(name).filter(|value| !value.is_empty());
        if let Some(directory) = variable(SESSION_VARIABLE) {
            let path = PathBuf::from(&directory);
            if !path.is_absolute() {
                return Err(EnvironmentError::Session(directory));
            }
            return Ok(RequestedStart::Session(
                path,
                scope(variable(SCOPE_VARIABLE))?,
            ));
        }
        let Some(path) = variable(CAPTURE_VARIABLE) else {
            return Ok(RequestedStart::Nothing);
        };
        let size = |name: &'static str, default: Size| match variable(name) {
            Some(text) => Size::parse(&text).map_err(|error| EnvironmentError::Size(name, error)),
            None => Ok(default),
        };
        let layout = Size::layout(
            size(BUFFERS_VARIABLE, Size::BUFFERS)?,
            size(BLOCK_VARIABLE, Size::BLOCK)?,
        )
        .map_err(EnvironmentError::Layout)?;
        let policy = match variable(POLICY_VARIABLE) {
            Some(text) => text
                .to_string_lossy()
                .parse()
                .map_err(EnvironmentError::Policy)?,
            None => Policy::Lossless,
        };
        let path = OutputPattern::parse(&path).map_err(EnvironmentError::Capture)?;
        Ok(RequestedStart::Capture(CaptureOptions {
            path,
            layout,
            policy,
            scope: scope(variable(SCOPE_VARIABLE))?,
        }))
    }
}

/// A number of bytes as people write it: `65536`, `64K`, `16M`, `1G`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Size(pub usize);

/// Text that is no [`Size`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a size: expected bytes such as 65536, 64K, 16M or 1G")]
pub struct SizeError(String);

impl Size {
    /// The default size of a process's pool.
    pub const BUFFERS: Size = Size(DEFAULT_POOL_BYTES);
    /// The default size of a block.
    pub const BLOCK: Size = Size(DEFAULT_BLOCK_BYTES);

    /// Reads a size.
    pub fn parse(text: &OsStr) -> Result<Size, SizeError> {
        let error = || SizeError(text.to_string_lossy().into_owned());
        let text = text.to_str().ok_or_else(error)?;
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
            "" | "B" => 0,
            "K" | "KB" | "KIB" => 10,
            "M" | "MB" | "MIB" => 20,
            "G" | "GB" | "GIB" => 30,
            _ => return Err(error()),
        };
        let number: usize = digits.parse().map_err(|_| error())?;
        number.checked_mul(1 << shift).map(Size).ok_or_else(error)
    }

    /// How a pool of `buffers` in blocks of `block` is divided.
    pub fn layout(buffers: Size, block: Size) -> Result<Layout, LayoutError> {
        Layout::new(buffers.0, block.0, DEFAULT_LANES)
    }
}

impl std::str::FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Size, SizeError> {
        Size::parse(text.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(variables: &[(&str, &str)]) -> Result<RequestedStart, EnvironmentError> {
        RequestedStart::from_variables(&|name| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value.into())
        })
    }

    #[test]
    fn nothing_set_asks_for_nothing() {
        assert_eq!(start(&[]), Ok(RequestedStart::Nothing));
        assert_eq!(
            start(&[(SESSION_VARIABLE, ""), (CAPTURE_VARIABLE, "")]),
            Ok(RequestedStart::Nothing)
        );
    }

    #[test]
    fn a_session_goes_before_a_capture() {
        let both = start(&[(SESSION_VARIABLE, "/run/x"), (CAPTURE_VARIABLE, "%p")]);
        assert_eq!(
            both,
            Ok(RequestedStart::Session("/run/x".into(), Scope::default()))
        );
    }

    #[test]
    fn a_capture_takes_its_sizes_from_the_environment() {
        let Ok(RequestedStart::Capture(options)) = start(&[
            (CAPTURE_VARIABLE, "run-%p.gputrail"),
            (BUFFERS_VARIABLE, "1M"),
            (BLOCK_VARIABLE, "8K"),
            (POLICY_VARIABLE, "discard"),
        ]) else {
            panic!("no capture");
        };
        assert_eq!(options.layout.blocks(), 128);
        assert_eq!(options.layout.block_bytes(), 8192);
        assert_eq!(options.policy, Policy::Discard);
    }

    #[test]
    fn a_damaged_variable_is_named_with_what_was_expected() {
        for (variables, name) in [
            (vec![(SESSION_VARIABLE, "run/x")], SESSION_VARIABLE),
            (vec![(CAPTURE_VARIABLE, "%z")], CAPTURE_VARIABLE),
            (
                vec![(CAPTURE_VARIABLE, "x"), (BUFFERS_VARIABLE, "lots")],
                BUFFERS_VARIABLE,
            ),
            (
                vec![(CAPTURE_VARIABLE, "x"), (BLOCK_VARIABLE, "5")],
                BLOCK_VARIABLE,
            ),
            (
                vec![(CAPTURE_VARIABLE, "x"), (POLICY_VARIABLE, "maybe")],
                POLICY_VARIABLE,
            ),
        ] {
            let message = start(&variables).unwrap_err().to_string();
            assert!(
                message.contains(name) && message.contains("expected"),
                "{message}"
            );
        }
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("4096", 4096),
            ("64K", 65536),
            ("64k", 65536),
            ("16MiB", 16 << 20),
            ("1G", 1 << 30),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)));
        }
        for text in ["", "K", "-1", "1.5M", "1T", "99999999999G", "1M1"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
