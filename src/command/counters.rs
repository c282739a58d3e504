//! `gputrail counters`: what agents can count, by the definitions of their vendors.

mod chips;

use crate::cli::{CountersMode, Counting, Replay};
use crate::figures::count;
use crate::tables::{Cell, Column, Format, Table};
use crate::{Failure, say, stdout};
use anyhow::{Context, anyhow, bail};
use clap::{Args, Subcommand};
use gputrail_collect::counting::CounterChoice;
use gputrail_collect::scope;
use gputrail_counters::{
    self as counters, Architecture, Catalogue, CounterIndex, Definition, KernelSelection,
    Resolution, Sources,
};
use gputrail_definitions::CounterInput;
use gputrail_interface::counting::CountingMode;
use gputrail_record::Nanos;
use gputrail_sources::{cuda, opencl, sim};
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

const TEMPLATE: &str =
    "{about}\n\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}\n";

const EXAMPLES: &str = "\
Examples:
  gputrail counters list                                   architectures
  gputrail counters list -a gfx90a                         counters and metrics of one
  gputrail counters info -a gfx90a OccupancyPercent        formula down to basic counters
  gputrail counters check -a gfx90a MfmaUtil,L2CacheHit    passes of a kernel that they need
  gputrail counters list --agent 0                         counters that an agent of this machine collects
  gputrail counters list --agent sim                       those of the simulated GPU
  gputrail counters list -d metrics.xml -a gfx906          by other definitions
  gputrail counters list --chip gh100                      metrics of a chip of NVIDIA's
  gputrail counters check --chip gh100 dram__bytes_read.sum,sm__throughput";

const NOTES: &str = "\
The definitions that are built in are rocprofiler-sdk's: they tell what the hardware can count, and in how many passes. `gputrail
record --counters` and `gputrail demo --counters` collect the counters of agents.

--chip asks NVIDIA's libnvperf_host, which comes with CUPTI and needs no GPU; GPUTRAIL_CUPTI names a libcupti beside which it lies.
`gputrail record --counters` has CUPTI count them for kernels of CUDA (docs/counters.md).

Exit codes: 0 on success; 1 when definitions of a file were refused, each with its place; 125 when there is no such counter or
architecture, or a file cannot be read.";

/// Tell what the counters of GPUs are, and in how many passes they can be collected
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = NOTES)]
pub struct Counters {
    #[command(subcommand)]
    question: Question,
}

#[derive(Subcommand)]
enum Question {
    /// List architectures, or the counters and metrics of one
    List {
        #[command(flatten)]
        of: Of,

        /// The format of the table
        #[arg(long, value_enum, default_value = "table")]
        format: Format,
    },
    /// Describe a counter or metric: its formula, and the basic counters that it needs
    Info {
        #[command(flatten)]
        of: Of,

        /// Its name; upper and lower case are alike
        name: String,
    },
    /// Tell in how many passes of a kernel counters and metrics can be collected together
    Check {
        #[command(flatten)]
        of: Of,

        /// Their names
        #[arg(required = true, value_delimiter = ',')]
        names: Vec<String>,
    },
}

#[derive(Args)]
struct Of {
    /// The architecture, such as gfx90a
    #[arg(short, long, value_name = "NAME")]
    architecture: Option<String>,

    /// Read definitions from a file instead: metrics.xml of ROCProfiler v1, counter_defs.yaml of rocprofiler-sdk, or the public
    /// counters of GPUPerfAPI. May be given several times
    #[arg(short, long, value_name = "FILE")]
    definitions: Vec<PathBuf>,

    /// The counters that an agent collects: its number in `gputrail agents`, `cuda:0` for one of CUDA's, `sim` for the
    /// simulated GPU, `sim:gfx11` as one of that architecture
    #[arg(long, value_name = "AGENT", conflicts_with_all = ["architecture", "definitions"])]
    agent: Option<String>,

    /// The metrics of a chip of NVIDIA's, such as gh100, as NVIDIA's library knows them
    #[arg(long, value_name = "CHIP", conflicts_with_all = ["architecture", "definitions", "agent"])]
    chip: Option<String>,
}

/// Runs the command; the result is the exit code.
pub fn run(arguments: &Counters) -> Result<u8, Failure> {
    let (Question::List { of, .. } | Question::Info { of, .. } | Question::Check { of, .. }) =
        &arguments.question;
    if let Some(chip) = &of.chip {
        let text = match &arguments.question {
            Question::List { format, .. } => {
                stdout::print_tables(&[chips::list(chip)?], *format)?;
                return Ok(0);
            }
            Question::Info { name, .. } => chips::info(chip, name),
            Question::Check { names, .. } => chips::check(chip, names),
        };
        stdout::print(&text?)?;
        return Ok(0);
    }
    let catalogue = of.catalogue()?;
    catalogue
        .refused
        .iter()
        .for_each(|refused| say!("{refused}"));
    let text = match &arguments.question {
        Question::List { of, format } => {
            for note in of.agent.iter().flat_map(|agent| notes_of_agent(agent)) {
                say!("{note}");
            }
            let table = match &of.architecture {
                Some(name) => counters_of(find(&catalogue, name)?),
                None if of.agent.is_some() => counters_of(of.architecture(&catalogue)?),
                None => architectures(&catalogue),
            };
            stdout::print_tables(&[table], *format)?;
            return Ok(u8::from(!catalogue.refused.is_empty()));
        }
        Question::Info { of, name } => {
            let architecture = of.architecture(&catalogue)?;
            info(architecture, counter(architecture, name)?)
        }
        Question::Check { of, names } => {
            let architecture = of.architecture(&catalogue)?;
            check(architecture, &all(architecture, names)?)?
        }
    };
    stdout::print(&text)?;
    Ok(u8::from(!catalogue.refused.is_empty()))
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
    fn catalogue(&self) -> Result<Catalogue, anyhow::Error> {
        if let Some(agent) = &self.agent {
            let mut catalogue = Catalogue::default();
            let counters = counters_of_agent(agent)?;
            catalogue.architectures.insert(agent.clone(), counters);
            return Ok(catalogue);
        }
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
        match self.architecture.as_ref().or(self.agent.as_ref()) {
            Some(name) => find(catalogue, name),
            None => Err(anyhow!(
                "name an architecture with -a; there are {}",
                names_of(catalogue)
            )),
        }
    }
}

/// The events and metrics of a device of CUDA that is too old to have those of its chip.
fn counters_of_cuda(number: &str) -> Result<Architecture, anyhow::Error> {
    let devices = cuda::enumerate().map_err(|error| anyhow!("{error}"))?;
    let found = number.parse().ok();
    let found = found.and_then(|number: usize| Some((number, devices.get(number)?)));
    let (place, device) = found
        .ok_or_else(|| anyhow!("there is no device cuda:{number}: `gputrail agents` lists them"))?;
    if !device.is_counted_by_events() {
        bail!(
            "cuda:{number} ({}) has the metrics of its chip: `gputrail counters list --chip NAME` lists them, such as gh100",
            device.name
        );
    }
    let counters = cuda::event_counters(place as i32, &device.name);
    counters.map_err(|reason| anyhow!("cuda:{number} ({}): {reason}", device.name))
}

/// Sentences about counters that an agent of this machine lacks.
fn notes_of_agent(agent: &str) -> Vec<String> {
    let number = agent.parse::<usize>().ok();
    let devices = number.and_then(|_| opencl::all_devices().ok());
    match (number, devices) {
        (Some(number), Some(devices)) => devices
            .get(number)
            .map_or_else(Vec::new, |device| device.counter_notes()),
        _ => Vec::new(),
    }
}

/// The counters that an agent of this machine collects.
fn counters_of_agent(agent: &str) -> Result<Architecture, anyhow::Error> {
    if agent == "sim" {
        return Ok((*sim::countable().architecture).clone());
    }
    let architecture = agent.strip_prefix("sim:").and_then(sim::countable_as);
    if let Some(countable) = architecture {
        return Ok((*countable.architecture).clone());
    }
    if let Some(number) = agent.strip_prefix("cuda:") {
        return counters_of_cuda(number);
    }
    let number: usize = agent.parse().map_err(|_| {
        anyhow!("{agent:?}: expected the number of an agent, cuda:0 or another of CUDA's, sim, or sim:gfx11")
    })?;
    let devices = opencl::all_devices().map_err(|error| anyhow!("{error}"))?;
    let Some(device) = devices.get(number) else {
        return Err(anyhow!(
            "there is no agent {number}: `gputrail agents` lists them"
        ));
    };
    match device.countable() {
        Some(countable) => Ok((*countable.architecture).clone()),
        None => Err(anyhow!(
            "agent {number} ({}) has no counters that can be collected",
            device.name
        )),
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

fn counter(architecture: &Architecture, name: &str) -> Result<CounterIndex, anyhow::Error> {
    let found = architecture.find(name);
    found
        .or_else(|| architecture.find_ignoring_case(name))
        .ok_or_else(|| {
            let nearest = counters::the_nearest(&architecture.nearest(name));
            anyhow!("there is no counter or metric {name:?}{nearest}")
        })
}

/// The counters and metrics with these names. All unknown names are told at once; a comma at the end is no name.
fn all(architecture: &Architecture, names: &[String]) -> Result<Vec<CounterIndex>, anyhow::Error> {
    let names = names.iter().map(|name| name.trim());
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for name in names.filter(|name| !name.is_empty()) {
        match counter(architecture, name) {
            Ok(index) => found.push(index),
            Err(problem) => problems.push(problem.to_string()),
        }
    }
    match (&problems[..], &found[..]) {
        ([], []) => bail!("no counter is named"),
        ([], _) => Ok(found),
        _ => bail!("{}", problems.join("; ")),
    }
}

fn column(title: &'static str, key: &'static str) -> Column {
    Column { title, key }
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

fn counters_of(architecture: &Architecture) -> Table {
    let row = |counter: &counters::Counter| {
        let from = match &counter.definition {
            Definition::Basic { block, event, .. } => {
                format!(
                    "{}, event {event}",
                    architecture.blocks()[block.0 as usize].name
                )
            }
            Definition::Derived(expression, _) => expression.text.clone(),
        };
        vec![
            Cell::Name(counter.name.clone()),
            Cell::Text(from),
            Cell::Text(counter.description.clone()),
        ]
    };
    let mut rows: Vec<_> = architecture.counters().iter().map(row).collect();
    rows.sort_by(|left, right| left[0].for_people().cmp(&right[0].for_people()));
    Table {
        name: column("Counters and metrics", "counters"),
        columns: vec![
            column("name", "name"),
            column("block and event, or formula", "from"),
            column("description", "description"),
        ],
        rows,
    }
}

/// A basic counter with its block: "SQ_WAVES: block SQ, event 4".
fn basic(architecture: &Architecture, index: CounterIndex, resolution: Resolution) -> String {
    let counter = architecture.counter(index);
    let mut text = counter.name.clone();
    if let Definition::Basic { block, event, .. } = &counter.definition {
        let block = &architecture.blocks()[block.0 as usize];
        let _ = write!(text, ": block {}, event {event}", block.name);
        match block.capacity {
            Some(u32::MAX) => {}
            Some(capacity) => {
                let _ = write!(text, " (the block counts {capacity} at a time)");
            }
            None => text += " (the block is taken to count one at a time)",
        }
    }
    match resolution {
        Resolution::None => {}
        Resolution::Low => text += "; added up every fourth cycle, which takes a second place",
        Resolution::High => text += "; added up every cycle, which takes a second place",
    }
    text
}

fn info(architecture: &Architecture, index: CounterIndex) -> String {
    let counter = architecture.counter(index);
    let mut text = format!("{}\n", counter.name);
    if !counter.description.is_empty() {
        let _ = writeln!(text, "  {}", counter.description);
    }
    let _ = writeln!(text, "  defined in {}", counter.at);
    let mut metrics = vec![index];
    let mut next = 0;
    while let Some(index) = metrics.get(next).copied() {
        if let Definition::Derived(expression, formula) = &architecture.counter(index).definition {
            let _ = writeln!(
                text,
                "  {} = {}",
                architecture.counter(index).name,
                expression.text
            );
            formula.each_metric(&mut |used| {
                if !metrics.contains(&used) {
                    metrics.push(used);
                }
            });
        }
        next += 1;
    }
    let counted = architecture.basic_counters(index);
    for (index, resolution) in &counted {
        let _ = writeln!(text, "  {}", basic(architecture, *index, *resolution));
    }
    if let Ok(plan) = counters::plan(architecture, &[index])
        && !plan.passes.is_empty()
    {
        let _ = writeln!(text, "  passes: {}", plan.passes.len());
    }
    text
}

fn check(architecture: &Architecture, wanted: &[CounterIndex]) -> Result<String, anyhow::Error> {
    let plan = counters::plan(architecture, wanted).map_err(|error| anyhow!(error))?;
    let mut text = passes_of_a_kernel(plan.passes.len());
    for (number, pass) in plan.passes.iter().enumerate() {
        let _ = writeln!(text, "pass {}", number + 1);
        for (index, resolution) in pass {
            let _ = writeln!(text, "  {}", basic(architecture, *index, *resolution));
        }
    }
    let most = plan.needed.values().max().copied().unwrap_or(0);
    if most > 1 {
        let full = plan.needed.iter().filter(|(_, needed)| **needed == most);
        let names: Vec<&str> = full
            .map(|(block, _)| architecture.blocks()[block.0 as usize].name.as_str())
            .collect();
        let _ = writeln!(
            text,
            "the number of passes comes from block {}",
            names.join(", ")
        );
        let names: Vec<&str> = wanted
            .iter()
            .map(|index| architecture.counter(*index).name.as_str())
            .collect();
        text += &together(&names, &mut |chosen| {
            let chosen: Vec<_> = chosen
                .iter()
                .filter_map(|name| architecture.find(name))
                .collect();
            Ok(counters::plan_one_pass(architecture, &chosen).is_ok())
        })?;
    }
    Ok(text)
}

/// "2 passes of a kernel".
fn passes_of_a_kernel(passes: usize) -> String {
    count(passes as u64, "pass") + " of a kernel\n"
}

/// Tells which of `names` can be counted at a period, where there is one pass: sets, each filled in the order of the names,
/// and the names that need several passes alone. `fit` tells whether some of them fit one pass.
fn together(
    names: &[&str],
    fit: &mut dyn FnMut(&[&str]) -> Result<bool, anyhow::Error>,
) -> Result<String, anyhow::Error> {
    let mut sets: Vec<Vec<&str>> = Vec::new();
    let mut alone = Vec::new();
    'names: for name in names {
        if !fit(&[name])? {
            alone.push(*name);
            continue;
        }
        for set in &mut sets {
            set.push(name);
            if fit(set)? {
                continue 'names;
            }
            set.pop();
        }
        sets.push(vec![name]);
    }
    let mut text =
        "at a period, where there is one pass, these can be counted together:\n".to_owned();
    for set in sets {
        let _ = writeln!(text, "  {}", set.join(","));
    }
    for name in alone {
        let _ = writeln!(text, "  {name} needs several passes alone: not at a period");
    }
    Ok(text)
}
