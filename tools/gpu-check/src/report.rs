//! The report, for people and for programs.

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// The result of a check.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As expected.
    Passed,
    /// Something is wrong.
    Failed,
    /// It could not be done, or there was no time left.
    NotRun,
    /// A measurement without an expectation.
    Measured,
}

impl Verdict {
    fn text(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "FAILED",
            Verdict::NotRun => "not run",
            Verdict::Measured => "measured",
        }
    }
}

/// One check.
pub struct Check {
    /// Its name.
    pub name: String,
    /// A sentence about it.
    pub about: String,
    /// The result.
    pub verdict: Verdict,
    /// The findings, a line each.
    pub lines: Vec<String>,
    /// Figures by name.
    pub figures: Vec<(String, f64)>,
}

/// The report.
#[derive(Default)]
pub struct Report {
    /// The machine: name and value.
    pub machine: Vec<(String, String)>,
    /// The checks, in their order.
    pub checks: Vec<Check>,
}

impl Report {
    /// Adds a check, and says how it went.
    pub fn add(&mut self, check: Check) {
        crate::say(&format!("{:<10} {}", check.verdict.text(), check.name));
        for line in &check.lines {
            crate::say(&format!("           {line}"));
        }
        self.checks.push(check);
    }

    /// Whether checks passed and none failed.
    pub fn is_good(&self) -> bool {
        let any = |verdict| self.checks.iter().any(|check| check.verdict == verdict);
        any(Verdict::Passed) && !any(Verdict::Failed)
    }

    fn markdown(&self) -> String {
        let mut text = "# gputrail on this machine\n\n| | |\n|---|---|\n".to_owned();
        for (name, value) in &self.machine {
            let _ = writeln!(text, "| {name} | {value} |");
        }
        text += "\n| check | result |\n|---|---|\n";
        for check in &self.checks {
            let _ = writeln!(text, "| {} | {} |", check.name, check.verdict.text());
        }
        for check in &self.checks {
            let _ = write!(text, "\n## {}: {}\n\n", check.name, check.verdict.text());
            let _ = writeln!(text, "{}.\n", check.about);
            for line in &check.lines {
                let _ = writeln!(text, "* {line}");
            }
            if !check.figures.is_empty() {
                text += "\n| figure | value |\n|---|---:|\n";
            }
            for (name, value) in &check.figures {
                let _ = writeln!(text, "| {name} | {} |", rounded(*value));
            }
        }
        text
    }

    fn json(&self) -> Value {
        let pairs = |all: &[(String, f64)]| -> Value {
            let pairs = all.iter().map(|(name, value)| (name.clone(), json!(value)));
            Value::Object(pairs.collect())
        };
        let machine = self.machine.iter();
        let machine = machine.map(|(name, value)| (name.clone(), json!(value)));
        let checks = self.checks.iter().map(|check| {
            json!({
                "name": check.name,
                "about": check.about,
                "result": check.verdict.text(),
                "lines": check.lines,
                "figures": pairs(&check.figures),
            })
        });
        json!({
            "machine": Value::Object(machine.collect()),
            "checks": checks.collect::<Vec<_>>(),
        })
    }

    /// Writes `report.md` and `report.json`.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        std::fs::write(folder.join("report.md"), self.markdown())?;
        let json = serde_json::to_string_pretty(&self.json()).map_err(std::io::Error::other)?;
        std::fs::write(folder.join("report.json"), json + "\n")
    }
}

/// A figure for people: counts as they are, others with three digits at least. The figures for programs have all digits.
fn rounded(value: f64) -> String {
    match value.abs() {
        _ if value.fract() == 0.0 => format!("{value}"),
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
