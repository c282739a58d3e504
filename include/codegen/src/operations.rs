//! Operations: their constants in the header, and their tables in `docs/operations.md`.
//!
//! Functions come from the library's own lists, those of CUDA, which CUPTI numbers, from `cuda_functions.txt`, and all
//! other operations from the macros that declare them.

use super::comments::Names;
use super::sources::{Sources, snake};
use super::{Answer, comment};
use gputrail_record::Domain as Number;
use gputrail_sources::operations;
use std::fmt::Write;

const CUDA_FUNCTIONS: &str = include_str!("cuda_functions.txt");

/// The comment at the head of the constants.
const ABOUT: &str = "\
Operations

A constant of an operation has the number of its domain in its upper 16 bits, and its own number in the lower ones:

    switch (gputrail_operation_code(callback->operation)) {
    case GPUTRAIL_OPENCL_clFinish: ...
    case GPUTRAIL_RESOURCE_AGENT_KNOWN: ...
    }
    static const gputrail_operation operations[] = {GPUTRAIL_OPERATION_INIT(GPUTRAIL_OPENCL_clFinish)};

Constants are part of the ABI: each keeps its value in all later versions, and no other operation gets that value. An
operation that the library in the process does not know has no gputrail_operation_name; of one that is newer than this header,
the name is all there is. Numbers of CUDA's functions are those of CUPTI's callbacks, and hold for all versions of CUDA; their
names in records and callbacks may differ between versions of CUDA. What is reported of operations that are no functions is in
the comments: phases, and the structure that the record of gputrail_callback is. It is null where none is named, and at the
exit of what was not carried out since its call failed.
";

/// The page before the tables.
const PAGE: &str = "\
# Operations

What callbacks report, and what selections name: the functions of APIs, and events inside of their calls. In C and C++ an
operation is a constant, `GPUTRAIL_DOMAIN_OPERATION`. Rust has the events as constants of `gputrail_tool::events`, and finds
functions by their names (`gputrail_tool::operation`).

```c
static const gputrail_operation operations[] = {
    GPUTRAIL_OPERATION_INIT(GPUTRAIL_OPENCL_clEnqueueNDRangeKernel),
    GPUTRAIL_OPERATION_INIT(GPUTRAIL_RESOURCE_AGENT_KNOWN),
};

static void called_back(gputrail_callback *callback, void *user_data) {
    switch (gputrail_operation_code(callback->operation)) {
    case GPUTRAIL_OPENCL_clEnqueueNDRangeKernel: ...
    case GPUTRAIL_RESOURCE_AGENT_KNOWN: ...   /* callback->record is a gputrail_record_agent */
    }
}
```

## What is stable

* **Numbers** are part of the ABI: a constant keeps its value in all later versions, and no other operation gets it. A
  compiled tool works with later versions of the library. `cargo run -p gputrail-header` refuses to change one.
* **An operation that is newer than the tool's header** has a number that no constant has. `gputrail_operation_name` tells its
  name, and `callback->name` too.
* **An operation that is newer than the library** in the process has no name there (`gputrail_operation_name` is null), and is
  never reported. A tool that needs it asks before it starts.
* **CUDA**: the numbers are those of CUPTI's callbacks (`CUPTI_DRIVER_TRACE_CBID_...`, `CUPTI_RUNTIME_TRACE_CBID_...`), which
  are the same in all versions of CUPTI from 11.8 to 13.5. Names are not: what CUDA 13 calls `cudaMemAdvise` is
  `cudaMemAdvise_v2` in CUDA 12, under one number. Names are known once CUPTI is loaded, numbers always: select CUDA's functions
  by constants. A function of an older CUDA that has the name of a newer one has its version in the constant
  (`GPUTRAIL_CUDA_RUNTIME_cudaStreamDestroy_v3020`): programs call the one that they were built for.
* **Traces and captures** hold the names of operations, and need no table.

## Functions

The functions of OpenCL and its extensions are `GPUTRAIL_OPENCL_clFinish` and so on, those of the simulated GPU's runtime
`GPUTRAIL_SIM_simLaunchKernel`, those of CUDA `GPUTRAIL_CUDA_DRIVER_cuLaunchKernel` and
`GPUTRAIL_CUDA_RUNTIME_cudaLaunchKernel`. They are reported in the phases ENTER and EXIT; `record` is null, and
`gputrail_callback_argument` has the arguments.

## Events

In the tables, the phases are those of `callback->phase` (`GPUTRAIL_PHASE_ENTER` and so on), and the record is the structure that
`callback->record` leads to: `gputrail_record_agent`, say, is `agent` here. An enter and its exit have the same structure: at
the enter, what is not known yet is 0. `callback->record` is null where the table names none, and at the exit of what was not
carried out since its call failed, of which `return_code` is the status. CUDA's waits are reported as INSTANT, once they have ended.

The last sentence of a row names the sources that report the operation. What is in records only, no subscriber gets.
";

/// A domain with its operations.
pub struct Domain {
    /// The constant without its prefix: `MEMORY_COPY`.
    name: String,
    number: u16,
    documentation: String,
    operations: Vec<Operation>,
}

struct Operation {
    /// The constant without its prefixes: a function, or `COPY_ENQUEUE`.
    constant: String,
    number: u16,
    event: Option<Event>,
}

/// What is reported of an operation that is no function.
struct Event {
    name: String,
    phases: String,
    /// The structure in C.
    record: Option<String>,
    documentation: String,
}

impl Domain {
    /// The constant of an operation, and its value.
    fn constant(&self, operation: &Operation) -> (String, u32) {
        let value = u32::from(self.number) << 16 | u32::from(operation.number);
        (
            format!("GPUTRAIL_{}_{}", self.name, operation.constant),
            value,
        )
    }

    fn has_functions(&self) -> bool {
        self.operations.iter().all(|one| one.event.is_none())
    }
}

/// All domains that have operations.
pub fn domains(sources: &Sources, names: &Names) -> Answer<Vec<Domain>> {
    let values = sources.numbers.iter().find(|of| of.name == "Domain");
    let values = &values.ok_or("no Domain")?.values;
    let mut domains = Vec::new();
    for (name, number, about) in values {
        let number = u16::try_from(*number)?;
        let (documentation, operations) = match &name[..] {
            "CUDA_DRIVER" => (about.clone(), cuda_functions("driver")?),
            "CUDA_RUNTIME" => (about.clone(), cuda_functions("runtime")?),
            "MARKER" => (about.clone(), markers(sources, names)?),
            _ => match sources.event_domains.iter().find(|of| of.name == *name) {
                Some(of) => (of.documentation.clone(), events(of, names)),
                None => (about.clone(), functions(Number(number))),
            },
        };
        if !operations.is_empty() {
            domains.push(Domain {
                name: name.clone(),
                number,
                documentation,
                operations,
            });
        }
    }
    // The long lists of functions come last.
    domains.sort_by_key(Domain::has_functions);
    Ok(domains)
}

fn functions(domain: Number) -> Vec<Operation> {
    let all = operations::of(domain).into_iter();
    let function = |info: gputrail_collect::operations::OperationInfo| Operation {
        constant: info.name.to_owned(),
        number: info.operation.number,
        event: None,
    };
    all.map(function).collect()
}

fn cuda_functions(api: &str) -> Answer<Vec<Operation>> {
    let mut functions = Vec::new();
    for line in CUDA_FUNCTIONS.lines().filter(|line| !line.starts_with('#')) {
        let parts: Vec<&str> = line.split(' ').collect();
        let [of, number, name] = parts[..] else {
            return Err(format!(
                "cuda_functions.txt: expected an API, a number and a name: {line}"
            )
            .into());
        };
        if of == api {
            functions.push(Operation {
                constant: name.to_owned(),
                number: number.parse()?,
                event: None,
            });
        }
    }
    Ok(functions)
}

fn markers(sources: &Sources, names: &Names) -> Answer<Vec<Operation>> {
    let kinds = sources.numbers.iter().find(|of| of.name == "MarkerKind");
    let kinds = kinds.ok_or("no MarkerKind")?.values.iter();
    let operation = |(name, number, about): &super::sources::Constant| {
        Ok(Operation {
            constant: name.clone(),
            number: u16::try_from(*number)?,
            event: Some(Event {
                name: name.to_lowercase().replace('_', " "),
                phases: "INSTANT".into(),
                record: Some(names.structure("Marker")),
                documentation: about.clone(),
            }),
        })
    };
    kinds.map(operation).collect()
}

fn events(domain: &super::sources::EventDomain, names: &Names) -> Vec<Operation> {
    let operation = |one: &super::sources::EventOperation| Operation {
        constant: one.constant.clone(),
        number: one.number,
        event: Some(Event {
            name: one.name.clone(),
            phases: one
                .phases
                .iter()
                .map(|phase| snake(phase).to_uppercase())
                .collect::<Vec<_>>()
                .join(", "),
            record: one.record.as_ref().map(|record| names.structure(record)),
            documentation: one.documentation.clone(),
        }),
    };
    domain.operations.iter().map(operation).collect()
}

/// The constants of all operations, as the header has them.
pub fn constants(domains: &[Domain]) -> String {
    let mut text = String::new();
    comment(&mut text, ABOUT);
    text.push_str(
        "\n#ifdef __cplusplus\n\
         #define GPUTRAIL_OPERATION_INIT(code) \\\n    \
             {static_cast<gputrail_domain>((code) >> 16), static_cast<uint16_t>((code) & 0xffff)}\n\
         #else\n\
         #define GPUTRAIL_OPERATION_INIT(code) {(gputrail_domain)((code) >> 16), (uint16_t)((code) & 0xffff)}\n\
         #endif\n\n",
    );
    comment(&mut text, "The operation that has this constant.");
    text.push_str(
        "static inline gputrail_operation gputrail_operation_of(uint32_t code) {\n    \
         const gputrail_operation operation = GPUTRAIL_OPERATION_INIT(code);\n    return operation;\n}\n\n",
    );
    comment(&mut text, "The constant of an operation.");
    text.push_str(
        "static inline uint32_t gputrail_operation_code(gputrail_operation operation) {\n    \
         const uint32_t domain = operation.domain;\n    return domain << 16 | operation.number;\n}\n",
    );
    for domain in domains {
        text.push('\n');
        comment(&mut text, &domain.documentation);
        text.push_str("enum {\n");
        for (place, operation) in domain.operations.iter().enumerate() {
            let (name, value) = domain.constant(operation);
            let comma = if place + 1 < domain.operations.len() {
                ","
            } else {
                ""
            };
            let _ = write!(text, "    {name} = {value:#x}{comma}");
            if let Some(event) = &operation.event {
                let about = event.documentation.replace('\n', " ");
                let record = event.record.as_deref().map(|record| format!(": {record}"));
                let _ = write!(
                    text,
                    " /* {about} {}{}. */",
                    event.phases,
                    record.unwrap_or_default()
                );
            }
            text.push('\n');
        }
        text.push_str("};\n");
    }
    text.push('\n');
    text
}

/// The page `docs/operations.md`. `plain` converts a comment of Rust.
pub fn page(domains: &[Domain], plain: impl Fn(&str) -> String) -> String {
    let mut text = String::from(PAGE);
    for domain in domains.iter().filter(|domain| !domain.has_functions()) {
        let about = plain(&domain.documentation.replace('\n', " "));
        let _ = writeln!(
            text,
            "\n### `GPUTRAIL_DOMAIN_{}`\n\n{about}\n\n| constant | name | phases | record | |\n|---|---|---|---|---|",
            domain.name
        );
        for operation in &domain.operations {
            let Some(event) = &operation.event else {
                continue;
            };
            let record = event.record.as_deref().unwrap_or("");
            let _ = writeln!(
                text,
                "| `{}` | {} | {} | {} | {} |",
                domain.constant(operation).0,
                event.name,
                event.phases,
                record.trim_start_matches("gputrail_record_"),
                plain(&event.documentation.replace('\n', " "))
            );
        }
    }
    text
}

/// Refuses a header in which an operation has another number than in `before`, or none.
pub fn check_unchanged(before: &str, after: &str) -> Answer<()> {
    let after: std::collections::HashMap<&str, &str> = values(after).collect();
    for (name, value) in values(before) {
        if after.get(name) != Some(&value) {
            let now = after.get(name).copied().unwrap_or("gone");
            return Err(format!("{name} is {value} in the header that is checked in, and would be {now}: numbers of operations are part of the ABI").into());
        }
    }
    Ok(())
}

/// The constants of operations in a header, which alone have hexadecimal values.
fn values(header: &str) -> impl Iterator<Item = (&str, &str)> {
    header.lines().filter_map(|line| {
        let (name, rest) = line.trim_start().split_once(" = ")?;
        let value = rest.split([',', ' ']).next()?;
        value.starts_with("0x").then_some((name, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_keeps_its_number() {
        let before = "enum {\n    GPUTRAIL_SIM_simInit = 0x20001, /* It. */\n    GPUTRAIL_SIM_simFree = 0x20002\n};";
        let more = before.replace("0x20002", "0x20002,\n    GPUTRAIL_SIM_simNew = 0x20003");
        assert!(check_unchanged(before, &more).is_ok());
        let moved = before.replace("0x20002", "0x20004");
        let error = check_unchanged(before, &moved).unwrap_err().to_string();
        assert!(
            error.starts_with("GPUTRAIL_SIM_simFree is 0x20002"),
            "{error}"
        );
        let gone = before.replace("GPUTRAIL_SIM_simFree = 0x20002", "");
        let error = check_unchanged(before, &gone).unwrap_err().to_string();
        assert!(error.contains("would be gone"), "{error}");
    }

    #[test]
    fn constants_have_values_of_their_own_and_names_are_those_of_the_library() {
        let (sources, names) = crate::read().unwrap();
        let domains = domains(&sources, &names).unwrap();
        let mut seen = std::collections::HashSet::new();
        for domain in &domains {
            for operation in &domain.operations {
                let (name, value) = domain.constant(operation);
                assert!(seen.insert(value), "{name}");
                let known = operations::name(gputrail_record::Operation {
                    domain: Number(domain.number),
                    number: operation.number,
                });
                let ours = match &operation.event {
                    Some(event) => &event.name,
                    None => &operation.constant,
                };
                // CUPTI tells the names of CUDA's functions, where it is loaded.
                if !domain.name.starts_with("CUDA") {
                    assert_eq!(known, Some(&ours[..]), "{name}");
                }
            }
            let all = operations::of(Number(domain.number));
            let is_complete =
                domain.name.starts_with("CUDA") || all.len() == domain.operations.len();
            assert!(is_complete, "{}", domain.name);
        }
        assert!(seen.len() > 1500, "{}", seen.len());
    }
}
