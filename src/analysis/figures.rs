//! Times and sizes for people.

use gputrail_record::{Nanos, count};

/// The time with three digits and a unit.
pub fn time(time: Nanos) -> String {
    let nanos = time.0 as f64;
    let (value, unit) = match time.0 {
        0..1_000 => return format!("{} ns", time.0),
        1_000..1_000_000 => (nanos / 1e3, "us"),
        1_000_000..1_000_000_000 => (nanos / 1e6, "ms"),
        _ => (nanos / 1e9, "s"),
    };
    let decimals = if value < 9.995 {
        2
    } else {
        usize::from(value < 99.95)
    };
    format!("{value:.decimals$} {unit}")
}

/// The number of bytes with a unit.
pub fn bytes(number: u64) -> String {
    let value = number as f64;
    match number {
        0..1_000 => count(number, "byte"),
        1_000..1_000_000 => format!("{:.0} kB", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", value / 1e6),
        _ => format!("{:.2} GB", value / 1e9),
    }
}

/// The name, shortened in the middle to at most `most` characters.
pub fn shortened(name: &str, most: usize) -> String {
    let characters: Vec<char> = name.chars().collect();
    if characters.len() <= most {
        return name.to_owned();
    }
    let tail = (most - 2) / 2;
    let head = most - 2 - tail;
    let part = |characters: &[char]| characters.iter().collect::<String>();
    format!(
        "{}..{}",
        part(&characters[..head]),
        part(&characters[characters.len() - tail..])
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_record::grouped;

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shortened("short", 8), "short");
        assert_eq!(shortened("a_very_long_kernel_name", 10), "a_ve..name");
    }

    #[test]
    fn numbers_are_for_people() {
        assert_eq!(
            ["0", "999", "1 000", "1 234 567"],
            [0, 999, 1000, 1_234_567].map(grouped)[..]
        );
        let times = [
            0,
            999,
            1_000,
            12_345,
            999_949,
            1_500_000_000,
            120_000_000_000,
        ];
        let expected = [
            "0 ns", "999 ns", "1.00 us", "12.3 us", "1000 us", "1.50 s", "120 s",
        ];
        assert_eq!(times.map(|nanos| time(Nanos(nanos))), expected);
        assert_eq!(
            [1, 659, 577_343, 14_000_000].map(bytes),
            ["1 byte", "659 bytes", "577 kB", "14.0 MB"]
        );
    }
}
