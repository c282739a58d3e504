//! gputrail as it is loaded into programs: the library of `benches/cost` acts as a source. Everything that depends on
//! how a source records a call is in that library; this module loads it.

use crate::Outcome;
use crate::rounds::{Peer, SPANS};
use libloading::{Library, Symbol};
use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// The measured functions, in the order that [`crate::table`] expects.
pub fn peers(library: &Path, scratch: &Path) -> Outcome<Vec<Box<dyn Peer>>> {
    // SAFETY: a library of this repository; what it does when it is loaded is nothing.
    let library = Arc::new(unsafe { Library::new(library) }?);
    let capture = scratch.join("peers.gputrail");
    let capture = CString::new(capture.as_os_str().as_bytes())?;
    // SAFETY: a function of that library, with its signature, and a string that ends with a 0.
    let began = unsafe {
        let begin: Symbol<unsafe extern "C" fn(*const c_char) -> bool> =
            library.get(b"cost_begin")?;
        begin(capture.as_ptr())
    };
    if !began {
        return Err("the library could not begin a recording".into());
    }
    let ways = [
        ("two tick reads", "cost_tick_pairs", false),
        ("gputrail: a traced API call", "cost_calls", false),
        (
            "gputrail: the same with external ids pushed",
            "cost_calls",
            true,
        ),
    ];
    let mut peers: Vec<Box<dyn Peer>> = Vec::new();
    for (name, function, externals) in ways {
        // SAFETY: functions of that library, with their signatures; it stays loaded as long as they are used.
        let (spans, push, flush) = unsafe {
            (
                *library.get::<extern "C" fn(u64) -> u64>(function.as_bytes())?,
                *library.get::<extern "C" fn()>(b"cost_push_external")?,
                *library.get::<extern "C" fn()>(b"cost_flush")?,
            )
        };
        peers.push(Box::new(Ours {
            name,
            spans,
            push: externals.then_some(push),
            flush,
            _library: library.clone(),
        }));
    }
    Ok(peers)
}

struct Ours {
    name: &'static str,
    spans: extern "C" fn(u64) -> u64,
    push: Option<extern "C" fn()>,
    flush: extern "C" fn(),
    _library: Arc<Library>,
}

impl Peer for Ours {
    fn name(&self) -> &str {
        self.name
    }

    fn prepare(&self) {
        if let Some(push) = self.push {
            push();
        }
        self.spans(SPANS);
    }

    fn spans(&self, count: u64) {
        (self.spans)(count);
    }

    fn settle(&self) {
        (self.flush)();
    }
}
