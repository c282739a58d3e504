//! Numbers with the nouns that they count, for messages.

/// A number and the noun that it counts, in the plural unless it is 1.
pub fn count(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        number => format!("{} {}", grouped(number), plural(one)),
    }
}

/// The number with spaces between thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

fn plural(one: &str) -> String {
    if one.ends_with(['s', 'x']) || one.ends_with("ch") {
        return format!("{one}es");
    }
    match one.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o']) => format!("{stem}ies"),
        _ => format!("{one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noun_is_in_the_plural_unless_there_is_one() {
        let counted = [
            (0, "call"),
            (1, "call"),
            (2, "call"),
            (2, "process"),
            (2, "dispatch"),
            (3, "copy"),
            (2, "array"),
            (1234567, "pop"),
        ];
        assert_eq!(
            counted.map(|(number, one)| count(number, one)),
            [
                "0 calls",
                "1 call",
                "2 calls",
                "2 processes",
                "2 dispatches",
                "3 copies",
                "2 arrays",
                "1 234 567 pops"
            ]
        );
    }
}
