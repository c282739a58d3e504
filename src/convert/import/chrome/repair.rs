//! Damaged values of JSON: where they end, and the text of those that can be repaired without guessing.

use std::borrow::Cow;

/// Finds the end of a value by its brackets and quotes, over several windows.
#[derive(Default)]
pub(super) struct ValueScan {
    depth: u64,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl ValueScan {
    /// The number of bytes up to the end of the value, or none if it goes on.
    pub(super) fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        for (place, byte) in bytes.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => continue,
                }
                if !self.in_string && self.depth == 0 {
                    return Some(place + 1);
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth <= 1 => {
                    // The bracket of a scalar belongs to what the scalar is in.
                    return Some(place + usize::from(self.depth == 1));
                }
                b'}' | b']' => self.depth -= 1,
                b',' if self.depth == 0 && self.begun => return Some(place),
                _ => {}
            }
            self.begun = true;
        }
        None
    }
}

/// The length of the value at the beginning of `bytes`, and its text with what can be repaired.
pub(super) fn repaired_value(bytes: &[u8]) -> Option<(usize, String)> {
    let length = ValueScan::default().end(bytes)?;
    Some((length, repaired(&bytes[..length])?))
}

/// The length of what programs print for a number that is none: `NaN`, `-inf`, `-nan(ind)`, `1.#QNAN`.
fn no_number(text: &str) -> Option<usize> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign = text.len() - unsigned.len();
    if let Some(rest) = unsigned.strip_prefix("1.#") {
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric());
        return Some(sign + 3 + end.unwrap_or(rest.len()));
    }
    let is_word = |word: &&str| {
        let begin = unsigned.get(..word.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(word))
    };
    let word = ["infinity", "inf", "nan"].into_iter().find(is_word)?;
    let rest = &unsigned[word.len()..];
    let kind = rest.strip_prefix('(').and_then(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric())?;
        rest[end..].starts_with(')').then_some(end + 2)
    });
    Some(sign + word.len() + kind.unwrap_or(0))
}

/// The text of an event with what can be repaired without guessing; none if nothing needs it.
pub(super) fn repaired(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut changed = matches!(text, Cow::Owned(_));
    let mut repaired = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    let mut rest = &*text;
    while let Some(letter) = rest.chars().next() {
        let mut length = letter.len_utf8();
        if in_string {
            match letter {
                '\0'..=' ' if letter != ' ' => {
                    changed = true;
                    escaped = false;
                    repaired.push_str(&format!("\\u{:04x}", u32::from(letter)));
                }
                _ => {
                    in_string = letter != '"' || escaped;
                    escaped = letter == '\\' && !escaped;
                    repaired.push(letter);
                }
            }
        } else {
            match no_number(rest) {
                Some(word) => {
                    changed = true;
                    length = word;
                    repaired.push_str(&format!("\"{}\"", &rest[..word]));
                }
                None => {
                    in_string = letter == '"';
                    repaired.push(letter);
                }
            }
        }
        rest = &rest[length..];
    }
    changed.then_some(repaired)
}
