//! Output names with `%p`, `%h`, `%q{VAR}` and `%%`, as profilers of this field take them.
//! The variables are those of LLVM and MPI.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A name that is checked, whose variables are still to be filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPattern {
    parts: Vec<PatternPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPart {
    Text(OsString),
    Pid,
    Host,
    Variable(String),
}

/// The values that fill a pattern.
pub struct PatternValues<'a> {
    /// For `%p`.
    pub pid: u32,
    /// For `%h`.
    pub host: &'a OsStr,
    /// For `%q{VAR}`.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

/// A pattern, or an environment, that makes no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// A percent sign with something unknown behind it.
    #[error(
        "`{0}` in `{1}` is unknown: expected %p (process id), %h (host name), %q{{VAR}} (environment variable) or %% (a percent sign)"
    )]
    Unknown(String, String),
    /// The variable is not set.
    #[error("`%q{{{0}}}` names an environment variable that is not set")]
    NotSet(String),
    /// Nothing is left to name a file.
    #[error("the name is empty")]
    Empty,
}

impl OutputPattern {
    /// Reads a pattern.
    pub fn parse(text: &OsStr) -> Result<OutputPattern, PatternError> {
        let mut parts = Vec::new();
        let mut literal = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            if byte != b'%' {
                literal.push(byte);
                continue;
            }
            let part = match rest.first() {
                Some(b'%') => {
                    literal.push(b'%');
                    None
                }
                Some(b'p') => Some(PatternPart::Pid),
                Some(b'h') => Some(PatternPart::Host),
                Some(b'q') => {
                    let name = variable_name(&rest[1..]).ok_or_else(|| unknown(rest, text))?;
                    rest = &rest[2 + name.len()..];
                    Some(PatternPart::Variable(name.to_owned()))
                }
                _ => return Err(unknown(rest, text)),
            };
            rest = &rest[1..];
            if let Some(part) = part {
                if !literal.is_empty() {
                    parts.push(PatternPart::Text(OsString::from_vec(std::mem::take(
                        &mut literal,
                    ))));
                }
                parts.push(part);
            }
        }
        if !literal.is_empty() {
            parts.push(PatternPart::Text(OsString::from_vec(literal)));
        }
        if parts.is_empty() {
            return Err(PatternError::Empty);
        }
        Ok(OutputPattern { parts })
    }

    /// A pattern that stands for `text` as it is.
    pub fn literal(text: &OsStr) -> OutputPattern {
        OutputPattern {
            parts: vec![PatternPart::Text(text.to_owned())],
        }
    }

    /// Adds text at the end.
    pub fn with_suffix(mut self, text: &str) -> OutputPattern {
        self.parts.push(PatternPart::Text(text.into()));
        self
    }

    /// Adds `%p` at the end.
    pub fn with_pid(mut self) -> OutputPattern {
        self.parts.push(PatternPart::Pid);
        self
    }

    /// Whether the directory that it names depends on the process id.
    pub fn directory_needs_pid(&self) -> bool {
        let last_separator = self.parts.iter().rposition(
            |part| matches!(part, PatternPart::Text(text) if text.as_bytes().contains(&b'/')),
        );
        last_separator.is_some_and(|last| self.parts[..last].contains(&PatternPart::Pid))
    }

    /// The name.
    pub fn expand(&self, values: &PatternValues<'_>) -> Result<PathBuf, PatternError> {
        let mut name = OsString::new();
        for part in &self.parts {
            match part {
                PatternPart::Text(text) => name.push(text),
                PatternPart::Pid => name.push(values.pid.to_string()),
                PatternPart::Host => name.push(values.host),
                PatternPart::Variable(variable) => name.push(
                    (values.variable)(variable)
                        .ok_or_else(|| PatternError::NotSet(variable.clone()))?,
                ),
            }
        }
        if name.is_empty() {
            return Err(PatternError::Empty);
        }
        Ok(name.into())
    }
}

impl std::str::FromStr for OutputPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<OutputPattern, PatternError> {
        OutputPattern::parse(text.as_ref())
    }
}

/// `path`, then the same with `-2`, `-3`, ... before its extension: names to try until one is free.
pub fn numbered(path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let path = path.to_owned();
    (1u64..).map(move |number| {
        if number == 1 {
            return path.clone();
        }
        let mut name = path.file_stem().unwrap_or_default().to_owned();
        name.push(format!("-{number}"));
        if let Some(extension) = path.extension() {
            name.push(".");
            name.push(extension);
        }
        path.with_file_name(name)
    })
}

/// The name between the braces of `{VAR}...`, which must hold one.
fn variable_name(rest: &[u8]) -> Option<&str> {
    let inside = rest.strip_prefix(b"{")?;
    let end = inside.iter().position(|&byte| byte == b'}')?;
    let name = std::str::from_utf8(&inside[..end]).ok()?;
    (!name.is_empty() && !name.contains(['=', '\0'])).then_some(name)
}

fn unknown(rest: &[u8], text: &OsStr) -> PatternError {
    let shown = String::from_utf8_lossy(&rest[..rest.len().min(1)]);
    PatternError::Unknown(format!("%{shown}"), text.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn expand(text: &str) -> Result<String, PatternError> {
        let values = PatternValues {
            pid: 4242,
            host: "tower".as_ref(),
            variable: &|name| (name == "RANK").then(|| "7".into()),
        };
        Ok(text
            .parse::<OutputPattern>()?
            .expand(&values)?
            .to_str()
            .unwrap()
            .to_owned())
    }

    #[test]
    fn each_variable_is_filled_in() {
        assert_eq!(expand("run.pftrace").unwrap(), "run.pftrace");
        assert_eq!(
            expand("%h/run-%p.%q{RANK}%%.pftrace").unwrap(),
            "tower/run-4242.7%.pftrace"
        );
        assert_eq!(expand("%p%p").unwrap(), "42424242");
        assert_eq!(expand("%q{RANK}").unwrap(), "7");
    }

    #[test]
    fn unknown_placeholders_are_named_with_the_expected_ones() {
        for text in ["run%x", "run%", "%q", "%q{", "%q{}", "%qRANK", "%q{A=B}"] {
            let error = expand(text).unwrap_err();
            assert!(
                matches!(error, PatternError::Unknown(..)),
                "{text}: {error}"
            );
            assert!(error.to_string().contains("expected %p"), "{error}");
        }
        assert_eq!(expand("%q{NOPE}"), Err(PatternError::NotSet("NOPE".into())));
        assert_eq!(expand(""), Err(PatternError::Empty));
    }

    #[test]
    fn a_directory_that_needs_the_process_id_is_recognised() {
        let needs = |text: &str| text.parse::<OutputPattern>().unwrap().directory_needs_pid();
        assert!(needs("%p/run"));
        assert!(needs("a/%p-b/run"));
        assert!(!needs("a/%h/run-%p"));
        assert!(!needs("%p"));
    }

    #[test]
    fn a_taken_name_is_numbered_before_its_extension() {
        let names: Vec<_> = numbered(Path::new("a/run.pftrace")).take(3).collect();
        assert_eq!(
            names,
            ["a/run.pftrace", "a/run-2.pftrace", "a/run-3.pftrace"].map(PathBuf::from)
        );
        assert_eq!(
            numbered(Path::new("run")).nth(1),
            Some(PathBuf::from("run-2"))
        );
    }

    proptest! {
        #[test]
        fn text_without_percent_stands_for_itself(text in "[^%]{1,40}") {
            prop_assert_eq!(expand(&text).unwrap(), text);
        }

        #[test]
        fn no_text_makes_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = OutputPattern::parse(OsStr::from_bytes(&bytes));
        }
    }
}
