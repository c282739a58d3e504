//! The text by which the kernel describes an event of a unit: terms such as `event=0x04,umask=0x03`, whose places in the
//! unit's configuration stand in files of its folder `format`, such as `config:8-15`.

use gputrail_buffer::platform::sysfs;
use std::io;
use std::path::Path;

/// The configuration of an event: `config`, `config1` and `config2` of `perf_event_attr`.
pub(super) type EventConfig = [u64; 3];

/// The names of the words of an [`EventConfig`].
const WORDS: [&str; 3] = ["config", "config1", "config2"];
/// The most bytes of a name.
const MAX_NAME: usize = 64;
/// The number of bits of a word.
const BITS: u32 = 64;

/// Whether `text` is a name of a unit, event or term, which is safe in a path.
pub(super) fn is_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=MAX_NAME).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.bytes().all(is_part)
}

/// The place of a term: a word, and ranges of its bits, the lowest bits of the value first.
#[derive(Debug, PartialEq, Eq)]
struct TermBits {
    word: usize,
    /// The first bit and the number of bits.
    ranges: Vec<(u32, u32)>,
}

/// The configuration of the event that `terms` describe; `format` is the folder with the places of terms.
///
/// # Errors
///
/// A text that says what is wrong.
pub(super) fn configuration(terms: &str, format: &Path) -> Result<EventConfig, String> {
    let mut config = EventConfig::default();
    for term in terms.split(',').map(str::trim) {
        let (name, value) = term.split_once('=').unwrap_or((term, "1"));
        if !is_name(name) {
            return Err(format!("expected the name of a term, found {term:?}"));
        }
        let value = number(value)
            .ok_or_else(|| format!("expected a number behind {name}=, found {value:?}"))?;
        let file = format.join(name);
        let place = match (
            sysfs::text(&file),
            WORDS.iter().position(|word| *word == name),
        ) {
            (Ok(text), _) => {
                place(&text).map_err(|wrong| format!("{}: {wrong}", file.display()))?
            }
            (Err(error), Some(word)) if error.kind() == io::ErrorKind::NotFound => TermBits {
                word,
                ranges: vec![(0, BITS)],
            },
            (Err(error), _) => return Err(format!("{}: {error}", file.display())),
        };
        place
            .put(value, &mut config)
            .ok_or_else(|| format!("{value:#x} is too large for {name}"))?;
    }
    Ok(config)
}

/// A decimal number, or a hexadecimal one behind 0x.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) if digits.starts_with('+') => None,
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if text.starts_with('+') => None,
        None => text.parse().ok(),
    }
}

/// The place that a file of the folder `format` describes: `config:0-7,21`.
fn place(text: &str) -> Result<TermBits, String> {
    let wrong = || format!("expected a place such as config:0-7, found {text:?}");
    let (word, list) = text.split_once(':').ok_or_else(wrong)?;
    let word = WORDS.iter().position(|known| *known == word);
    let word =
        word.ok_or_else(|| format!("expected config, config1 or config2, found {text:?}"))?;
    let mut ranges = Vec::new();
    let mut taken = 0u64;
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let bit =
            |text: &str| -> Option<u32> { text.trim().parse().ok().filter(|bit| *bit < BITS) };
        let (Some(first), Some(last)) = (bit(first), bit(last)) else {
            return Err(wrong());
        };
        let bits = last.checked_sub(first).ok_or_else(wrong)? + 1;
        let mask = lowest(bits) << first;
        if taken & mask != 0 {
            return Err(format!("expected each bit once, found {text:?}"));
        }
        taken |= mask;
        ranges.push((first, bits));
    }
    Ok(TermBits { word, ranges })
}

/// A number whose lowest `bits` bits are set, at least one.
fn lowest(bits: u32) -> u64 {
    u64::MAX >> (BITS - bits)
}

impl TermBits {
    /// Puts a value into its place; `None` if it is too large.
    fn put(&self, mut value: u64, config: &mut EventConfig) -> Option<()> {
        let word = &mut config[self.word];
        for (first, bits) in &self.ranges {
            let mask = lowest(*bits) << first;
            *word = (*word & !mask) | ((value << first) & mask);
            value = value.checked_shr(*bits).unwrap_or(0);
        }
        (value == 0).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_place_is_a_word_and_ranges_of_its_bits() {
        let found = place("config1:0-7,21").unwrap();
        assert_eq!((found.word, &found.ranges[..]), (1, &[(0, 8), (21, 1)][..]));
        let mut config = EventConfig::default();
        assert_eq!(found.put(0x1ff, &mut config), Some(()));
        assert_eq!(config, [0, 0xff | 1 << 21, 0]);
        assert_eq!(found.put(0x200, &mut config), None);
        let all = place("config:0-63").unwrap();
        assert_eq!(all.put(u64::MAX, &mut config), Some(()));
        assert_eq!(config[0], u64::MAX);
        let hostile = [
            "",
            "config",
            "config:",
            "config:8-7",
            "config:64",
            "config:0-64",
            "config:-1",
            "config9:0-7",
            "config:0-7,7",
            "config:0-4294967296",
            "config:a",
            "config3:0",
        ];
        for text in hostile {
            assert!(place(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_event_is_the_sum_of_its_terms() {
        let format = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| std::fs::write(format.path().join(name), text).unwrap();
        file("event", "config:0-7\n");
        file("umask", "config:8-15\n");
        file("edge", "config:18\n");
        file("filter", "config1:0-31\n");
        file("odd", "elsewhere\n");
        let of = |terms: &str| configuration(terms, format.path());
        assert_eq!(of("event=0x04,umask=0x03"), Ok([0x304, 0, 0]));
        assert_eq!(
            of("event=10,edge,filter=0xffffffff"),
            Ok([0x4_000a, 0xffff_ffff, 0])
        );
        // Words themselves are terms, too.
        assert_eq!(of("config=0x1,config2=2"), Ok([1, 0, 2]));
        for (terms, words) in [
            ("", "expected the name of a term"),
            ("event=?", "expected a number behind event="),
            ("event=0x", "expected a number"),
            ("event=+1", "expected a number"),
            ("event=0x100", "0x100 is too large for event"),
            ("event=99999999999999999999", "expected a number"),
            ("../event=1", "expected the name of a term"),
            ("odd=1", "expected a place such as config:0-7"),
            ("nothing=1", "nothing: "),
            ("config3=1", "config3: "),
        ] {
            let wrong = of(terms).unwrap_err();
            assert!(wrong.contains(words), "{terms}: {wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[config0-9:,x=?+ -]{0,40}|.{0,40}", value: u64) {
            if let Ok(place) = place(&text) {
                prop_assert!(place.ranges.iter().map(|range| range.1).sum::<u32>() <= BITS);
                let _ = place.put(value, &mut EventConfig::default());
            }
            let _ = configuration(&text, Path::new("/nowhere"));
        }
    }

    #[test]
    fn names_are_safe_in_paths() {
        assert!(is_name("energy-pkg") && is_name("cas_count_read.1"));
        for text in [
            "",
            ".",
            "..",
            "../a",
            "a/b",
            "-a",
            "a\n",
            "\u{e4}",
            &"a".repeat(65),
        ] {
            assert!(!is_name(text), "{text:?}");
        }
    }
}
