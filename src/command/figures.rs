//! Formatting of numbers for people.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

pub use gputrail_analysis::figures::{bytes, shortened, time};
use gputrail_record::printable;
pub use gputrail_record::{count, grouped};

/// The names as [`printable`] texts, each shortened to at most `most` characters. Names that differ stay different: those that would look the same
/// show the part by which they differ, and a number if that does not suffice.
pub fn shortened_apart<'n>(names: impl IntoIterator<Item = &'n str>, most: usize) -> Vec<String> {
    let names: Vec<Cow<'_, str>> = names.into_iter().map(printable).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let mut alike: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in names.iter().copied().collect::<BTreeSet<_>>() {
        alike.entry(shortened(name, most)).or_default().push(name);
    }
    let mut taken: BTreeSet<String> = alike.keys().cloned().collect();
    let mut known = BTreeMap::new();
    for (short, group) in &alike {
        if let [only] = group[..] {
            known.insert(only, short.clone());
            continue;
        }
        let same = group.windows(2).map(|two| same_beginning(two[0], two[1]));
        let same = same.min().unwrap_or(0);
        for name in group {
            let wanted = shortened_around(name, same, most);
            let numbered = (2..).map(|number| {
                let end = format!("~{number}");
                shortened(&wanted, most - end.len()) + &end
            });
            let mut texts = std::iter::once(wanted.clone()).chain(numbered);
            let free = texts.find(|text| !taken.contains(text));
            let free = free.unwrap_or(wanted);
            taken.insert(free.clone());
            known.insert(*name, free);
        }
    }
    let texts = names.iter().map(|name| known.get(name).cloned());
    texts.map(Option::unwrap_or_default).collect()
}

/// The number of characters with which both names begin.
fn same_beginning(one: &str, other: &str) -> usize {
    let pairs = one.chars().zip(other.chars());
    pairs.take_while(|(one, other)| one == other).count()
}

/// The name, shortened to at most `most` characters: its beginning, the part from the character `place` on, and its end.
fn shortened_around(name: &str, place: usize, most: usize) -> String {
    /// Characters ahead of the place.
    const AHEAD: usize = 3;
    let characters: Vec<char> = name.chars().collect();
    let part = most.saturating_sub(4) / 3;
    let from = place.saturating_sub(AHEAD).max(part);
    let text = |characters: &[char]| characters.iter().collect::<String>();
    let head = text(&characters[..part.min(characters.len())]);
    let rest = characters.get(from..).unwrap_or_default();
    if rest.len() <= 2 * part + 2 {
        return format!("{head}..{}", text(rest));
    }
    let tail = text(&rest[rest.len() - part..]);
    format!("{head}..{}..{tail}", text(&rest[..part]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_names_that_differ_stay_different() {
        let long =
            |middle: &str| format!("gemm_{}{middle}{}_kernel", "a".repeat(40), "b".repeat(40));
        let names = [long("f16"), long("f32"), "short".to_owned(), long("f16")];
        let texts = shortened_apart(names.iter().map(String::as_str), 26);
        assert!(
            texts.iter().all(|text| text.chars().count() <= 26),
            "{texts:?}"
        );
        assert_eq!(texts[0], texts[3]);
        assert!(
            texts[0].contains("f16") && texts[1].contains("f32"),
            "{texts:?}"
        );
        assert_eq!(texts[2], "short");
        // Different in several places, and in one that no window shows.
        let many: Vec<String> = (0..300)
            .map(|number| {
                format!(
                    "{}{}{}{}",
                    "a".repeat(40),
                    number / 20,
                    "b".repeat(40),
                    number % 20
                )
            })
            .map(|name| name + &"c".repeat(40))
            .collect();
        let texts = shortened_apart(many.iter().map(String::as_str), 26);
        let different: BTreeSet<&String> = texts.iter().collect();
        assert_eq!(different.len(), many.len());
        assert!(
            texts.iter().all(|text| text.chars().count() <= 26),
            "{texts:?}"
        );
    }
}
