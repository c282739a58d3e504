//! Names of the rows of devices.
//!
//! A row is named by device, process and queue: `GPU 0 · 4242 · queue 1`. The process is its rank where that is known. It is
//! left out for the first process with such rows, which often is the only one. Viewers sort rows by the bytes of these
//! names and show a run of spaces as one. So numbers are padded with spaces to the same width, and one more space puts
//! queues that have a number above the other queues of their device: copies, launches and migrations.

/// Between the parts of a name.
const SEPARATOR: &str = " · ";
/// The width of numbers.
const WIDTH: usize = 4;
/// The begins of the names of numbered queues.
const NUMBERED: [&str; 2] = ["queue ", "stream "];
/// The begin of the name of a rank.
const RANK: &str = "rank ";

/// The parts of the name of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowName {
    /// The short name of the device.
    pub device: String,
    /// The process: a rank or an id; empty for the first one.
    pub process: String,
    /// The queue.
    pub queue: String,
}

impl RowName {
    /// The parts of `row`; `None` if it does not begin with a device.
    pub fn of(row: &str) -> Option<RowName> {
        let (device, rest) = row.split_once(SEPARATOR)?;
        let (process, queue) = match rest.split_once(SEPARATOR) {
            Some((process, queue)) if names_process(&unpadded(process)) => (process, queue),
            _ => ("", rest),
        };
        let numbered = queue.strip_prefix(' ').filter(|queue| is_numbered(queue));
        Some(RowName {
            device: device.to_owned(),
            process: unpadded(process),
            queue: unpadded(numbered.unwrap_or(queue)),
        })
    }

    /// The name, as viewers get it.
    pub fn padded(&self) -> String {
        let RowName {
            device,
            process,
            queue,
        } = self;
        let mut name = device.clone();
        if !process.is_empty() {
            name = name + SEPARATOR + &padded(process);
        }
        name + SEPARATOR + if is_numbered(queue) { " " } else { "" } + &padded(queue)
    }
}

/// The parts of the name of a counter's row: what it is called on its device, and the process as in [`RowName`].
pub(super) fn counter_parts(row: &str) -> (&str, &str) {
    match row.rsplit_once(SEPARATOR) {
        Some((counter, process)) if names_process(process) => (counter, process),
        _ => (row, ""),
    }
}

/// The name of a counter's row.
pub(super) fn counter_row(counter: &str, process: &str) -> String {
    match process {
        "" => counter.to_owned(),
        process => format!("{counter}{SEPARATOR}{process}"),
    }
}

/// The process part of rows of a process with this rank: that of "rank 3 of 8" is "rank 3".
pub(super) fn rank(rank: &str) -> Option<String> {
    let number = rank.strip_prefix(RANK)?.split(' ').next()?;
    is_number(number).then(|| format!("{RANK}{number}"))
}

/// Whether a queue is named by its number.
fn is_numbered(queue: &str) -> bool {
    NUMBERED.iter().any(|begin| queue.starts_with(begin))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a part of a name is that of a process. Of another machine it is `7@1`.
fn names_process(part: &str) -> bool {
    is_number(part.strip_prefix(RANK).unwrap_or(part))
        || part
            .split_once('@')
            .is_some_and(|(process, machine)| is_number(process) && is_number(machine))
}

/// `text` with spaces before the numbers that are words.
fn padded(text: &str) -> String {
    let mut padded = String::new();
    for (place, word) in text.split(' ').enumerate() {
        if place > 0 {
            padded.push(' ');
        }
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        // A number at the begin, or behind further spaces, stays where it is.
        if digits > 0 && place > 0 && !padded.ends_with("  ") {
            padded += &" ".repeat(WIDTH.saturating_sub(digits));
        }
        padded += word;
    }
    padded
}

/// `text` without the spaces of [`padded`].
fn unpadded(text: &str) -> String {
    let mut words = text.split(' ');
    let mut unpadded = words.next().map_or(String::new(), str::to_owned);
    // A run of spaces is empty words.
    let mut spaces = 0;
    for word in words {
        spaces += 1;
        if word.is_empty() {
            continue;
        }
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let is_padding = digits > 0 && spaces + digits == WIDTH + 1;
        unpadded += &" ".repeat(if is_padding { 1 } else { spaces });
        unpadded += word;
        spaces = 0;
    }
    unpadded + &" ".repeat(spaces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(device: &str, process: &str, queue: &str) -> RowName {
        let [device, process, queue] = [device, process, queue].map(str::to_owned);
        RowName {
            device,
            process,
            queue,
        }
    }

    #[test]
    fn rows_sort_by_their_numbers_and_engines_stand_below_queues() {
        let sorted = [
            row("GPU 0", "", "queue 2"),
            row("GPU 0", "", "queue 10"),
            row("GPU 0", "", "stream 7 main"),
            row("GPU 0", "", "stream 13"),
            row("GPU 0", "", "stream 100"),
            row("GPU 0", "", "copy engine 0"),
            row("GPU 0", "", "copy engine 12"),
            row("GPU 0", "", "migrations"),
            row("GPU 0", "rank 3", "queue 0"),
            row("GPU 0", "rank 10", "queue 0"),
            row("GPU 1", "", "queue 0"),
        ];
        let names: Vec<_> = sorted.iter().map(RowName::padded).collect();
        assert!(
            names.is_sorted_by_key(|name| name.to_lowercase()),
            "{names:#?}"
        );
        assert_eq!(names[0], "GPU 0 ·  queue    2");
        for (name, row) in names.iter().zip(&sorted) {
            assert_eq!(RowName::of(name).as_ref(), Some(row));
        }
        assert_eq!(RowName::of("GPU 1"), None);
    }

    #[test]
    fn a_process_is_told_from_a_queue() {
        let row_of = |name: &str| RowName::of(name).unwrap();
        assert_eq!(row_of("GPU 0 · 7 · queue 1"), row("GPU 0", "7", "queue 1"));
        assert_eq!(
            row_of("GPU 0 · 7@1 · queue 1"),
            row("GPU 0", "7@1", "queue 1")
        );
        assert_eq!(row_of("GPU 0 · a · b"), row("GPU 0", "", "a · b"));
        assert_eq!(row_of("GPU 0 · 7"), row("GPU 0", "", "7"));
        for queue in ["", "a  b", " a", "a ", "my  12345", "queue  1"] {
            let named = row("GPU 0", "7", queue);
            assert_eq!(row_of(&named.padded()), named);
        }
        assert_eq!(counter_parts("GPU 0 busy · 7"), ("GPU 0 busy", "7"));
        assert_eq!(counter_parts("GPU 0 · busy"), ("GPU 0 · busy", ""));
        assert_eq!(rank("rank 3 of 8").as_deref(), Some("rank 3"));
        assert_eq!([rank(""), rank("rank of others")], [None, None]);
    }
}
