//! Hotspots as JSON.

use gputrail_analysis::hotspots::{
    HotspotReport, KernelHotspots, SampledInstruction, SampledLine, Tally,
};
use serde_json::{Map, Value, json};

/// One object with all kernels, lines and instructions.
pub fn write(report: &HotspotReport, kernels: &[&KernelHotspots]) -> String {
    let sampled = report.sampled.iter().map(|how| {
        json!({
            "device": how.agent,
            "method": how.method.name(),
            "interval": how.interval,
            "unit": how.unit.name(),
        })
    });
    let kernels = kernels.iter().map(|of| kernel(of, report.samples));
    let all = json!({
        "samples": report.samples,
        "invalid": report.invalid,
        "dropped": report.dropped,
        "sampled": sampled.collect::<Vec<_>>(),
        "kernels": kernels.collect::<Vec<_>>(),
    });
    format!("{all:#}\n")
}

fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}

/// The fields of any tally, with its share of `all`.
fn tally(tally: &Tally, all: u64) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("samples".into(), tally.samples.into());
    map.insert("share".into(), share(tally.samples, all).into());
    map.insert("issue_rate".into(), tally.issue_rate().into());
    map.insert("latency_samples".into(), tally.latency.into());
    let named = |list: Vec<(Option<&'static str>, u64)>| -> Value {
        let list = list.into_iter();
        let list = list.map(|(name, count)| (name.unwrap_or("unknown").to_owned(), count.into()));
        Value::Object(list.collect())
    };
    let reasons = tally
        .reasons
        .iter()
        .map(|(why, count)| (why.name(), *count));
    map.insert("not_issued".into(), named(reasons.collect()));
    let stalls = tally.stalls.iter().map(|(why, count)| (why.name(), *count));
    map.insert("cupti_stalls".into(), named(stalls.collect()));
    let types = tally
        .types
        .iter()
        .map(|(what, count)| (what.name(), *count));
    map.insert("issued".into(), named(types.collect()));
    let executions = &tally.executions;
    if executions.executed > 0 {
        map.insert("executed".into(), executions.executed.into());
        map.insert("threads".into(), executions.threads.into());
        map.insert("diverged".into(), executions.diverged.into());
        map.insert("transactions".into(), executions.transactions.into());
        let ideal = executions.ideal_transactions;
        map.insert("ideal_transactions".into(), ideal.into());
    }
    map
}

fn kernel(kernel: &KernelHotspots, all: u64) -> Value {
    let mut map = Map::new();
    map.insert("name".into(), kernel.name.clone().into());
    map.insert("device".into(), kernel.agent.clone().into());
    map.append(&mut tally(&kernel.tally, all));
    map.insert("dispatches".into(), kernel.dispatches.into());
    map.insert("dropped".into(), kernel.dropped.into());
    let all = kernel.tally.samples;
    let lines = kernel.lines.iter().map(|of| line(of, all));
    map.insert("lines".into(), lines.collect());
    let instructions = kernel.instructions.iter();
    let instructions = instructions.map(|of| instruction(kernel, of, all));
    map.insert("instructions".into(), instructions.collect());
    let missing = kernel.missing.iter();
    let missing = missing.map(|(why, samples)| json!({"why": why, "samples": samples}));
    map.insert("without_line".into(), missing.collect());
    map.into()
}

fn line(line: &SampledLine, all: u64) -> Value {
    let mut map = Map::new();
    map.insert("file".into(), line.file.clone().into());
    map.insert("line".into(), line.line.into());
    map.insert("text".into(), line.text.clone().into());
    map.append(&mut tally(&line.tally, all));
    map.into()
}

fn instruction(kernel: &KernelHotspots, instruction: &SampledInstruction, all: u64) -> Value {
    let mut map = Map::new();
    map.insert("code_object".into(), instruction.code_object.clone().into());
    map.insert("offset".into(), instruction.offset.into());
    map.insert("symbol".into(), instruction.symbol.clone().into());
    map.insert("text".into(), instruction.text.clone().into());
    let line = instruction.line.map(|line| &kernel.lines[line]);
    map.insert("file".into(), line.map(|line| line.file.clone()).into());
    map.insert("line".into(), line.map(|line| line.line).into());
    let frames = instruction.frames.iter();
    let frames = frames
        .map(|(function, file, line)| json!({"function": function, "file": file, "line": line}));
    map.insert("frames".into(), frames.collect());
    map.append(&mut tally(&instruction.tally, all));
    map.into()
}
