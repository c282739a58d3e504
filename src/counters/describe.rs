//! Counters in words: what one is, what it is derived from, and the passes that several take.

use crate::{
    Architecture, Counter, CounterIndex, Definition, Resolution, plan, plan_one_pass, the_nearest,
};
use gputrail_record::count;
use std::fmt::Write;

/// The counter or metric with this name; upper and lower case are alike. The error names the nearest.
fn find(architecture: &Architecture, name: &str) -> Result<CounterIndex, String> {
    let found = architecture.find(name);
    found
        .or_else(|| architecture.find_ignoring_case(name))
        .ok_or_else(|| {
            let nearest = the_nearest(&architecture.nearest(name));
            format!("there is no counter or metric {name:?}{nearest}")
        })
}

/// The counters and metrics with these names. A comma at the end is no name.
fn find_all(architecture: &Architecture, names: &[String]) -> Result<Vec<CounterIndex>, String> {
    let names = names.iter().map(|name| name.trim());
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for name in names.filter(|name| !name.is_empty()) {
        match find(architecture, name) {
            Ok(index) => found.push(index),
            Err(problem) => problems.push(problem),
        }
    }
    match (&problems[..], &found[..]) {
        ([], []) => Err("no counter is named".to_owned()),
        ([], _) => Ok(found),
        _ => Err(problems.join("; ")),
    }
}

/// The counters and metrics in the order of their names: name, block and event or formula, description.
pub fn rows(architecture: &Architecture) -> Vec<[String; 3]> {
    let row = |counter: &Counter| {
        let from = match &counter.definition {
            Definition::Basic { block, event, .. } => {
                let block = &architecture.blocks()[block.0 as usize];
                format!("{}, event {event}", block.name)
            }
            Definition::Derived(expression, _) => expression.text.clone(),
        };
        [counter.name.clone(), from, counter.description.clone()]
    };
    let mut rows: Vec<_> = architecture.counters().iter().map(row).collect();
    rows.sort();
    rows
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

/// A counter or metric with its formula, and the basic counters that it needs.
///
/// # Errors
///
/// There is none with this name. The error names the nearest.
pub fn info(architecture: &Architecture, name: &str) -> Result<String, String> {
    let index = find(architecture, name)?;
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
    if let Ok(plan) = plan(architecture, &[index])
        && !plan.passes.is_empty()
    {
        let _ = writeln!(text, "  passes: {}", plan.passes.len());
    }
    Ok(text)
}

/// The passes of a kernel that counters and metrics need together.
///
/// # Errors
///
/// Names that there are not, each with the nearest; or counters that the hardware cannot count.
pub fn check(architecture: &Architecture, names: &[String]) -> Result<String, String> {
    let wanted = &find_all(architecture, names)?;
    let plan = plan(architecture, wanted).map_err(|error| error.to_string())?;
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
            Ok::<_, String>(plan_one_pass(architecture, &chosen).is_ok())
        })?;
    }
    Ok(text)
}

/// "2 passes of a kernel".
pub fn passes_of_a_kernel(passes: usize) -> String {
    count(passes as u64, "pass") + " of a kernel\n"
}

/// Tells which of `names` can be counted at a period, where there is one pass: sets, each filled in the order of the names,
/// and the names that need several passes alone. `fit` tells whether some of them fit one pass.
///
/// # Errors
///
/// The errors of `fit`.
pub fn together<E>(
    names: &[&str],
    fit: &mut dyn FnMut(&[&str]) -> Result<bool, E>,
) -> Result<String, E> {
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
