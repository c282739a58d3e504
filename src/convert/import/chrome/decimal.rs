//! Exact decimals: microseconds as text into whole nanoseconds.

/// Most digits before the point, exponent included: more than any clock has.
const MAX_DIGITS: i64 = 30;
/// Digits that fit in 64 bits, whatever they are.
const SHORT: i64 = 19;

/// A time or duration, ns.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::import) struct Decimal {
    /// The nearest whole number of nanoseconds.
    pub nanos: i128,
    /// Whether the text has that value exactly.
    pub exact: bool,
}

/// Nanoseconds of at most 16 digits, a point and at most 3 digits, as most times are written.
fn usual(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let (whole, nanos) = digits(bytes, (0, 0), 16);
    if whole == 0 {
        return None;
    }
    let (end, nanos, behind) = match bytes.get(whole) {
        Some(b'.') => {
            let (end, nanos) = digits(bytes, (whole + 1, nanos), 3);
            (end, nanos, end - whole - 1)
        }
        _ => (whole, nanos, 0),
    };
    (end == bytes.len()).then(|| nanos * [1000, 100, 10, 1][behind])
}

/// Adds at most `most` digits from a place on to a number. Returns the place behind them, and the number.
fn digits(bytes: &[u8], (begin, mut number): (usize, u64), most: usize) -> (usize, u64) {
    let mut at = begin;
    while at < begin + most
        && let Some(digit @ b'0'..=b'9') = bytes.get(at)
    {
        number = number * 10 + u64::from(digit - b'0');
        at += 1;
    }
    (at, number)
}

/// Nanoseconds of a JSON number of microseconds, quoted or not; none if it is no number or has too many digits.
pub(in crate::import) fn microseconds(text: &str) -> Option<Decimal> {
    let usual = usual(text).map(|nanos| Decimal {
        nanos: nanos.into(),
        exact: true,
    });
    usual.or_else(|| of_any_length(text))
}

fn of_any_length(text: &str) -> Option<Decimal> {
    let text = match text.strip_prefix('"') {
        Some(quoted) => quoted.strip_suffix('"')?.trim(),
        None => text,
    };
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match digits.bytes().position(|byte| byte | 0x20 == b'e') {
        Some(place) => (&digits[..place], digits[place + 1..].parse::<i64>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // Place of the decimal point in the digits, moved from microseconds to nanoseconds.
    let point = (whole.len() as i64).checked_add(exponent)?.checked_add(3)?;
    let (mut short, mut long) = (0_u64, None);
    let (mut exact, mut round_up) = (true, false);
    for (place, digit) in (0..).zip(whole.bytes().chain(fraction.bytes())) {
        if !digit.is_ascii_digit() {
            return None;
        }
        if place < point.min(SHORT) {
            short = short * 10 + u64::from(digit - b'0');
        } else if place < point {
            let before: i128 = long.unwrap_or(short.into());
            long = Some(before.checked_mul(10)?.checked_add((digit - b'0').into())?);
        } else {
            exact &= digit == b'0';
            round_up |= place == point && digit >= b'5';
        }
    }
    let mut nanos = long.unwrap_or(short.into());
    let given = (whole.len() + fraction.len()) as i64;
    if point > given && nanos != 0 {
        let zeros = point - given;
        if zeros > MAX_DIGITS {
            return None;
        }
        nanos = nanos.checked_mul(10_i128.pow(zeros as u32))?;
    }
    nanos += i128::from(round_up);
    Some(Decimal {
        nanos: if negative { -nanos } else { nanos },
        exact,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nanos(text: &str) -> Option<(i128, bool)> {
        microseconds(text).map(|decimal| (decimal.nanos, decimal.exact))
    }

    #[test]
    fn decimals_keep_all_their_digits() {
        let cases = [
            ("2413669097444.592", 2_413_669_097_444_592, true),
            ("1712195495505582.988", 1_712_195_495_505_582_988, true),
            ("0", 0, true),
            ("-1.5", -1_500, true),
            ("1e3", 1_000_000, true),
            ("1.25E-2", 13, false),
            ("12.0005", 12_001, false),
            ("12.00049", 12_000, false),
            ("12.000000", 12_000, true),
            ("\"7.5\"", 7_500, true),
            (".5", 500, true),
            ("0e999999999", 0, true),
        ];
        for (text, expected, exact) in cases {
            assert_eq!(nanos(text), Some((expected, exact)), "{text}");
        }
    }

    #[test]
    fn texts_that_are_no_number_are_none() {
        for text in [
            "",
            "-",
            ".",
            "1.2.3",
            "1e",
            "NaN",
            "\"",
            "1x",
            "1e99999999999999999999",
            "1e200",
        ] {
            assert_eq!(nanos(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn usual_decimals_are_read_as_any_others(text in "[0-9]{0,17}(\\.[0-9]{0,4})?") {
            let usual = usual(&text).map(|nanos| Decimal { nanos: nanos.into(), exact: true });
            prop_assert!(usual.is_none() || usual == of_any_length(&text), "{}", text);
            prop_assert_eq!(microseconds(&text), of_any_length(&text));
        }

        #[test]
        fn whole_nanoseconds_come_back(nanos in 0..i64::MAX) {
            let text = format!("{}.{:03}", nanos / 1000, nanos % 1000);
            prop_assert_eq!(microseconds(&text), Some(Decimal { nanos: nanos.into(), exact: true }));
        }
    }
}
