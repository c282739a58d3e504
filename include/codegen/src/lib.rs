//! Generates `gputrail.h`: functions and structures by cbindgen from the sources, numbers and constants from what the
//! library itself lists.
//!
//! `cargo run -p gputrail-header` writes it; a test says when that has been forgotten.

use gputrail::collect::sampling::PeriodLevel;
use gputrail::record::*;
use gputrail::tool::c::{GPUTRAIL_API_VERSION, Status};
use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The records' sources, in the order in which the header has them.
const RECORDS: [&str; 12] = [
    "mod",
    "api",
    "annotation",
    "work",
    "memory",
    "synchronization",
    "overhead",
    "loss",
    "marker",
    "sample",
    "clock",
    "names",
];
/// Those of the API.
const API: [&str; 18] = [
    "library",
    "status",
    "attributes",
    "time",
    "kinds",
    "names",
    "buffer",
    "memory",
    "threads",
    "context",
    "callback",
    "arguments",
    "timeline",
    "tools",
    "markers",
    "external",
    "flight",
    "sampling",
];

/// Structures of the API, as C calls them.
const NAMED: [(&str, &str); 27] = [
    ("SamplingConfiguration", "gputrail_sampling_configuration"),
    ("SamplingOptions", "gputrail_sampling_options"),
    ("SamplingPeriodOptions", "gputrail_sampling_period"),
    ("SelectionOptions", "gputrail_selection"),
    ("BufferSettings", "gputrail_buffer_options"),
    ("Batch", "gputrail_batch"),
    ("BatchCallback", "gputrail_batch_function"),
    ("DropCounts", "gputrail_drops"),
    ("CallbackData", "gputrail_callback"),
    ("CallbackFunction", "gputrail_callback_function"),
    ("Argument", "gputrail_argument"),
    ("MarkOptions", "gputrail_mark_options"),
    ("FlightSettings", "gputrail_flight_options"),
    ("AttributeValues", "gputrail_attributes"),
    ("LimitValues", "gputrail_limits"),
    ("Block", "gputrail_block"),
    ("RequestFunction", "gputrail_request_function"),
    ("CompleteFunction", "gputrail_complete_function"),
    ("ThreadFunction", "gputrail_thread_function"),
    ("ExternalRequest", "gputrail_external_request"),
    ("SupplyFunction", "gputrail_supply_function"),
    ("WorkData", "gputrail_work"),
    ("WorkFunction", "gputrail_work_function"),
    ("ToolHost", "gputrail_tool_host"),
    ("ToolDescription", "gputrail_tool_description"),
    ("InitialiseTool", "gputrail_initialise_function"),
    ("FinaliseTool", "gputrail_finalise_function"),
];

/// Numbers that name things: in Rust, in C, and what they are.
const NUMBERS: [(&str, &str, &str); 44] = [
    (
        "Ticks",
        "uint64_t",
        "Host time in ticks (see gputrail_ticks_to_nanos). 0 is not known.",
    ),
    (
        "DeviceTime",
        "uint64_t",
        "Time of an agent's own clock (see gputrail_device_time_to_nanos). 0 is not known.",
    ),
    ("Nanos", "uint64_t", "Nanoseconds. 0 is not known."),
    (
        "CorrelationId",
        "uint64_t",
        "An API call; asynchronous work has the id of the call that caused it.",
    ),
    ("ExternalId", "uint64_t", "An id of the client's own."),
    (
        "WorkId",
        "uint64_t",
        "A piece of asynchronous work on an agent.",
    ),
    ("StringId", "uint32_t", "A string: see gputrail_string."),
    ("AgentId", "uint32_t", "An agent, from 1."),
    ("ContextId", "uint32_t", "A context of a runtime, from 1."),
    ("QueueId", "uint32_t", "A queue, from 1."),
    ("StreamId", "uint32_t", "A stream, from 1."),
    ("EventId", "uint32_t", "An event object, from 1."),
    ("ModuleId", "uint32_t", "A module or program, from 1."),
    ("KernelId", "uint32_t", "A kernel symbol, from 1."),
    ("CodeObjectId", "uint32_t", "A code object, from 1."),
    (
        "ThreadId",
        "uint32_t",
        "A thread of the operating system (gettid).",
    ),
    ("ProcessId", "uint32_t", "A process."),
    (
        "Kind",
        "uint8_t",
        "What a record is: GPUTRAIL_KIND_API and so on.",
    ),
    (
        "Domain",
        "uint16_t",
        "Whose operations: GPUTRAIL_DOMAIN_OPENCL and so on.",
    ),
    (
        "ArgumentType",
        "uint8_t",
        "How the value of an argument is to be read: GPUTRAIL_ARGUMENT_TYPE_SIGNED and so on.",
    ),
    (
        "MemoryKind",
        "uint8_t",
        "What kind of memory: GPUTRAIL_MEMORY_KIND_DEVICE and so on.",
    ),
    (
        "TransferKind",
        "uint8_t",
        "Direction of a transfer: GPUTRAIL_TRANSFER_KIND_HOST_TO_DEVICE and so on.",
    ),
    (
        "AllocationOperation",
        "uint8_t",
        "Whether memory came or went.",
    ),
    ("SynchronizationType", "uint8_t", "What waits for what."),
    ("LaunchType", "uint8_t", "How a kernel was launched."),
    (
        "Unfinished",
        "uint8_t",
        "Why the times of a completion are not all there.",
    ),
    ("OverheadKind", "uint8_t", "Who took time."),
    ("AgentKind", "uint8_t", "What an agent is."),
    ("OperationGroup", "uint8_t", "What a function does."),
    ("MarkerKind", "uint8_t", "What a marker does."),
    ("PayloadKind", "uint8_t", "What the payload of a marker is."),
    (
        "ExternalKind",
        "uint32_t",
        "Whose external id: GPUTRAIL_EXTERNAL_KIND_CUSTOM0 and so on, or one that was registered.",
    ),
    (
        "SourceLocatorId",
        "uint32_t",
        "A line of source code, from 1.",
    ),
    (
        "SamplingMethod",
        "uint8_t",
        "How a program counter is sampled.",
    ),
    (
        "SamplingUnit",
        "uint8_t",
        "What the interval between samples counts.",
    ),
    (
        "InstructionType",
        "uint8_t",
        "The type of an instruction that was issued (rocprofiler-sdk's numbers).",
    ),
    (
        "NotIssued",
        "uint8_t",
        "Why a wave did not issue (rocprofiler-sdk's numbers).",
    ),
    (
        "StallReason",
        "uint8_t",
        "Why a wave stalled (CUPTI's numbers).",
    ),
    (
        "HardwareId",
        "uint64_t",
        "Where on the agent a wave was executing: rocprofiler-sdk's bit fields.",
    ),
    (
        "Issue",
        "uint8_t",
        "Whether a wave issued (bit 0), and what (5 bits: gputrail_instruction_type).",
    ),
    (
        "Snapshot",
        "uint32_t",
        "Why a wave did not issue (4 bits: gputrail_not_issued), and the arbiter's bits as rocprofiler-sdk has them.",
    ),
    (
        "MemoryCounters",
        "uint32_t",
        "Instructions that had not completed: rocprofiler-sdk's bit fields.",
    ),
    (
        "PeriodLevel",
        "uint32_t",
        "How often an agent is sampled, in words (CUPTI's numbers).",
    ),
    (
        "Absent",
        "uint16_t",
        "What the agent could not know about a sample: GPUTRAIL_ABSENT_EXEC_MASK and so on.",
    ),
];

/// Numbers beyond those that only objects of the API have.
const HANDLES: [(&str, &str, &str); 8] = [
    (
        "ContextHandle",
        "gputrail_context",
        "A context of the tool's. 0 is none.",
    ),
    ("BufferHandle", "gputrail_buffer", "A buffer. 0 is none."),
    (
        "SubscriberHandle",
        "gputrail_subscriber",
        "A subscriber. 0 is none.",
    ),
    (
        "ToolHandle",
        "gputrail_tool",
        "A tool that gputrail has loaded. 0 is none.",
    ),
    (
        "TimelineHandle",
        "gputrail_timeline",
        "A timeline. 0 is none.",
    ),
    (
        "FlightHandle",
        "gputrail_flight",
        "A flight recorder. 0 is none.",
    ),
    (
        "ThreadHandle",
        "gputrail_callback_thread",
        "A callback thread. 0 is none.",
    ),
    (
        "WatchHandle",
        "gputrail_watch",
        "A watch over the library's threads. 0 is none.",
    ),
];

const ABOUT: &str = "\
/*
 * gputrail: activity records and callbacks of what a program does on GPUs, for people who write tools.
 *
 * Generated by `cargo run -p gputrail-header`; docs/guide.md shows how to write a tool.
 *
 * Every function may be called on any thread at any time, unless it says otherwise, and returns a status: GPUTRAIL_OK,
 * or what was wrong, of which gputrail_last_error tells more. A call that fails changes nothing. Nothing unwinds out of
 * the library, and callbacks must not let anything unwind into it.
 *
 * Contexts, buffers and subscribers are named by ids that no other object of the process ever has. Structures that
 * begin with `size` are for versions to come: set it to the size of the structure, and what you do not use to 0.
 *
 * Times of the host are in ticks, times of an agent in its own clock's units, both as they were taken;
 * gputrail_ticks_to_nanos and gputrail_device_time_to_nanos turn them into nanoseconds of CLOCK_BOOTTIME. Sizes are in
 * bytes.
 */";

/// What a tool defines.
const TOOL_ENTRY: &str = "\
/*
 * The entry point of a tool that is a library of its own (gputrail record --tool): the tool defines it. It returns what
 * it says of itself, which lasts for ever, or null if it has nothing to do here. It should do nothing else.
 */
__attribute__((visibility(\"default\")))
const gputrail_tool_description *gputrail_tool_configure(const gputrail_tool_host *host);

";
/// What comes behind the functions.
const END: &str = "#ifdef __cplusplus\n}  // extern";

/// Where the header lies.
pub fn checked_in() -> PathBuf {
    repository().join("include/gputrail.h")
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The header's text.
pub fn generate() -> Result<String, Box<dyn Error>> {
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        cpp_compat: true,
        style: cbindgen::Style::Both,
        include_guard: Some("GPUTRAIL_H".into()),
        no_includes: true,
        sys_includes: ["stddef.h", "stdint.h"].map(str::to_owned).to_vec(),
        header: Some(ABOUT.into()),
        after_includes: Some(preamble()),
        documentation_style: cbindgen::DocumentationStyle::C,
        line_length: 100,
        usize_is_size_t: true,
        layout: cbindgen::LayoutConfig {
            aligned_n: Some("GPUTRAIL_ALIGNED".into()),
            ..cbindgen::LayoutConfig::default()
        },
        sort_by: cbindgen::SortKey::None,
        ..cbindgen::Config::default()
    };
    config.export.rename = renamed();
    config.export.exclude = [
        "KINDS",
        "MAX_STRING",
        "FORMAT_VERSION",
        "MAX_ARGUMENTS",
        "INDEX",
        "OUT_OF_ORDER",
        "PROFILING",
        "ON_DEVICE",
        "COPY_ENGINE",
        "UNFINISHED",
        "TIME_UNKNOWN",
        "FAILED",
        "ASYNCHRONOUS",
        "RECOVERED",
        "UNTRACKED",
        "SHARED",
        "ToolHandle",
        "TimelineHandle",
        "FlightHandle",
        "ThreadHandle",
        "WatchHandle",
    ]
    .map(str::to_owned)
    .to_vec();
    let sources = |folder: &str, names: &[&str]| -> Vec<PathBuf> {
        let path = |name: &&str| repository().join(folder).join(name).with_extension("rs");
        names.iter().map(path).collect()
    };
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in sources("src/record", &RECORDS)
        .into_iter()
        .chain(sources("src/tool/c", &API))
    {
        builder = builder.with_src(source);
    }
    for (record, _) in structures() {
        builder = builder.include_item(record);
    }
    for (structure, _) in NAMED {
        builder = builder.include_item(structure);
    }
    let mut header = Vec::new();
    builder.generate()?.write(&mut header);
    let header = readable(&String::from_utf8(header)?);
    Ok(header.replace(END, &format!("{TOOL_ENTRY}{END}")))
}

/// The records, as Rust and as C call them.
fn structures() -> Vec<(&'static str, String)> {
    const NAMES: [&str; 35] = [
        "Header",
        "WorkHeader",
        "Api",
        "Arguments",
        "KernelDispatch",
        "Completion",
        "MemoryCopy",
        "MemorySet",
        "Allocation",
        "Synchronization",
        "Overhead",
        "ExternalCorrelation",
        "Marker",
        "Loss",
        "ClockSnapshot",
        "ClockPair",
        "Thread",
        "Agent",
        "Context",
        "Queue",
        "Stream",
        "Event",
        "Module",
        "CodeObject",
        "KernelSymbol",
        "OperationName",
        "Retirement",
        "HostTrapSample",
        "StochasticSample",
        "InvalidSample",
        "SamplingTotals",
        "SampleAggregate",
        "SourceLocator",
        "InstructionCorrelation",
        "Dependency",
    ];
    NAMES
        .iter()
        .map(|name| (*name, format!("gputrail_record_{}", snake(name))))
        .collect()
}

fn renamed() -> HashMap<String, String> {
    let mut renamed: HashMap<String, String> = HashMap::new();
    for (rust, c) in structures() {
        renamed.insert(rust.into(), c);
    }
    for (rust, _, _) in NUMBERS {
        renamed.insert(rust.into(), format!("gputrail_{}", snake(rust)));
    }
    for (rust, c) in NAMED
        .into_iter()
        .chain(HANDLES.map(|(rust, c, _)| (rust, c)))
    {
        renamed.insert(rust.into(), c.into());
    }
    renamed.insert("Operation".into(), "gputrail_operation".into());
    renamed.insert("Status".into(), "gputrail_status".into());
    renamed.insert("MAX_ARGUMENTS".into(), "GPUTRAIL_MAX_ARGUMENTS".into());
    renamed
}

/// Numbers and constants.
fn preamble() -> String {
    let mut text =
        String::from("\n#define GPUTRAIL_ALIGNED(bytes) __attribute__((aligned(bytes)))\n\n");
    define(
        &mut text,
        "GPUTRAIL_API_VERSION",
        GPUTRAIL_API_VERSION,
        "Version of this API.",
    );
    define(
        &mut text,
        "GPUTRAIL_MAX_ARGUMENTS",
        MAX_ARGUMENTS,
        "Most argument values that one record holds.",
    );
    text.push_str("\n/* What functions return: values of gputrail_status. */\n");
    let statuses = Status::ALL.iter();
    constants(
        &mut text,
        "",
        statuses.map(|(name, status, text)| (name.to_string(), i64::from(status.0), *text)),
    );
    for (rust, c, what) in NUMBERS {
        let _ = writeln!(
            text,
            "\n/* {what} */\ntypedef {c} gputrail_{};",
            snake(rust)
        );
        let values = listed(rust);
        if !values.is_empty() {
            let prefix = format!("{}_", snake(rust).to_uppercase());
            constants(&mut text, &prefix, values.into_iter());
        }
    }
    for (_, c, what) in HANDLES {
        let _ = writeln!(text, "\n/* {what} */\ntypedef uint64_t {c};");
    }
    type Constants = (
        &'static str,
        &'static str,
        &'static [(&'static str, i64, &'static str)],
    );
    let more: [Constants; 5] = [
        (
            "Bits of flags in gputrail_record_header.",
            "FLAG_",
            &[
                (
                    "UNFINISHED",
                    flags::UNFINISHED as i64,
                    "the activity had not ended when the record was made",
                ),
                (
                    "TIME_UNKNOWN",
                    flags::TIME_UNKNOWN as i64,
                    "a time that this kind normally has is not known",
                ),
                (
                    "FAILED",
                    flags::FAILED as i64,
                    "the activity ended with an error",
                ),
                (
                    "ASYNCHRONOUS",
                    flags::ASYNCHRONOUS as i64,
                    "enqueued by a call that does not wait for it",
                ),
                ("RECOVERED", flags::RECOVERED as i64, "written by recovery"),
                (
                    "UNTRACKED",
                    flags::UNTRACKED as i64,
                    "no completion will come for this work",
                ),
                (
                    "SHARED",
                    flags::SHARED as i64,
                    "other records have this work id too",
                ),
            ],
        ),
        (
            "Bits of properties in gputrail_record_queue.",
            "QUEUE_",
            &[
                (
                    "OUT_OF_ORDER",
                    queue_properties::OUT_OF_ORDER as i64,
                    "commands may run out of order",
                ),
                (
                    "PROFILING",
                    queue_properties::PROFILING as i64,
                    "the program itself asked for profiling",
                ),
                (
                    "ON_DEVICE",
                    queue_properties::ON_DEVICE as i64,
                    "the queue lives on the device",
                ),
                (
                    "COPY_ENGINE",
                    queue_properties::COPY_ENGINE as i64,
                    "it only copies",
                ),
            ],
        ),
        (
            "What happens when no block is empty.",
            "POLICY_",
            &[
                (
                    "DISCARD",
                    gputrail::buffer::Policy::Discard as i64,
                    "records are dropped and counted",
                ),
                (
                    "LOSSLESS",
                    gputrail::buffer::Policy::Lossless as i64,
                    "the thread waits, where it may",
                ),
                (
                    "OVERWRITE",
                    gputrail::buffer::Policy::Overwrite as i64,
                    "the oldest are overwritten; what is left is delivered by a flush",
                ),
            ],
        ),
        (
            "What records call a thread.",
            "THREAD_IDS_",
            &[
                (
                    "SYSTEM",
                    gputrail::collect::context::ThreadIds::System as i64,
                    "the system's id, gettid(2)",
                ),
                (
                    "PTHREAD",
                    gputrail::collect::context::ThreadIds::Pthread as i64,
                    "the low half of pthread_self(3)",
                ),
            ],
        ),
        (
            "The moment that a callback is about.",
            "PHASE_",
            &[
                (
                    "ENTER",
                    gputrail::collect::context::Phase::Enter as i64,
                    "a call begins",
                ),
                (
                    "EXIT",
                    gputrail::collect::context::Phase::Exit as i64,
                    "a call has returned",
                ),
                (
                    "COMPLETE",
                    gputrail::collect::context::Phase::Complete as i64,
                    "work that was enqueued has completed",
                ),
                (
                    "INSTANT",
                    gputrail::collect::context::Phase::Instant as i64,
                    "it happened, and nothing else will be told of it",
                ),
            ],
        ),
    ];
    for (about, prefix, values) in more {
        let _ = writeln!(text, "\n/* {about} */");
        constants(
            &mut text,
            prefix,
            values
                .iter()
                .map(|(name, value, text)| (name.to_string(), *value, *text)),
        );
    }
    text
}

fn define(text: &mut String, name: &str, value: impl std::fmt::Display, about: &str) {
    let _ = writeln!(text, "/* {about} */\n#define {name} {value}");
}

fn constants<'a>(
    text: &mut String,
    prefix: &str,
    values: impl Iterator<Item = (String, i64, &'a str)>,
) {
    let lines: Vec<String> = values
        .map(|(name, value, about)| format!("    GPUTRAIL_{prefix}{name} = {value} /* {about} */"))
        .collect();
    // A comma stands before a comment.
    let lines: Vec<String> = (lines.iter().enumerate())
        .map(|(place, line)| {
            if place + 1 < lines.len() {
                line.replacen(" /*", ", /*", 1)
            } else {
                line.clone()
            }
        })
        .collect();
    let _ = writeln!(text, "enum {{\n{}\n}};", lines.join("\n"));
}

/// The values that a number of the library's may have.
fn listed(name: &str) -> Vec<(String, i64, &'static str)> {
    macro_rules! of {
        ($($type:ident),*) => {
            match name {
                $(stringify!($type) => {
                    let all = $type::ALL.iter().zip($type::IDENTIFIERS);
                    all.map(|((value, text), name)| (name.to_string(), i64::from(value.0), *text)).collect()
                })*
                _ => Vec::new(),
            }
        };
    }
    of!(
        Kind,
        Domain,
        ArgumentType,
        MemoryKind,
        TransferKind,
        AllocationOperation,
        SynchronizationType,
        LaunchType,
        Unfinished,
        OverheadKind,
        AgentKind,
        MarkerKind,
        PayloadKind,
        ExternalKind,
        SamplingMethod,
        SamplingUnit,
        InstructionType,
        NotIssued,
        StallReason,
        PeriodLevel,
        Absent,
        OperationGroup
    )
}

/// `CamelCase` as `snake_case`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (place, letter) in name.char_indices() {
        if letter.is_uppercase() && place > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// Without what only Rust's documentation reads: links, and the section on safety, which in C goes without saying.
/// Comments of one line stand in one line.
fn readable(header: &str) -> String {
    let renamed = renamed();
    let mut lines: Vec<String> = Vec::new();
    let mut comment: Option<Vec<String>> = None;
    for line in header.lines() {
        match (&mut comment, line.trim()) {
            (None, "/*") => comment = Some(Vec::new()),
            (Some(text), "*/") => {
                let indent = " ".repeat(line.len() - line.trim_start().len() - 1);
                lines.extend(comment_of(text, &indent));
                comment = None;
            }
            (Some(text), inside) => text.push(without_links(inside, &renamed)),
            (None, _) => lines.push(without_links(line, &renamed)),
        }
    }
    lines.join("\n") + "\n"
}

/// `text` as a comment.
fn comment_of(text: &[String], indent: &str) -> Vec<String> {
    let end = text
        .iter()
        .position(|line| line == "# Safety")
        .unwrap_or(text.len());
    let text = &text[..end];
    let text = &text[..text
        .iter()
        .rposition(|line| !line.is_empty())
        .map_or(0, |last| last + 1)];
    // The header's own beginning has its stars already.
    let starred = |line: &String| match line.as_str() {
        "" => format!("{indent} *"),
        text if text.starts_with('*') => format!("{indent} {text}"),
        text => format!("{indent} * {text}"),
    };
    match text {
        [] => Vec::new(),
        [line] => vec![format!("{indent}/* {line} */")],
        lines => {
            let first = std::iter::once(format!("{indent}/*"));
            first
                .chain(lines.iter().map(starred))
                .chain([format!("{indent} */")])
                .collect()
        }
    }
}

/// Names of Rust in links, as C calls them; no other links, and no backquotes.
fn without_links(line: &str, renamed: &HashMap<String, String>) -> String {
    let mut text = line.to_owned();
    while let Some(start) = text.find("[`") {
        let Some(end) = text[start..].find("`]").map(|length| start + length) else {
            break;
        };
        let link = text[start + 2..end].to_owned();
        let after = match text[end + 2..].starts_with('(') {
            true => text[end..]
                .find(')')
                .map_or(end + 2, |length| end + length + 1),
            false => end + 2,
        };
        text.replace_range(start..after, &in_c(&link, renamed));
    }
    text.replace('`', "")
}

fn in_c(name: &str, renamed: &HashMap<String, String>) -> String {
    let c = |name: &str| {
        renamed
            .get(name)
            .cloned()
            .unwrap_or_else(|| name.to_owned())
    };
    match name.split_once("::") {
        Some((of, constant)) if NUMBERS.iter().any(|(rust, _, _)| *rust == of) => {
            format!("GPUTRAIL_{}_{constant}", snake(of).to_uppercase())
        }
        Some((of, field)) => format!("{}.{field}", c(of)),
        None => c(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_the_one_that_the_sources_make() {
        let generated = generate().unwrap();
        let committed = std::fs::read_to_string(checked_in()).unwrap_or_default();
        assert!(generated == committed, "run: cargo run -p gputrail-header");
    }

    #[test]
    fn every_function_has_a_comment_that_names_its_errors() {
        let header = std::fs::read_to_string(checked_in()).unwrap();
        let holds_for_all =
            "Every function may be called on any thread at any time, unless it says otherwise";
        assert!(header.contains(holds_for_all));
        let mut functions = 0;
        for part in header.split("\n\n") {
            let (comment, declared) = part.rsplit_once("*/\n").unwrap_or(("", part));
            let declared =
                declared.trim_start_matches("__attribute__((visibility(\"default\")))\n");
            let Some((result, rest)) = declared.split_once("gputrail_") else {
                continue;
            };
            if !declared.starts_with(|first: char| first.is_ascii_lowercase())
                || declared.starts_with("typedef")
                || !rest.contains('(')
            {
                continue;
            }
            functions += 1;
            assert!(comment.contains("/*"), "no comment: {declared}");
            let returns_status = result.is_empty() && rest.starts_with("status ");
            let says = |what: &str| comment.contains(what);
            assert!(
                !returns_status || says("rrors") || says("As gputrail_"),
                "no errors: {declared}"
            );
        }
        assert!(functions > 100, "{functions}");
    }
}
