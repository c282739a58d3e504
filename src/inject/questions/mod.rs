//! Answers to the command that carries this library: which agents there are, what they can do, and the workload of the
//! demo. The command links no source.

mod agents;
mod chips;
mod counters;
mod demo;
mod sampling;

use gputrail_buffer::platform::inside::contain;
use gputrail_collect::question::{self, Tell};
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;

/// Answers a question of the command that carries this library: calls `tell` with the answer and returns 0, or with the reason
/// why there is none and returns 1.
///
/// # Safety
///
/// `words` leads to `count` texts that end with a 0. `tell` takes `user_data` and a text with its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_answer(
    words: *const *const c_char,
    count: usize,
    tell: Tell,
    user_data: *mut c_void,
) -> i32 {
    let mut result = Err("an internal error of gputrail".to_owned());
    contain(|| {
        // SAFETY: `count` texts that end with a 0.
        let words: Vec<&OsStr> = unsafe {
            let words = std::slice::from_raw_parts(words, count).iter();
            words
                .map(|word| OsStr::from_bytes(CStr::from_ptr(*word).to_bytes()))
                .collect()
        };
        result = answer(&words);
    });
    let (Ok(text) | Err(text)) = &result;
    tell(user_data, text.as_ptr(), text.len());
    i32::from(result.is_err())
}

/// The answer to a question, what it is about and its subject, or the reason why there is none.
fn answer(words: &[&OsStr]) -> Result<String, String> {
    let [what, subject @ ..] = words else {
        return Err("an empty question".to_owned());
    };
    match what.to_str() {
        Some(question::AGENTS) => Ok(agents::all()),
        Some(question::AGENT) => counters::answer(&in_text(subject)?),
        Some(question::CHIP) => chips::answer(&in_text(subject)?),
        Some(question::SAMPLING) => sampling::answer(&in_text(subject)?),
        Some(question::COUNTING) => counters::are_known(&in_text(subject)?),
        Some(question::DEMO) => demo::answer(subject),
        _ => Err(format!("{what:?} is no question")),
    }
}

fn in_text(words: &[&OsStr]) -> Result<Vec<String>, String> {
    let text = |word: &&OsStr| word.to_str().map(str::to_owned);
    let words: Option<_> = words.iter().map(text).collect();
    words.ok_or_else(|| "the question is no UTF-8".to_owned())
}
