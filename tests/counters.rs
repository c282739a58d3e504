//! The definitions that AMD publishes: all of them are read, and evaluate to what a few lines of Python make of them.

use gputrail_counters::{
    self as counters, Catalogue, CounterIndex, Definition, Invalid, Measured, Property, Resolution,
    Sources,
};
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;

const INSTANCES: u32 = 32;

fn root() -> PathBuf {
    env!("CARGO_MANIFEST_DIR").into()
}

fn read(file: &str) -> Catalogue {
    let mut sources = Sources::default();
    gputrail_definitions::read(&root().join("src/definitions/amd").join(file), &mut sources)
        .unwrap();
    sources.into()
}

/// The values that `tests/counters/evaluate.py` makes up.
fn made_up(name: &str) -> Vec<Vec<f64>> {
    let instance =
        |number: u32| f64::from(crc32fast::hash(format!("{name}/{number}").as_bytes()) % 1000);
    (0..INSTANCES)
        .map(|number| vec![instance(number)])
        .collect()
}

fn properties() -> HashMap<Property, f64> {
    HashMap::from([
        (Property::ComputeUnits, 104.0),
        (Property::Simds, 416.0),
        (Property::SimdsPerComputeUnit, 4.0),
        (Property::ShaderEngines, 8.0),
        (Property::ShaderArrays, 16.0),
        (Property::ArraysPerEngine, 2.0),
        (Property::Dies, 2.0),
        (Property::WaveSize, 64.0),
    ])
}

/// Reads `file`, evaluates all of its metrics, and compares with Python. Returns the number of metrics.
fn agrees(format: &str, file: &str) -> usize {
    let catalogue = read(file);
    assert_eq!(catalogue.refused, []);
    let mut ours = HashMap::new();
    for (name, architecture) in &catalogue.architectures {
        let all = (0..architecture.counters().len() as u32).map(CounterIndex);
        let basic = all.filter(|index| {
            matches!(
                architecture.counter(*index).definition,
                Definition::Basic { .. }
            )
        });
        let values = basic.flat_map(|index| {
            let values = made_up(&architecture.counter(index).name);
            [Resolution::None, Resolution::Low, Resolution::High]
                .map(|resolution| ((index, resolution), values.clone()))
        });
        let measured = Measured {
            dispatches: 1,
            counters: values.collect(),
            properties: properties(),
            kernel_times: Vec::new(),
        };
        let metrics = architecture.metrics_in_order();
        let columns = counters::evaluate(architecture, metrics, &measured);
        for (metric, column) in metrics.iter().zip(columns) {
            let metric = architecture.counter(*metric).name.clone();
            ours.insert((name.clone(), metric), column.get(0));
        }
    }
    let script = Command::new("python3")
        .arg(root().join("tests/counters/evaluate.py"))
        .args([format, file])
        .current_dir(root().join("src/definitions/amd"))
        .output()
        .expect("python3");
    assert!(
        script.status.success(),
        "{}",
        String::from_utf8_lossy(&script.stderr)
    );
    let text = String::from_utf8(script.stdout).unwrap();
    let mut count = 0;
    for line in text.lines() {
        let theirs: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| theirs[key].as_str().unwrap().to_owned();
        let key = (text("architecture"), text("metric"));
        match (theirs["value"].as_f64(), ours[&key]) {
            (Some(expected), Ok(value)) => {
                let error = (value - expected).abs() / expected.abs().max(1.0);
                assert!(error < 1e-9, "{key:?}: {value}, and Python says {expected}");
            }
            (None, Err(Invalid::DivisionByZero)) => {}
            other => panic!("{key:?}: {other:?}"),
        }
        count += 1;
    }
    assert_eq!(count, ours.len(), "each metric once");
    count
}

#[test]
fn all_metrics_of_rocprofiler_v1_are_what_python_computes() {
    assert!(agrees("v1", "metrics.xml") > 1000);
}

#[test]
fn all_metrics_of_rocprofiler_sdk_are_what_python_computes() {
    assert!(agrees("sdk", "counter_defs.yaml") > 1000);
}

#[test]
fn all_public_counters_of_gpuperfapi_are_what_python_computes() {
    for generation in [7, 8] {
        let file = format!("gpuperfapi-2.20/PublicCounterDefinitionsCLGfx{generation}.txt");
        assert_eq!(agrees("gpa", &file), 20);
    }
}

#[test]
fn the_hardware_counters_of_gpuperfapi_are_all_read() {
    for (generation, count) in [(7, 11_000), (8, 15_000)] {
        let text = |name: &str| {
            let file = root().join(format!(
                "src/definitions/amd/gpuperfapi-2.20/{name}CLGfx{generation}.txt"
            ));
            std::fs::read_to_string(file).unwrap()
        };
        let (public, names) = (text("PublicCounterDefinitions"), text("CounterNames"));
        let mut sources = Sources::default();
        counters::read_gpuperfapi(("public", &public), ("names", &names), &mut sources);
        let catalogue = Catalogue::from(sources);
        assert_eq!(catalogue.refused, []);
        let architecture = &catalogue.architectures[&format!("CLGfx{generation}")];
        assert!(
            architecture.counters().len() > count,
            "{}",
            architecture.counters().len()
        );
    }
}
