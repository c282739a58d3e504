//! `gputrail counters`: what agents can count, by the definitions of their vendors.

use crate::carried::Carried;
use crate::cli::counters::{Counters, Of, Question};
use crate::cli::kernels::{CountersMode, Counting, Replay};
use crate::failure::Failure;
use crate::messages::say;
use crate::summary::columns::column;
use crate::tables::{Cell, Table};
use crate::{questions, stdout};
use anyhow::{Context, Error, anyhow, bail};
use gputrail_collect::counting::CounterChoice;
use gputrail_collect::question;
use gputrail_collect::scope;
use gputrail_counters::{Architecture, Catalogue, KernelSelection, Sources, describe};
use gputrail_definitions::CounterInput;
use gputrail_interface::counting::CountingMode;
use gputrail_record::Nanos;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// Runs the command; the result is the exit code.
pub fn run(arguments: &Counters, carried: Carried) -> Result<u8, Failure> {
    let (Question::List { of, .. } | Question::Info { of, .. } | Question::Check { of, .. }) =
        &arguments.question;
    if let Some((what, subject)) = of.subject() {
        return ask(carried, &arguments.question, what, subject);
    }
    let catalogue = of.catalogue()?;
    catalogue
        .refused
        .iter()
        .for_each(|refused| say!("{refused}"));
    let text = match &arguments.question {
        Question::List { of, format } => {
            let table = match &of.architecture {
                Some(name) => counters_table(describe::rows(find(&catalogue, name)?).into_iter()),
                None => architectures(&catalogue),
            };
            stdout::print_tables(&[table], *format, usize::MAX)?;
            return Ok(u8::from(!catalogue.refused.is_empty()));
        }
        Question::Info { of, name } => describe::info(of.architecture(&catalogue)?, name),
        Question::Check { of, names } => describe::check(of.architecture(&catalogue)?, names),
    };
    stdout::print(&text.map_err(Error::msg)?)?;
    Ok(u8::from(!catalogue.refused.is_empty()))
}

/// Asks the library what an agent, or a chip, counts.
fn ask(carried: Carried, question: &Question, what: &str, subject: &str) -> Result<u8, Failure> {
    let answer = |question: &str, names: &[String]| {
        let names = names.iter().map(String::as_str);
        let words: Vec<&str> = [what, question, subject].into_iter().chain(names).collect();
        questions::ask(carried, &words)
    };
    match question {
        Question::List { format, .. } => {
            if what == question::AGENT {
                answer("notes", &[])?
                    .lines()
                    .for_each(|note| say!("{note}"));
            }
            let answer = answer("list", &[])?;
            let table = if what == question::AGENT {
                counters_table(question::rows(&answer))
            } else {
                metrics_table(question::rows(&answer))
            };
            stdout::print_tables(&[table], *format, usize::MAX)?;
        }
        Question::Info { name, .. } => {
            stdout::print(&answer("info", std::slice::from_ref(name))?)?;
        }
        Question::Check { names, .. } => stdout::print(&answer("check", names)?)?,
    }
    Ok(0)
}

/// The default period at which counters of a device are read.
const DEFAULT_PERIOD: Duration = Duration::from_millis(1);
/// Maximum size of a file of `--counters-file`, in bytes.
const MAX_FILE: u64 = 1 << 20;

impl Counting {
    /// The counters that are asked for, if any.
    pub fn choice(&self) -> Result<Option<CounterChoice>, anyhow::Error> {
        let mut names = Vec::new();
        // A comma at the end is no name.
        let words = self.counters.iter().flat_map(|text| text.split(','));
        for word in words.map(str::trim).filter(|word| !word.is_empty()) {
            names.push(scope::name(word).context("--counters")?);
        }
        let mut kernels = KernelSelection::default();
        for file in &self.counters_file {
            let mut read = read_file(file)?;
            names.append(&mut read.names);
            match kernels.is_all() || read.kernels.is_all() || kernels == read.kernels {
                true if read.kernels.is_all() => {}
                true => kernels = read.kernels,
                false => bail!(
                    "{}: chooses other kernels than the file before: record them one after the other",
                    file.display()
                ),
            }
        }
        let is_device = self.counters_mode == Some(CountersMode::Device)
            || self.counters_mode.is_none() && self.counters_period.is_some();
        match (names.is_empty(), is_device, self.counters_period) {
            (true, false, None)
                if self.counters.is_empty()
                    && self.counters_file.is_empty()
                    && self.counters_mode.is_none()
                    && self.counters_range.is_none()
                    && self.counters_per_pass.is_none()
                    && self.replay == Replay::Kernel =>
            {
                return Ok(None);
            }
            (true, ..) => bail!("no counter is named: --counters and --counters-file name them"),
            (false, true, _) if !kernels.chooses_devices_alone() => {
                bail!(
                    "the file of --counters-file chooses kernels, which is for --counters-mode dispatch: at a period \
                     devices are read, whatever runs"
                )
            }
            (false, false, Some(_)) => {
                bail!("--counters-period is for --counters-mode device")
            }
            (false, true, _) if self.replay == Replay::Application => {
                bail!("--replay is for --counters-mode dispatch: there is one pass at a period")
            }
            (false, true, _) if self.counters_per_pass.is_some() => {
                bail!(
                    "--counters-per-pass is for --counters-mode dispatch: there is one pass at a period"
                )
            }
            _ => {}
        }
        let is_range = self.counters_mode == Some(CountersMode::Range)
            || self.counters_mode.is_none() && self.counters_range.is_some();
        if self.counters_range.is_some() && !is_range {
            bail!("--counters-range is for --counters-mode range");
        }
        if is_range && !kernels.is_all() {
            bail!(
                "the file of --counters-file chooses kernels, which is for --counters-mode dispatch: a range has the values of \
                 all its kernels"
            );
        }
        if is_range && self.replay == Replay::Application {
            bail!(
                "--replay application is for --counters-mode dispatch: the values of ranges of several runs are not joined. Name \
                 counters that fit one pass, and record the program once more for the others"
            );
        }
        let range = self.counters_range.as_deref().map(scope::name);
        let range = range.transpose().context("--counters-range")?;
        let period = self.counters_period.unwrap_or(DEFAULT_PERIOD);
        let mode = match is_device {
            false if is_range => CountingMode::Range,
            false => CountingMode::Dispatch,
            true => CountingMode::Device {
                period: Nanos(period.as_nanos() as u64),
            },
        };
        Ok(Some(CounterChoice {
            names,
            mode,
            range,
            per_pass: self.counters_per_pass,
            run: (self.replay == Replay::Application).then_some(0),
            kernels,
        }))
    }
}

/// Reads a file of `--counters-file`.
fn read_file(file: &Path) -> Result<CounterInput, anyhow::Error> {
    let cannot_read = || format!("cannot read {}", file.display());
    let mut text = String::new();
    let opened = File::open(file).with_context(cannot_read)?;
    let size = opened.take(MAX_FILE + 1).read_to_string(&mut text);
    if size.with_context(cannot_read)? as u64 > MAX_FILE {
        bail!(
            "{}: more than {MAX_FILE} bytes, too many for names of counters",
            file.display()
        );
    }
    let is_yaml = file
        .extension()
        .is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
    let input = gputrail_definitions::read_input(&text, is_yaml);
    let input = input.map_err(|error| anyhow!("{}:{error}", file.display()))?;
    let kernels = &input.kernels;
    let texts = kernels.names.iter().chain(&kernels.include);
    for text in texts.chain(&kernels.exclude) {
        scope::name(text).with_context(|| file.display().to_string())?;
    }
    Ok(input)
}

impl Of {
    /// The agent or chip that is asked about, after the word that says which of them it is.
    fn subject(&self) -> Option<(&'static str, &str)> {
        let agent = self.agent.as_deref().map(|name| (question::AGENT, name));
        agent.or(self.chip.as_deref().map(|name| (question::CHIP, name)))
    }

    fn catalogue(&self) -> Result<Catalogue, anyhow::Error> {
        let mut sources = Sources::default();
        if self.definitions.is_empty() {
            gputrail_definitions::read_built_in(&mut sources);
        }
        for file in &self.definitions {
            let read = gputrail_definitions::read(file, &mut sources);
            read.with_context(|| format!("cannot read {}", file.display()))?;
        }
        Ok(sources.into())
    }

    fn architecture<'c>(
        &self,
        catalogue: &'c Catalogue,
    ) -> Result<&'c Architecture, anyhow::Error> {
        match &self.architecture {
            Some(name) => find(catalogue, name),
            None => Err(anyhow!(
                "name an architecture with -a; there are {}",
                names_of(catalogue)
            )),
        }
    }
}

fn names_of(catalogue: &Catalogue) -> String {
    let names: Vec<&str> = catalogue.architectures.keys().map(String::as_str).collect();
    names.join(", ")
}

fn find<'c>(catalogue: &'c Catalogue, name: &str) -> Result<&'c Architecture, anyhow::Error> {
    let found = catalogue.architectures.get(name);
    found.ok_or_else(|| {
        anyhow!(
            "there is no architecture {name:?}; there are {}",
            names_of(catalogue)
        )
    })
}

fn architectures(catalogue: &Catalogue) -> Table {
    let row = |(name, architecture): (&String, &Architecture)| {
        let metrics = architecture.metrics_in_order().len();
        let basic = architecture.counters().len() - metrics;
        vec![
            Cell::Text(name.clone()),
            Cell::Count(architecture.blocks().len() as u64),
            Cell::Count(basic as u64),
            Cell::Count(metrics as u64),
        ]
    };
    Table {
        name: column("Architectures", "architectures"),
        columns: vec![
            column("name", "name"),
            column("blocks", "blocks"),
            column("counters", "counters"),
            column("metrics", "metrics"),
        ],
        rows: catalogue.architectures.iter().map(row).collect(),
    }
}

/// The table of `rows`: name, block and event or formula, description.
fn counters_table(rows: impl Iterator<Item = [String; 3]>) -> Table {
    let row = |[name, from, description]: [String; 3]| {
        vec![Cell::Name(name), Cell::Text(from), Cell::Text(description)]
    };
    Table {
        name: column("Counters and metrics", "counters"),
        columns: vec![
            column("name", "name"),
            column("block and event, or formula", "from"),
            column("description", "description"),
        ],
        rows: rows.map(row).collect(),
    }
}

/// The table of a chip's metrics.
fn metrics_table(rows: impl Iterator<Item = [String; 5]>) -> Table {
    let row = |[name, kind, hardware, unit, description]: [String; 5]| {
        let mut row = vec![Cell::Name(name)];
        row.extend([kind, hardware, unit, description].map(Cell::Text));
        row
    };
    Table {
        name: column("Metrics", "metrics"),
        columns: vec![
            column("name", "name"),
            column("kind", "kind"),
            column("hardware", "hardware"),
            column("unit", "unit"),
            column("description", "description"),
        ],
        rows: rows.map(row).collect(),
    }
}
