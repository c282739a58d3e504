//! Counters, as the libraries look at them that translate them.
//!
//! | a library has | here |
//! |---|---|
//! | counters and metrics of devices | [`counters`]; [`define`] adds metrics |
//! | counters that are chosen for each kernel (event groups of a context, dispatch counting, callbacks on dispatches) | [`Engine`], [`Way::Kernels`] |
//! | counters of devices all the time (event groups of a device, device counting) | [`Engine`], [`Way::Always`] |
//! | values | [`name_of`] the counter, number of the [`instance`] |
//!
//! Sums between a start and a stop, pools of entries and sessions of passes are gputrail's own
//! ([`gputrail_tool::counting`]).

mod engine;

pub use engine::{Counts, Engine, Way, Ways};
pub use gputrail_interface::c::CounterSetHandle;

use crate::lock;
use gputrail_record::{ALL_INSTANCES, AgentId, CounterValue, Nanos, StringId};
use gputrail_tool::counting::{self, Counter};
use gputrail_tool::{Error, Status, string};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::{Arc, LazyLock, Mutex};

/// The longest period that devices are read at: one hour. A period ends when it is read, too.
pub const LONGEST_PERIOD: Nanos = Nanos(3_600_000_000_000);

/// The counters and metrics of an agent: none of one whose runtime has none.
///
/// # Errors
///
/// An error of [`counting::counters`].
pub fn counters(agent: AgentId) -> Result<Vec<Counter>, Error> {
    match counting::counters(agent) {
        Err(error) if error.status == Status::NO_SUCH_AGENT => Ok(Vec::new()),
        counters => counters,
    }
}

/// The name of a counter in records.
pub fn name_of(counter: StringId) -> Option<Arc<str>> {
    static NAMES: LazyLock<Mutex<HashMap<StringId, Arc<str>>>> = LazyLock::new(Mutex::default);
    if let Some(known) = lock(&NAMES).get(&counter) {
        return Some(known.clone());
    }
    // Outside of the lock, since it calls the library.
    let name: Arc<str> = string(counter)?.into();
    lock(&NAMES).insert(counter, name.clone());
    Some(name)
}

/// The number of the instance that a value is of; all of them together are the first.
pub fn instance(value: &CounterValue) -> u32 {
    match value.instance {
        ALL_INSTANCES => 0,
        instance => instance,
    }
}

/// Adds the metrics of definitions, as ROCProfiler's files have them, to those of all agents. Returns the number of those that were
/// refused, which are told on the standard error.
///
/// # Errors
///
/// An error of [`counting::add`]; `OUT_OF_MEMORY` if there is no place for the definitions.
pub fn define(definitions: &str) -> Result<u32, Error> {
    let file = in_memory(definitions).map_err(|error| Error {
        status: Status::OUT_OF_MEMORY,
        text: error.to_string(),
    })?;
    counting::add(&format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// A text as a file: gputrail reads files.
fn in_memory(text: &str) -> io::Result<File> {
    // SAFETY: a text that ends with a 0.
    let file = unsafe { libc::memfd_create(c"counters.xml".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a file that was opened above, which nobody else has.
    let mut file = unsafe { File::from_raw_fd(file) };
    file.write_all(text.as_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::read_to_string;

    #[test]
    fn definitions_are_read_by_the_path_of_their_file() {
        let file = in_memory("<global/>").unwrap();
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        assert_eq!(read_to_string(path).unwrap(), "<global/>");
    }

    #[test]
    fn a_value_of_all_instances_counts_as_the_first_ones() {
        let mut value = CounterValue::blank();
        value.instance = 3;
        assert_eq!(instance(&value), 3);
        value.instance = ALL_INSTANCES;
        assert_eq!(instance(&value), 0);
    }
}
