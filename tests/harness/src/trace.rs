//! A trace as Perfetto's own trace processor reads it: SQL in, rows out. By default it is v52, the oldest version that
//! traces support. If `GPUTRAIL_TRACE_PROCESSOR` names a newer `trace_processor_shell`, that one gets the same queries
//! and has to agree.

use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::program::run;
use crate::{machine, repository};

/// A trace, opened.
pub struct Trace {
    path: PathBuf,
    engines: Vec<Engine>,
}

impl Trace {
    /// Opens a trace.
    #[track_caller]
    pub fn open(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        assert!(path.exists(), "{} does not exist", path.display());
        let newer = env::var_os("GPUTRAIL_TRACE_PROCESSOR").map(PathBuf::from);
        let engines = [None, newer.as_deref()]
            .into_iter()
            .enumerate()
            .filter(|(index, shell)| *index == 0 || shell.is_some())
            .map(|(_, shell)| Engine::start(&path, shell))
            .collect();
        Self { path, engines }
    }

    /// The rows of a query's result; each becomes a tuple of its columns.
    #[track_caller]
    pub fn rows<T: DeserializeOwned>(&mut self, sql: &str) -> Vec<T> {
        let answers: Vec<Value> = self.engines.iter_mut().map(|e| e.ask(sql)).collect();
        for other in &answers[1..] {
            assert_eq!(
                &answers[0], other,
                "the two trace processors disagree on {sql}"
            );
        }
        let answer = answers
            .into_iter()
            .next()
            .expect("there is always one engine");
        serde_json::from_value(answer).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The single value of a query's result.
    #[track_caller]
    pub fn value<T: DeserializeOwned>(&mut self, sql: &str) -> T {
        let mut rows = self.rows::<(T,)>(sql);
        assert_eq!(rows.len(), 1, "{sql} has {} answers", rows.len());
        rows.remove(0).0
    }

    /// Checks that Perfetto read everything in the trace without an error and without a loss.
    #[track_caller]
    pub fn assert_sound(&mut self) -> &mut Self {
        let complaints = self.complaints();
        assert!(
            complaints.is_empty(),
            "{}: {complaints:?}",
            self.path.display()
        );
        self
    }

    /// Every error and loss that Perfetto counted in the trace.
    pub fn complaints(&mut self) -> Vec<(String, i64)> {
        self.rows(
            "select name, sum(value) from stats where severity in ('error', 'data_loss') and value > 0 group by name",
        )
    }

    /// The path of the trace's file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The number of packets of each kind, as read by the Python bindings of Perfetto's messages. Panics if a packet has a
/// field that they do not know.
#[track_caller]
pub fn packet_kinds(trace: &Path) -> serde_json::Map<String, Value> {
    let output = run(Command::new("python3")
        .env("PYTHONPATH", machine::tools().join("python"))
        .arg(repository("tests/perfetto/check_packets.py"))
        .arg(trace))
    .well();
    let mut report: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    serde_json::from_value(report["kinds"].take()).expect("an object")
}

/// A trace processor with the trace loaded, controlled through `query.mjs`.
struct Engine {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Engine {
    fn start(trace: &Path, shell: Option<&Path>) -> Self {
        let mut command = Command::new("node");
        // Optimising the trace processor takes three times as long as loading a trace of a test.
        command.arg("--liftoff-only");
        command.arg(repository("tests/perfetto/query.mjs"));
        if let Some(shell) = shell {
            command.arg("--shell").arg(shell);
        }
        let mut process = command
            .arg(trace)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node starts");
        Self {
            questions: process.stdin.take().expect("piped"),
            answers: BufReader::new(process.stdout.take().expect("piped")),
            process,
        }
    }

    #[track_caller]
    fn ask(&mut self, sql: &str) -> Value {
        let question = Value::from(sql).to_string() + "\n";
        self.questions
            .write_all(question.as_bytes())
            .expect("trace processor listens");
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .expect("trace processor answers");
        let mut answer: Value = serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("trace processor fails on {sql}: {line}"));
        assert!(answer["error"].is_null(), "{sql}: {}", answer["error"]);
        answer["rows"].take()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
