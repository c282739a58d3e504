//! The counters and metrics of an agent, as the SDK defines them: their names, their instances, and which of them fit one pass.
//!
//! The SDK has one pass. It computes metrics itself. A counter has a value for each position in its dimensions, such as XCC and shader
//! engine; instances are numbered as the SDK lists them, by the positions in the order of the dimensions, the first one fastest.

use super::refusals::why;
use super::service::{CounterDimension, SdkCounter};
use crate::rocm::sdk::{Refused, Sdk};
use gputrail_counters::describe::{passes_of_a_kernel, together};
use gputrail_counters::{
    Architecture, CounterLibrary, LibraryCounter, LibraryError, Usage, nearest, the_nearest,
};
use gputrail_rocprofiler::{AgentId, CounterConfigId, CounterId, Status};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// The block of metrics.
const COMPUTED: &str = "metrics";

/// The counters and metrics of one agent.
#[derive(Debug)]
pub struct AgentCounters {
    sdk: Sdk,
    agent: AgentId,
    /// The agent's name, for messages.
    device: String,
    /// In the order of their names.
    counters: Vec<SdkCounter>,
    /// By the name in lower case.
    by_name: HashMap<String, usize>,
}

impl AgentCounters {
    /// Asks the library for the counters of an agent. The error says what to do.
    pub(in crate::rocm) fn read(
        sdk: Sdk,
        agent: AgentId,
        device: &str,
    ) -> Result<AgentCounters, String> {
        let ids = sdk
            .counter_ids(agent)
            .map_err(|refused| why(&sdk, refused))?;
        let known = ids.into_iter().filter_map(|id| sdk.counter(id).ok());
        let counters: Vec<SdkCounter> = known.filter(|one| !one.name.is_empty()).collect();
        if counters.is_empty() {
            return Err(why(&sdk, Status::ERROR_AGENT_ARCH_NOT_SUPPORTED));
        }
        Ok(AgentCounters::of(sdk, agent, device, counters))
    }

    fn of(sdk: Sdk, agent: AgentId, device: &str, mut counters: Vec<SdkCounter>) -> AgentCounters {
        counters.sort_by(|a, b| a.name.cmp(&b.name));
        let named = counters.iter().enumerate();
        let by_name = named.map(|(place, one)| (one.name.to_ascii_lowercase(), place));
        AgentCounters {
            sdk,
            agent,
            device: device.to_owned(),
            by_name: by_name.collect(),
            counters,
        }
    }

    /// The counter with this name; upper and lower case are alike.
    pub(super) fn find(&self, name: &str) -> Option<&SdkCounter> {
        let name = name.trim();
        let same = |one: &&SdkCounter| one.name == name;
        self.counters.iter().find(same).or_else(|| {
            let place = self.by_name.get(&name.to_ascii_lowercase())?;
            self.counters.get(*place)
        })
    }

    fn found(&self, name: &str) -> Result<&SdkCounter, String> {
        self.find(name).ok_or_else(|| {
            let nearest = the_nearest(&self.nearest(name));
            format!("there is no counter or metric {name:?}{nearest}")
        })
    }

    fn nearest(&self, name: &str) -> Vec<String> {
        nearest(name, self.counters.iter().map(|one| one.name.as_str()))
    }

    /// The counters of it where all are counted that it has.
    pub(super) fn architecture(self: Arc<Self>) -> Architecture {
        let all = self.counters.iter().map(library_counter).collect();
        Architecture::of_library(all, self)
    }

    /// The set of these counters for the SDK.
    pub(super) fn config(&self, names: &[&str]) -> Result<CounterConfigId, Refused> {
        let ids: Vec<CounterId> = names
            .iter()
            .filter_map(|name| Some(self.find(name)?.id))
            .collect();
        self.sdk.create_config(self.agent, &ids)
    }

    /// Whether these counters fit one pass.
    fn fit(&self, names: &[&str]) -> Result<bool, String> {
        match self.config(names) {
            Ok(config) => {
                self.sdk.destroy_config(config);
                Ok(true)
            }
            Err(Status::ERROR_EXCEEDS_HW_LIMIT) => Ok(false),
            Err(refused) => Err(format!("{}: {}", names.join(", "), why(&self.sdk, refused))),
        }
    }

    /// The rows of a list: name, block or formula, description.
    pub fn rows(&self) -> Vec<[String; 3]> {
        let row = |one: &SdkCounter| [one.name.clone(), from(one), one.description.clone()];
        self.counters.iter().map(row).collect()
    }

    /// A counter or metric in words.
    ///
    /// # Errors
    ///
    /// There is none with this name. The error names the nearest.
    pub fn info(&self, name: &str) -> Result<String, String> {
        let counter = self.found(name)?;
        let mut text = format!("{}\n", counter.name);
        if !counter.description.is_empty() {
            let _ = writeln!(text, "  {}", counter.description);
        }
        let _ = match (counter.is_constant, counter.is_derived) {
            (true, _) => writeln!(text, "  a property of the agent"),
            (_, true) => writeln!(text, "  {} = {}", counter.name, counter.expression),
            _ => writeln!(text, "  block {}", counter.block),
        };
        let dimensions = self.sdk.counter_dimensions(counter.id);
        if !dimensions.is_empty() {
            let each = |one: &CounterDimension| format!("{} {}", short(&one.name), one.size);
            let names: Vec<String> = dimensions.iter().map(each).collect();
            let _ = writeln!(
                text,
                "  {} instances: {}",
                instances(&dimensions),
                names.join(" x ")
            );
        }
        if !self.fit(&[&counter.name])? {
            let _ = writeln!(
                text,
                "  it does not fit one pass, which is all that rocprofiler-sdk has"
            );
        }
        Ok(text)
    }

    /// The counters among these that fit one pass.
    ///
    /// # Errors
    ///
    /// Names that there are not, each with the nearest; or why the library cannot say it.
    pub fn check(&self, names: &[String]) -> Result<String, String> {
        let names = names.iter().map(|name| name.trim());
        let (mut found, mut problems) = (Vec::new(), Vec::new());
        for name in names.filter(|name| !name.is_empty()) {
            match self.found(name) {
                Ok(counter) => found.push(counter.name.as_str()),
                Err(problem) => problems.push(problem),
            }
        }
        if !problems.is_empty() {
            return Err(problems.join("; "));
        }
        if found.is_empty() {
            return Err("no counter is named".to_owned());
        }
        let passes = self.passes(&found)?;
        let mut text = passes_of_a_kernel(passes);
        if passes > 1 {
            text += "rocprofiler-sdk has one pass: count them in several runs of the program (--replay application)\n";
            text += &together(&found, &mut |chosen| self.fit(chosen))?;
        }
        Ok(text)
    }
}

/// The block of a counter, or the formula of a metric.
fn from(counter: &SdkCounter) -> String {
    match (counter.is_constant, counter.is_derived) {
        (true, _) => "a property of the agent".to_owned(),
        (_, true) => counter.expression.clone(),
        _ => counter.block.clone(),
    }
}

/// The name of a dimension for people: `DIMENSION_SHADER_ENGINE` is `SHADER_ENGINE`.
fn short(name: &str) -> &str {
    name.strip_prefix("DIMENSION_").unwrap_or(name)
}

/// The number of instances in these dimensions.
pub(super) fn instances(dimensions: &[CounterDimension]) -> usize {
    let sizes = dimensions.iter().map(|dimension| dimension.size.max(1));
    sizes.fold(1, usize::saturating_mul)
}

/// The unit of a metric, as far as its formula and description tell.
fn usage(counter: &SdkCounter) -> Usage {
    if !counter.is_derived {
        return Usage::Items;
    }
    let description = counter.description.to_ascii_lowercase();
    if description.contains("percent") {
        Usage::Percentage
    } else if counter.expression.contains('/') {
        Usage::Ratio
    } else if description.contains("kilobyte") {
        Usage::Kilobytes
    } else {
        Usage::Items
    }
}

fn library_counter(counter: &SdkCounter) -> LibraryCounter {
    LibraryCounter {
        name: counter.name.clone(),
        description: counter.description.clone(),
        usage: usage(counter),
        block: match counter.block.as_str() {
            "" => COMPUTED.to_owned(),
            block => block.to_owned(),
        },
    }
}

impl CounterLibrary for AgentCounters {
    fn device(&self) -> &str {
        &self.device
    }

    fn define(&self, name: &str) -> Result<LibraryCounter, LibraryError> {
        let found = self.find(name).map(library_counter);
        found.ok_or_else(|| LibraryError::Unknown(self.nearest(name)))
    }

    /// The passes that the counters take, filled in the order of their names. The SDK itself has one.
    fn passes(&self, names: &[&str]) -> Result<usize, String> {
        if self.fit(names)? {
            return Ok(1);
        }
        let mut passes: Vec<Vec<&str>> = Vec::new();
        'names: for name in names {
            for pass in &mut passes {
                pass.push(name);
                if self.fit(pass)? {
                    continue 'names;
                }
                pass.pop();
            }
            if !self.fit(&[name])? {
                return Err(format!(
                    "{name} alone takes more counters than the hardware has at a time"
                ));
            }
            passes.push(vec![name]);
        }
        Ok(passes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_rocprofiler::Functions;

    fn counter(name: &str, block: &str, expression: &str) -> SdkCounter {
        SdkCounter {
            id: CounterId { handle: 7 },
            name: name.to_owned(),
            description: format!("about {name}"),
            block: block.to_owned(),
            expression: expression.to_owned(),
            is_constant: false,
            is_derived: !expression.is_empty(),
        }
    }

    /// Counters of a library that answers to nothing.
    fn counters() -> Arc<AgentCounters> {
        let sdk = Sdk::with(Functions::default());
        let all = vec![
            counter("SQ_WAVES", "SQ", ""),
            counter("GRBM_COUNT", "GRBM", ""),
            counter("OCC", "", "reduce(SQ_WAVES,sum)/reduce(GRBM_COUNT,max)"),
        ];
        let agent = AgentId { handle: 1 };
        Arc::new(AgentCounters::of(sdk, agent, "gfx942", all))
    }

    #[test]
    fn counters_are_found_by_name_and_listed_with_their_origin() {
        let counters = counters();
        assert_eq!(counters.find("sq_waves").unwrap().name, "SQ_WAVES");
        let rows = counters.rows();
        assert_eq!(rows[0][..2], ["GRBM_COUNT", "GRBM"]);
        assert!(rows[1][1].starts_with("reduce("));
        let unknown = counters.define("SQ_WAVE").unwrap_err();
        assert_eq!(unknown, LibraryError::Unknown(vec!["SQ_WAVES".to_owned()]));
        let defined = counters.define("OCC").unwrap();
        assert_eq!(
            (defined.usage, defined.block.as_str()),
            (Usage::Ratio, COMPUTED)
        );
        let architecture = counters.clone().architecture();
        assert_eq!(architecture.counters().len(), 3);
        assert!(architecture.library().is_some());
    }

    #[test]
    fn a_library_without_the_function_says_so() {
        let counters = counters();
        let refused = counters.passes(&["SQ_WAVES"]).unwrap_err();
        assert!(refused.contains("NOT_IMPLEMENTED"), "{refused}");
        let none = counters.check(&[",".to_owned()]).unwrap_err();
        assert!(none.contains("no counter"), "{none}");
        let unknown = counters.check(&["SQ_WAVE".to_owned()]).unwrap_err();
        assert!(unknown.contains("SQ_WAVES"), "{unknown}");
    }

    #[test]
    fn instances_are_the_product_of_the_dimensions() {
        let dimension = |name: &str, size| CounterDimension {
            id: 1,
            name: name.to_owned(),
            size,
        };
        let some = [
            dimension("DIMENSION_XCC", 8),
            dimension("DIMENSION_SHADER_ENGINE", 4),
        ];
        assert_eq!((instances(&some), instances(&[])), (32, 1));
        assert_eq!(short(&some[1].name), "SHADER_ENGINE");
    }
}
