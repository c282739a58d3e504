//! JSON as programs write it nearly always, in one pass over its bytes: where strings and values end.
//!
//! What is accepted here serde_json accepts with the same result; for all else `None` is returned, and serde_json decides. FIGURE

/// Nested values whose kinds fit in a word.
const WORD: u32 = u64::BITS;

/// The place of the first byte from `at` on that is no white space of JSON.
#[inline]
pub(super) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\t' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// The place behind the byte `wanted`, if it comes next.
#[inline]
pub(super) fn behind(bytes: &[u8], at: usize, wanted: u8) -> Option<usize> {
    (*bytes.get(at)? == wanted).then_some(at + 1)
}

/// The place behind the string whose quote stands at `at`.
#[inline]
pub(super) fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = behind(bytes, at, b'"')?;
    loop {
        while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
            match special(u64::from_le_bytes(*chunk)) {
                8 => at += 8,
                place => {
                    at += place;
                    break;
                }
            }
        }
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at = escape_end(bytes, at)?,
            0..0x20 => return None,
            _ => at += 1,
        }
    }
}

/// The place of the first of eight bytes that is a quote, a backslash or a control character; 8 if none is.
#[inline]
fn special(bytes: u64) -> usize {
    const EACH: u64 = u64::MAX / 255;
    // The highest bit of each byte below `limit`; those behind the first one may be wrong.
    let below = |bytes: u64, limit: u64| bytes.wrapping_sub(EACH * limit) & !bytes;
    let quotes = below(bytes ^ (EACH * u64::from(b'"')), 1);
    let backslashes = below(bytes ^ (EACH * u64::from(b'\\')), 1);
    let found = (below(bytes, 0x20) | quotes | backslashes) & (EACH << 7);
    found.trailing_zeros() as usize / 8
}

fn escape_end(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at + 1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 2),
        b'u' => {
            let digits = bytes.get(at + 2..at + 6)?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(at + 6)
        }
        _ => None,
    }
}

fn digits_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let begin = at;
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    (at > begin).then_some(at)
}

fn number_end(bytes: &[u8], at: usize) -> Option<usize> {
    let begin = at + usize::from(bytes.get(at) == Some(&b'-'));
    let mut at = digits_end(bytes, begin)?;
    if bytes[begin] == b'0' && at > begin + 1 {
        return None;
    }
    if bytes.get(at) == Some(&b'.') {
        at = digits_end(bytes, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let has_sign = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
        at = digits_end(bytes, at + 1 + usize::from(has_sign))?;
    }
    Some(at)
}

/// The place behind a name and its colon.
fn name_end(bytes: &[u8], at: usize) -> Option<usize> {
    let end = string_end(bytes, skip_space(bytes, at))?;
    behind(bytes, skip_space(bytes, end), b':')
}

/// The arrays and objects around a value: a bit for each, which is set for objects.
#[derive(Default)]
struct Nesting {
    depth: u32,
    kinds: u64,
    /// The kinds of the outermost ones, if there are more than a word holds.
    outer: Vec<u64>,
}

impl Nesting {
    fn enter(&mut self, is_object: bool) {
        if self.depth > 0 && self.depth % WORD == 0 {
            self.outer.push(self.kinds);
        }
        self.depth += 1;
        self.kinds = self.kinds << 1 | u64::from(is_object);
    }

    fn leave(&mut self) {
        self.depth -= 1;
        self.kinds >>= 1;
        if self.depth > 0 && self.depth % WORD == 0 {
            self.kinds = self.outer.pop().unwrap_or_default();
        }
    }

    fn is_in_object(&self) -> bool {
        self.kinds & 1 != 0
    }
}

/// The place behind the value that begins at `at`, with white space before it.
#[inline]
pub(super) fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    let at = skip_space(bytes, at);
    match bytes.get(at)? {
        b'[' | b'{' => nested_end(bytes, at),
        _ => scalar_end(bytes, at),
    }
}

#[inline]
fn scalar_end(bytes: &[u8], at: usize) -> Option<usize> {
    let word = |word: &[u8]| bytes[at..].starts_with(word).then_some(at + word.len());
    match bytes.get(at)? {
        b'"' => string_end(bytes, at),
        b't' => word(b"true"),
        b'f' => word(b"false"),
        b'n' => word(b"null"),
        _ => number_end(bytes, at),
    }
}

fn nested_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut around = Nesting::default();
    loop {
        at = skip_space(bytes, at);
        let byte = *bytes.get(at)?;
        if byte == b'{' || byte == b'[' {
            let is_object = byte == b'{';
            around.enter(is_object);
            let first = skip_space(bytes, at + 1);
            let is_empty = *bytes.get(first)? == if is_object { b'}' } else { b']' };
            if !is_empty {
                at = if is_object {
                    name_end(bytes, first)?
                } else {
                    first
                };
                continue;
            }
            at = first;
        } else {
            at = skip_space(bytes, scalar_end(bytes, at)?);
        }
        loop {
            match (*bytes.get(at)?, around.is_in_object()) {
                (b'}', true) | (b']', false) => {
                    around.leave();
                    if around.depth == 0 {
                        return Some(at + 1);
                    }
                    at = skip_space(bytes, at + 1);
                }
                (b',', true) => {
                    at = name_end(bytes, at + 1)?;
                    break;
                }
                (b',', false) => {
                    at += 1;
                    break;
                }
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    /// The end of the value at the beginning, as serde_json finds it.
    fn expected(text: &str) -> Option<usize> {
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        match stream.next() {
            Some(Ok(_)) => Some(stream.byte_offset()),
            _ => None,
        }
    }

    /// Pieces of JSON and of what is nearly JSON.
    fn piece() -> impl Strategy<Value = String> {
        let pieces = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\"a\"",
            "\"a\":",
            "\\",
            "\\\"",
            "\\u00e",
            "\\u00e9",
            "\\ud800",
            "\\x",
            "0",
            "1",
            "01",
            "-",
            "+",
            ".",
            "e",
            "E+",
            "1.5e-3",
            "true",
            "false",
            "null",
            "nul",
            " ",
            "\n",
            "\t",
            "\u{c}",
            "\u{1}",
            "\u{7f}",
            "é",
            "長い文字列",
            "twelve bytes",
            "{\"a\":[1,{}]}",
            "[[[[",
        ];
        prop::sample::select(&pieces[..]).prop_map(str::to_owned)
    }

    /// Any JSON.
    pub fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<i32>().prop_map(|eighths| (f64::from(eighths) / 8.0).into()),
            ".*".prop_map(Into::into),
        ];
        leaf.prop_recursive(5, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::vec((".*", inner), 0..6)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_end_where_serde_json_finds_their_end(pieces in prop::collection::vec(piece(), 0..24)) {
            let text = "[".to_owned() + &pieces.concat();
            prop_assert_eq!(value_end(text.as_bytes(), 0), expected(&text), "{}", text);
        }

        #[test]
        fn a_changed_byte_changes_both(json in json(), pretty: bool, place: prop::sample::Index, byte in 0u8..128) {
            let text = match pretty {
                true => serde_json::to_string_pretty(&json),
                false => serde_json::to_string(&json),
            };
            let text = format!("[{}]", text.unwrap());
            prop_assert_eq!(value_end(text.as_bytes(), 0), Some(text.len()));
            let mut changed = text.into_bytes();
            let place = place.index(changed.len());
            changed[place] = byte;
            if let Ok(text) = std::str::from_utf8(&changed) {
                prop_assert_eq!(value_end(text.as_bytes(), 0), expected(text), "{}", text);
            }
        }
    }

    #[test]
    fn values_nest_to_any_depth() {
        for depth in [1, 63, 64, 65, 128, 129, 1000] {
            let text = "[{\"a\":".repeat(depth) + "1" + &"}]".repeat(depth);
            assert_eq!(value_end(text.as_bytes(), 0), Some(text.len()), "{depth}");
            let wrong = text.replacen("}]", "]}", 1);
            assert_eq!(value_end(wrong.as_bytes(), 0), None, "{depth}");
            assert_eq!(value_end(&text.as_bytes()[..text.len() - 1], 0), None);
        }
    }
}
