//! CLPerfMarker, the markers of AMD's APP Profiler for OpenCL: four functions, whose statuses are [`MarkerStatus`].
//!
//! A marker outside of others may have a group, which becomes a branch below its thread; markers inside of it are part of
//! that branch, whatever group they name. On request ([`CLPERFMARKER_VARIABLE`]) the markers are also kept until
//! [`finalize`], and written to the file that the profiler's documentation describes. A program that does not call that, as
//! ImageMagick, has the file when it ends.

use super::markers;
use core::ffi::{c_char, c_int};
use gputrail_buffer::clock::SystemClock;
use gputrail_buffer::platform::environment::variable;
use gputrail_buffer::platform::inside::{Uncancelled, contain, message};
use gputrail_buffer::platform::sync::{OnceBox, PerProcess};
use gputrail_buffer::platform::system;
use gputrail_collect::loading::markers::{CLPERFMARKER_EXTENSION, CLPERFMARKER_VARIABLE};
use gputrail_collect::marker::{CText, MarkerDomain, MarkerEvent, MarkerText, Registry};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// The first line of the file.
pub const FIRST_LINE: &str = "=====Perfmarker Output=====";
/// The group of markers that name none.
pub const DEFAULT_GROUP: &str = "Default";
/// A space in a name.
pub const SPACE: &str = "&nbsp;";
/// Maximum size of the file.
const MAX_BYTES: usize = 256 << 20;

/// The statuses that the functions return.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum MarkerStatus {
    /// `AP_SUCCESS`
    Success = 0,
    /// `AP_UNINITIALIZED_PERF_MARKER`
    Uninitialized = -1,
    /// `AP_FINALIZED_PERF_MARKER`
    Finalized = -2,
    /// `AP_UNBALANCED_MARKER`
    Unbalanced = -3,
    /// `AP_APP_PROFILER_NOT_DETECTED`
    NotDetected = -4,
    /// `AP_NULL_MARKER_NAME`
    NullName = -5,
    /// `AP_INTERNAL_ERROR`
    Internal = -6,
    /// `AP_OUT_OF_MEMORY`
    OutOfMemory = -7,
    /// `AP_FAILED_TO_OPEN_OUTPUT_FILE`
    OutputFile = -8,
}

const UNINITIALIZED: u32 = 0;
const INITIALIZED: u32 = 1;
const FINALIZED: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(UNINITIALIZED);
static DOMAIN: MarkerDomain = MarkerDomain::built_in("CLPerfMarker", 2);
/// The domains of groups.
static GROUPS: Registry<Box<str>, MarkerDomain> = Registry::new();
/// The lines of the file, by thread.
static LINES: PerProcess<ThreadLines> = PerProcess::new();

#[derive(Default)]
struct ThreadLines {
    threads: BTreeMap<u32, (u64, String)>,
    bytes: usize,
    /// Whether a line had no place: none follows.
    is_full: bool,
}

thread_local! {
    /// The number of markers that are open on this thread.
    static LEVEL: Cell<u32> = const { Cell::new(0) };
    /// The group of the outermost of them.
    static GROUP: Cell<&'static MarkerDomain> = const { Cell::new(&DOMAIN) };
}

fn answer(work: impl FnOnce() -> MarkerStatus) -> c_int {
    let mut status = MarkerStatus::Internal;
    contain(|| status = work());
    status as c_int
}

/// Begins to take markers, if the process is recorded.
pub fn initialize() -> c_int {
    answer(|| {
        let _uncancelled = Uncancelled::begin();
        if STATE.load(Ordering::Acquire) == FINALIZED {
            return MarkerStatus::Finalized;
        }
        if !markers::attach() {
            return MarkerStatus::NotDetected;
        }
        let (from, to) = (UNINITIALIZED, INITIALIZED);
        let begun = STATE.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        if begun.is_ok() && base().is_some() {
            // SAFETY: a function of this library, which is never unloaded.
            unsafe { libc::atexit(at_exit) };
        }
        MarkerStatus::Success
    })
}

/// The program ends. A forked child that has no markers of its own leaves the file to its parent.
extern "C" fn at_exit() {
    let has_lines = || !LINES.lock().threads.is_empty();
    contain(|| {
        if STATE.load(Ordering::Acquire) == INITIALIZED
            && has_lines()
            && finalize() == MarkerStatus::OutputFile as c_int
        {
            let base = base().map(|base| base.to_string_lossy());
            message(format_args!(
                "cannot write the markers of CLPerfMarker to {}.{CLPERFMARKER_EXTENSION}",
                base.unwrap_or_default()
            ));
        }
    });
}

/// The status of a begin or an end before it is looked at.
fn ready() -> Result<(), MarkerStatus> {
    match STATE.load(Ordering::Acquire) {
        UNINITIALIZED => Err(MarkerStatus::Uninitialized),
        FINALIZED => Err(MarkerStatus::Finalized),
        _ => Ok(()),
    }
}

/// Begins a marker on the calling thread.
///
/// # Safety
///
/// Both texts are null or end with a zero, and stay as they are during the call.
pub unsafe fn begin(name: *const c_char, group: *const c_char) -> c_int {
    answer(|| {
        if let Err(status) = ready() {
            return status;
        }
        let Some(name) = NonNull::new(name.cast_mut()) else {
            return MarkerStatus::NullName;
        };
        // SAFETY: `name` is not null, so that it ends with a zero, and the program keeps it during the call.
        let name = MarkerText::C(unsafe { CText::new(name) });
        // SAFETY: a `group` that is not null ends with a zero, and the program keeps it during the call.
        let group = NonNull::new(group.cast_mut()).map(|group| unsafe { CText::new(group) });
        let level = LEVEL.get();
        if level == 0 {
            GROUP.set(group.map_or(&DOMAIN, domain_of));
        }
        let kept = keep(|| {
            let group = group.map(|group| group.to_c_str().to_string_lossy().into_owned());
            begin_line(&name.read(), group.as_deref().unwrap_or_default(), now())
        });
        LEVEL.set(level.saturating_add(1));
        let event = MarkerEvent {
            name,
            ..MarkerEvent::default()
        };
        let _ = GROUP.get().push(&event);
        kept
    })
}

/// Ends the innermost marker of the calling thread.
pub fn end() -> c_int {
    answer(|| {
        if let Err(status) = ready() {
            return status;
        }
        let Some(level) = LEVEL.get().checked_sub(1) else {
            DOMAIN.unbalanced_pop();
            return MarkerStatus::Unbalanced;
        };
        let kept = keep(|| end_line(now()));
        LEVEL.set(level);
        let _ = GROUP.get().pop(&MarkerEvent::default());
        kept
    })
}

/// Takes no further markers, and writes the file if there is to be one.
pub fn finalize() -> c_int {
    answer(|| {
        let _uncancelled = Uncancelled::begin();
        match STATE.load(Ordering::Acquire) {
            UNINITIALIZED => return MarkerStatus::Uninitialized,
            FINALIZED => return MarkerStatus::Success,
            _ => {}
        }
        let mut lines = LINES.lock();
        // Another thread may have finalised meanwhile.
        if STATE.load(Ordering::Acquire) == FINALIZED {
            return MarkerStatus::Success;
        }
        if base().is_some_and(|base| lines.write(base).is_err()) {
            return MarkerStatus::OutputFile;
        }
        STATE.store(FINALIZED, Ordering::Release);
        MarkerStatus::Success
    })
}

/// The domain of a group's markers.
fn domain_of(group: CText<'_>) -> &'static MarkerDomain {
    let group = group.to_c_str().to_string_lossy();
    if group.is_empty() || group == DEFAULT_GROUP {
        return &DOMAIN;
    }
    let new = || MarkerDomain::new(format!("{}: {group}", DOMAIN.name().text()));
    GROUPS.get_or_put((*group).into(), new).unwrap_or(&DOMAIN)
}

fn now() -> u64 {
    SystemClock::Boottime.read().0
}

/// The name of the file that is asked for, without its extension.
fn base() -> Option<&'static OsString> {
    static BASE: OnceBox<Option<OsString>> = OnceBox::new();
    let read = || variable(CLPERFMARKER_VARIABLE);
    BASE.get_or_init(read).as_ref()
}

/// Keeps a line for the file, if there is to be one. Returns `OutOfMemory` when the file is full; the marker is recorded
/// all the same.
fn keep(line: impl FnOnce() -> String) -> MarkerStatus {
    if base().is_none() {
        return MarkerStatus::Success;
    }
    let line = line();
    let mut lines = LINES.lock();
    match ready() {
        Ok(()) => lines.push(&line, MAX_BYTES),
        Err(status) => status,
    }
}

impl ThreadLines {
    /// Adds a line of the calling thread, unless there are or were more than `most` bytes with it.
    fn push(&mut self, line: &str, most: usize) -> MarkerStatus {
        self.is_full |= self.bytes + line.len() > most;
        if self.is_full {
            return MarkerStatus::OutOfMemory;
        }
        self.bytes += line.len();
        let (count, text) = self.threads.entry(system::thread_id()).or_default();
        *count += 1;
        text.push_str(line);
        MarkerStatus::Success
    }

    /// Writes the file, beside those of other processes. It gets its name when it is complete.
    fn write(&mut self, base: &OsStr) -> io::Result<()> {
        let mut text = format!("{FIRST_LINE}\n");
        for (thread, (count, lines)) in &self.threads {
            let _ = write!(text, "{thread}\n{count}\n{lines}");
        }
        let process = std::process::id();
        let named = |suffix: &str| {
            let mut name = base.to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let part = named(&format!(".{CLPERFMARKER_EXTENSION}.part-{process}"));
        let first = named(&format!(".{CLPERFMARKER_EXTENSION}"));
        let second = named(&format!("-{process}.{CLPERFMARKER_EXTENSION}"));
        let write = || {
            // An earlier process with this id may have left one.
            let _ = fs::remove_file(&part);
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&part)?;
            file.write_all(text.as_bytes())?;
            match move_to_new(&part, &first) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    move_to_new(&part, &second)
                }
                moved => moved,
            }
        };
        let written = write();
        if written.is_err() {
            let _ = fs::remove_file(&part);
        } else {
            *self = ThreadLines::default();
        }
        written
    }
}

/// Renames a file, but replaces none.
fn move_to_new(from: &Path, to: &Path) -> io::Result<()> {
    let moved = renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE);
    match moved {
        // Not all file systems have it.
        Err(Errno::INVAL | Errno::NOSYS) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        moved => moved.map_err(io::Error::from),
    }
}

/// A word of the file: a text without white space.
fn word(text: &str) -> String {
    text.replace(char::is_whitespace, SPACE)
}

/// The line of a marker's begin.
fn begin_line(name: &str, group: &str, time: u64) -> String {
    let group = match group {
        "" => DEFAULT_GROUP,
        group => group,
    };
    let (name, group) = (word(name), word(group));
    format!(
        "{:<20}{name:<49} {time:<20}   {group}\n",
        "clBeginPerfMarker"
    )
}

/// The line of a marker's end.
fn end_line(time: u64) -> String {
    format!("{:<20}{time:<20}\n", "clEndPerfMarker")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_internal_error_for_the_program() {
        assert_eq!(
            answer(|| panic!("expected")),
            MarkerStatus::Internal as c_int
        );
        assert_eq!(MarkerStatus::Internal as c_int, -6);
    }

    #[test]
    fn a_file_that_is_full_is_a_lack_of_memory_for_the_program() {
        let mut lines = ThreadLines::default();
        assert_eq!(lines.push("12345\n", 10), MarkerStatus::Success);
        assert_eq!(lines.push("12345\n", 10), MarkerStatus::OutOfMemory);
        assert_eq!(MarkerStatus::OutOfMemory as c_int, -7);
        // A shorter line would be the end of a marker whose begin is missing.
        assert_eq!(lines.push("123\n", 10), MarkerStatus::OutOfMemory);
        let [(count, text)] = &lines.threads.into_values().collect::<Vec<_>>()[..] else {
            panic!("one thread");
        };
        assert_eq!((*count, text.as_str()), (1, "12345\n"));
    }
}
