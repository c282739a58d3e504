//! Questions of the command to the library that it carries: the words that both use. A question is a list of texts; the answer
//! is a text, or the reason why there is none.

use std::ffi::{c_char, c_void};

/// The name of the function that answers.
pub const FUNCTION: &str = "gputrail_answer";

/// The function that answers. It gets the words of a question and their number, and calls the second function once, with
/// the user data, a text and its length. It returns 0 for an answer, and 1 for the reason why there is none.
pub type Ask = unsafe extern "C" fn(*const *const c_char, usize, Tell, *mut c_void) -> i32;

/// Gets the answer.
pub type Tell = extern "C" fn(*mut c_void, *const u8, usize);

/// The agents of this machine, as a text.
pub const AGENTS: &str = "agents";
/// The counters of an agent: `list`, `notes`, `info` or `check`, the agent, names.
pub const AGENT: &str = "agent";
/// The metrics of a chip: `list`, `info` or `check`, the chip, names.
pub const CHIP: &str = "chip";
/// Whether agents can be sampled as a request says.
pub const SAMPLING: &str = "sampling";
/// Whether agents count what is named: names of counters and metrics.
pub const COUNTING: &str = "counting";
/// Runs the demo: the capture, the scope, how to run it.
pub const DEMO: &str = "demo";

/// Ends each cell of an answer with rows, as in ASCII.
const UNIT_SEPARATOR: char = '\x1f';
/// Ends each row.
const RECORD_SEPARATOR: char = '\x1e';

/// An answer with rows. The separators within a cell become spaces.
pub fn of_rows<const N: usize>(rows: impl IntoIterator<Item = [String; N]>) -> String {
    let separators = [UNIT_SEPARATOR, RECORD_SEPARATOR];
    let row = |cells: [String; N]| {
        let cells = cells.map(|cell| cell.replace(separators, " "));
        cells.join(&UNIT_SEPARATOR.to_string()) + &RECORD_SEPARATOR.to_string()
    };
    rows.into_iter().map(row).collect()
}

/// The rows of an answer. A row with fewer cells has empty ones at its end.
pub fn rows<const N: usize>(answer: &str) -> impl Iterator<Item = [String; N]> {
    answer.split_terminator(RECORD_SEPARATOR).map(|row| {
        let mut cells = row.split(UNIT_SEPARATOR);
        std::array::from_fn(|_| cells.next().unwrap_or_default().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were_but_for_separators() {
        let cell = |text: &str| text.to_owned();
        let sent = [[cell("a\tb\n"), cell("")], [cell("c\x1fd"), cell("e\x1e")]];
        let back: Vec<[String; 2]> = rows(&of_rows(sent)).collect();
        assert_eq!(
            back,
            [[cell("a\tb\n"), cell("")], [cell("c d"), cell("e ")]]
        );
        assert_eq!(rows::<2>("").count(), 0);
    }
}
