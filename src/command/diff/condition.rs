//! Conditions of `gputrail diff --fail-if`: `total > +5 %`, `kernel:gemm* > +2 ms`, `idle >= 100 ms`.

use crate::figures::time;
use anyhow::{Result, bail};
use gputrail_analysis::diff::{Comparison, Subject, difference};
use gputrail_record::Nanos;
use wildmatch::WildMatch;

/// The figures that conditions take by their names.
const FIGURES: [&str; 8] = [
    "total",
    "busy",
    "idle",
    "computing",
    "exposed",
    "transfers",
    "kernels",
    "calls",
];

/// The words that stand before the name of a row.
const ROWS: [(&str, Subject); 6] = [
    ("kernel", Subject::Kernels),
    ("call", Subject::Calls),
    ("copy", Subject::Operations),
    ("gap", Subject::Gaps),
    ("range", Subject::Ranges),
    ("step", Subject::Steps),
];

/// The value that a condition looks at.
#[derive(Clone, Debug)]
enum Subjects {
    Figure(&'static str),
    /// The total of the rows whose names match.
    Rows(Subject, String),
}

/// A comparison operator.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Operator {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Operator {
    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Operator::Greater => value > limit,
            Operator::GreaterOrEqual => value >= limit,
            Operator::Less => value < limit,
            Operator::LessOrEqual => value <= limit,
        }
    }
}

/// The value that it is compared with.
#[derive(Copy, Clone, Debug, PartialEq)]
enum Limit {
    /// A change as a share.
    Share(f64),
    /// A change, in ns or a number of things.
    Change(f64),
    /// The value after the change.
    After(f64),
}

/// A condition.
#[derive(Clone, Debug)]
pub struct Condition {
    text: String,
    subject: Subjects,
    operator: Operator,
    limit: Limit,
}

/// Reads a condition.
pub fn condition(text: &str) -> Result<Condition, String> {
    let place = text.find(['>', '<']);
    let place = place.ok_or("a condition is FIGURE > VALUE, such as `total > +5 %`")?;
    let (figure, rest) = text.split_at(place);
    let (operator, value) = match (rest.strip_prefix(">="), rest.strip_prefix("<=")) {
        (Some(value), _) => (Operator::GreaterOrEqual, value),
        (_, Some(value)) => (Operator::LessOrEqual, value),
        _ if rest.starts_with('>') => (Operator::Greater, &rest[1..]),
        _ => (Operator::Less, &rest[1..]),
    };
    let figure = figure.trim();
    let subject = match figure.split_once(':') {
        Some((word, name)) => {
            let known = ROWS.iter().find(|(known, _)| *known == word);
            let (_, subject) = known.ok_or_else(|| {
                let words = ROWS.map(|(word, _)| word).join(", ");
                format!("`{word}:` is none of {words}")
            })?;
            Subjects::Rows(*subject, name.to_owned())
        }
        None => {
            let known = FIGURES.iter().find(|known| **known == figure);
            let known = known.ok_or_else(|| {
                format!(
                    "`{figure}` is none of {}, and has no name behind `kernel:`",
                    FIGURES.join(", ")
                )
            })?;
            Subjects::Figure(known)
        }
    };
    Ok(Condition {
        text: text.trim().to_owned(),
        subject,
        operator,
        limit: limit(value.trim())?,
    })
}

fn limit(text: &str) -> Result<Limit, String> {
    let end = text.find(|letter: char| !matches!(letter, '0'..='9' | '+' | '-' | '.'));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let value: f64 = number
        .parse()
        .map_err(|_| format!("`{text}` is no value, such as `+5 %` or `100 ms`"))?;
    let is_change = number.starts_with(['+', '-']);
    let factor = match unit.trim() {
        "%" if is_change => return Ok(Limit::Share(value / 100.0)),
        "%" => {
            return Err(format!(
                "`{text}`: a share is a change, and has a sign: `+{text}`"
            ));
        }
        "" | "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        unit => return Err(format!("`{unit}` is none of %, s, ms, us, ns")),
    };
    Ok(match is_change {
        true => Limit::Change(value * factor),
        false => Limit::After(value * factor),
    })
}

impl Condition {
    /// If the condition holds, the reason. An error if there is no row of its name on either side.
    pub fn holds(&self, comparison: &Comparison) -> Result<Option<String>> {
        let (before, after, is_time) = match &self.subject {
            Subjects::Figure(name) => {
                let figure = comparison
                    .figures
                    .iter()
                    .find(|figure| figure.name == *name);
                let Some(figure) = figure else {
                    bail!("--fail-if '{}': there is no such figure", self.text);
                };
                (figure.before.mean, figure.after.mean, figure.is_time)
            }
            Subjects::Rows(subject, name) => {
                let pattern = WildMatch::new(name);
                let rows = comparison.rows(*subject).iter();
                let rows = rows.filter(|row| row.name == *name || pattern.matches(&row.name));
                let (mut before, mut after, mut count) = (0_u64, 0_u64, 0);
                for row in rows {
                    before = before.saturating_add(row.before.total.mean);
                    after = after.saturating_add(row.after.total.mean);
                    count += 1;
                }
                if count == 0 {
                    bail!("--fail-if '{}': there is no row `{name}`", self.text);
                }
                (before, after, true)
            }
        };
        let change = difference(before, after) as f64;
        let holds = match self.limit {
            Limit::Share(limit) => {
                let share = match before {
                    0 if change == 0.0 => 0.0,
                    0 => f64::INFINITY,
                    _ => change / before as f64,
                };
                self.operator.holds(share, limit)
            }
            Limit::Change(limit) => self.operator.holds(change, limit),
            Limit::After(limit) => self.operator.holds(after as f64, limit),
        };
        let words = |value: u64| match is_time {
            true => time(Nanos(value)),
            false => value.to_string(),
        };
        let share = 100.0 * change / before.max(1) as f64;
        let why = || {
            format!(
                "--fail-if '{}' holds: {} before, {} after ({share:+.1} %)",
                self.text,
                words(before),
                words(after)
            )
        };
        Ok(holds.then(why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_analysis::diff::{FigureChange, Profile, SideValue};

    fn comparison(before: u64, after: u64) -> Comparison {
        let mut comparison = Comparison::of(&[Profile::default()], &[Profile::default()]);
        let value = |mean| SideValue { mean, spread: 0 };
        comparison.figures.push(FigureChange {
            name: "total",
            is_time: true,
            before: value(before),
            after: value(after),
        });
        comparison
    }

    fn holds(text: &str, before: u64, after: u64) -> bool {
        let condition = condition(text).unwrap();
        condition
            .holds(&comparison(before, after))
            .unwrap()
            .is_some()
    }

    #[test]
    fn conditions_compare_shares_changes_and_values() {
        assert!(holds("total > +5 %", 1000, 1051));
        assert!(!holds("total > +5 %", 1000, 1050));
        assert!(holds("total>=+5%", 1000, 1050));
        assert!(holds("total < -10 %", 1000, 899));
        assert!(holds("total > +50 ns", 1000, 1051));
        assert!(holds("total > 1.05 us", 1000, 1051));
        assert!(!holds("total > 2 us", 1000, 1051));
        assert!(holds("total > +5 %", 0, 1));
        assert!(!holds("total > +5 %", 0, 0));
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for text in [
            "total",
            "total > 5 %",
            "sum > +5 %",
            "total > much",
            "row:x > +1 ms",
            "total > +5 m",
        ] {
            assert!(condition(text).is_err(), "{text}");
        }
        let unknown = condition("kernel:none > +1 ms").unwrap();
        assert!(unknown.holds(&comparison(1, 1)).is_err());
    }
}
