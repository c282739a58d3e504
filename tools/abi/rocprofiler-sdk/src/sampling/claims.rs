//! Configurations of other processes, as a driver would tell them.
//!
//! A process that samples a processor holds a socket in Linux's abstract namespace, whose name has the processor and the
//! configuration. The names of all sockets are in `/proc/net/unix`. A socket ends with its process, however that ends.

use crate::result::Answer;
use gputrail_record::{Agent, AgentId, AgentKind, SamplingMethod, SamplingUnit};
use gputrail_rocprofiler::Status;
use gputrail_tool::describe;
use gputrail_tool::sampling::Request;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A configuration that other processes see, until this is dropped.
pub struct Claim(#[allow(dead_code, reason = "it is there for other processes")] UnixDatagram);

/// The begin of the names of sockets for an agent that processes share; none of one that they do not.
fn prefix(agent: AgentId) -> Option<String> {
    let described = describe::<Agent>(agent).ok()?;
    // Each process has simulated GPUs of its own.
    if described.kind == AgentKind::SIMULATED {
        return None;
    }
    let text = |id| gputrail_tool::string(id).unwrap_or_default();
    let name = format!("{} {}", text(described.platform), text(described.name));
    // The system writes names of a word each.
    let word = |one: char| {
        if one.is_ascii_alphanumeric() {
            one
        } else {
            '-'
        }
    };
    let name: String = name.chars().take(48).map(word).collect();
    // SAFETY: asks for a number.
    let user = unsafe { libc::geteuid() };
    Some(format!("gputrail-pc-sampling/{user}/{name}/"))
}

/// The rest of the name of a socket.
fn suffix(request: Request, process: u32) -> String {
    let (method, unit) = (request.method.0, request.unit.0);
    format!("{method}/{unit}/{}/{process}", request.interval)
}

/// The configuration in the rest of a name, and the process.
fn parsed(suffix: &str) -> Option<(Request, u32)> {
    let mut parts = suffix.split('/');
    let request = Request {
        method: SamplingMethod(parts.next()?.parse().ok()?),
        unit: SamplingUnit(parts.next()?.parse().ok()?),
        interval: parts.next()?.parse().ok()?,
    };
    let process = parts.next()?.parse().ok()?;
    parts.next().is_none().then_some((request, process))
}

/// The configuration of an agent that another process holds.
pub fn elsewhere(agent: AgentId) -> Option<Request> {
    let prefix = prefix(agent)?;
    let sockets = std::fs::read_to_string("/proc/net/unix").ok()?;
    let mut others = sockets.lines().filter_map(|line| {
        let name = line.rsplit(' ').next()?.strip_prefix('@')?;
        let (request, process) = parsed(name.strip_prefix(&prefix)?)?;
        (process != std::process::id()).then_some(request)
    });
    others.next()
}

/// Tells other processes of a configuration; nothing is told of an agent that they do not share, or where the system has no such
/// sockets.
///
/// # Errors
///
/// `NOT_AVAILABLE` if another process holds another configuration.
pub fn claim(agent: AgentId, request: Request) -> Answer<Option<Claim>> {
    let Some(prefix) = prefix(agent) else {
        return Ok(None);
    };
    let name = prefix + &suffix(request, std::process::id());
    let bound =
        SocketAddr::from_abstract_name(name).and_then(|address| UnixDatagram::bind_addr(&address));
    // Looked for when the own one is seen: of two processes at a time, one at least sees the other.
    match elsewhere(agent) {
        Some(other) if other != request => Err(Status::ERROR_NOT_AVAILABLE),
        _ => Ok(bound.ok().map(Claim)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_can_be_read_from_the_name_of_its_socket() {
        let request = Request {
            method: SamplingMethod::HOST_TRAP,
            unit: SamplingUnit::TIME,
            interval: 1_000_000,
        };
        let name = suffix(request, 7);
        assert_eq!(name, "2/3/1000000/7");
        assert_eq!(parsed(&name), Some((request, 7)));
        for wrong in ["", "2/3/1000000", "2/3/x/7", "2/3/1/7/8", "300/3/1/7"] {
            assert_eq!(parsed(wrong), None);
        }
    }
}
