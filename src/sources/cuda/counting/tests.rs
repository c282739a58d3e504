//! Tests against NVIDIA's own libraries and headers, from the wheels of PyPI. No GPU is needed, and nothing is counted.

use super::ffi::{FIELDS, SIZES};
use super::host::{MetricHost, define, passes};
use crate::cuda::ffi::Cupti;
use crate::cuda::metrics::{LIBRARY, MetricKind, MetricLibrary};
use crate::cuda::wheels_tests::ask_headers_of;
use gputrail_counters::{
    Catalogue, CounterIndex, Defined, DefinedFrom, DefinitionPlace, Definitions, Dialect,
    HardwareBlock, Sources, Usage, plan,
};
use gputrail_harness::machine::{Need, tools};
use gputrail_harness::needs;
use gputrail_harness::program::run;
use libloading::os::unix::Library;
use std::fmt::Write as _;
use std::process::Command;

/// The folders of the versions that have the range profiler, each with the name of its libcupti.
const VERSIONS: [(&str, &str); 3] = [
    ("12.9.79/nvidia/cuda_cupti", "libcupti.so.12"),
    ("13.0.85/nvidia/cu13", "libcupti.so.13"),
    ("13.5.25/nvidia/cu13", "libcupti.so.13"),
];

/// The versions whose profiler host interface answers without a driver.
const WITHOUT_DRIVER: [(&str, &str); 2] = [VERSIONS[0], VERSIONS[1]];

/// A structure of ours, CUPTI's, and CUPTI's names of the members behind the first two.
const STRUCTURES: &[(&str, &str, &[&str])] = &[
    ("Initialize", "CUpti_Profiler_Initialize_Params", &[]),
    (
        "DeviceSupported",
        "CUpti_Profiler_DeviceSupported_Params",
        &[
            "cuDevice",
            "isSupported",
            "architecture",
            "sli",
            "vGpu",
            "confidentialCompute",
            "cmp",
            "wsl",
            "api",
        ],
    ),
    (
        "ChipName",
        "CUpti_Device_GetChipName_Params",
        &["deviceIndex", "pChipName"],
    ),
    (
        "HostInitialize",
        "CUpti_Profiler_Host_Initialize_Params",
        &[
            "profilerType",
            "pChipName",
            "pCounterAvailabilityImage",
            "pHostObject",
        ],
    ),
    (
        "HostDeinitialize",
        "CUpti_Profiler_Host_Deinitialize_Params",
        &["pHostObject"],
    ),
    (
        "BaseMetrics",
        "CUpti_Profiler_Host_GetBaseMetrics_Params",
        &["pHostObject", "metricType", "ppMetricNames", "numMetrics"],
    ),
    (
        "SubMetrics",
        "CUpti_Profiler_Host_GetSubMetrics_Params",
        &[
            "pHostObject",
            "metricType",
            "pMetricName",
            "numOfSubmetrics",
            "ppSubMetrics",
        ],
    ),
    (
        "MetricProperties",
        "CUpti_Profiler_Host_GetMetricProperties_Params",
        &[
            "pHostObject",
            "pMetricName",
            "pDescription",
            "pHwUnit",
            "pDimUnit",
            "metricType",
        ],
    ),
    (
        "Evaluate",
        "CUpti_Profiler_Host_EvaluateToGpuValues_Params",
        &[
            "pHostObject",
            "pCounterDataImage",
            "counterDataImageSize",
            "rangeIndex",
            "ppMetricNames",
            "numMetrics",
            "pMetricValues",
        ],
    ),
    (
        "AddMetrics",
        "CUpti_Profiler_Host_ConfigAddMetrics_Params",
        &["pHostObject", "ppMetricNames", "numMetrics"],
    ),
    (
        "ConfigSize",
        "CUpti_Profiler_Host_GetConfigImageSize_Params",
        &["pHostObject", "configImageSize"],
    ),
    (
        "Config",
        "CUpti_Profiler_Host_GetConfigImage_Params",
        &["pHostObject", "configImageSize", "pConfigImage"],
    ),
    (
        "Passes",
        "CUpti_Profiler_Host_GetNumOfPasses_Params",
        &["configImageSize", "pConfigImage", "numOfPasses"],
    ),
    (
        "Enable",
        "CUpti_RangeProfiler_Enable_Params",
        &["ctx", "pRangeProfilerObject"],
    ),
    (
        "OfProfiler",
        "CUpti_RangeProfiler_Start_Params",
        &["pRangeProfilerObject"],
    ),
    (
        "OfProfiler",
        "CUpti_RangeProfiler_Disable_Params",
        &["pRangeProfilerObject"],
    ),
    (
        "OfProfiler",
        "CUpti_RangeProfiler_PopRange_Params",
        &["pRangeProfilerObject"],
    ),
    (
        "PushRange",
        "CUpti_RangeProfiler_PushRange_Params",
        &["pRangeProfilerObject", "pRangeName"],
    ),
    (
        "Stop",
        "CUpti_RangeProfiler_Stop_Params",
        &[
            "pRangeProfilerObject",
            "passIndex",
            "targetNestingLevel",
            "isAllPassSubmitted",
        ],
    ),
    (
        "SetConfig",
        "CUpti_RangeProfiler_SetConfig_Params",
        &[
            "pRangeProfilerObject",
            "configSize",
            "pConfig",
            "counterDataImageSize",
            "pCounterDataImage",
            "range",
            "replayMode",
            "maxRangesPerPass",
            "numNestingLevels",
            "minNestingLevel",
            "passIndex",
            "targetNestingLevel",
        ],
    ),
    (
        "Decode",
        "CUpti_RangeProfiler_DecodeData_Params",
        &["pRangeProfilerObject", "numOfRangeDropped"],
    ),
    (
        "DataSize",
        "CUpti_RangeProfiler_GetCounterDataSize_Params",
        &[
            "pRangeProfilerObject",
            "pMetricNames",
            "numMetrics",
            "maxNumOfRanges",
            "maxNumRangeTreeNodes",
            "counterDataSize",
        ],
    ),
    (
        "InitializeData",
        "CUpti_RangeProfiler_CounterDataImage_Initialize_Params",
        &["pRangeProfilerObject", "counterDataSize", "pCounterData"],
    ),
    (
        "DataInfo",
        "CUpti_RangeProfiler_GetCounterDataInfo_Params",
        &[
            "pCounterDataImage",
            "counterDataImageSize",
            "numTotalRanges",
        ],
    ),
];

#[test]
fn the_structures_are_those_of_the_headers_of_three_versions() {
    needs!(the_structures_are_those_of_the_headers_of_three_versions: Need::Cupti, Need::Program("cc"));
    for (folder, _) in VERSIONS {
        let (mut body, mut expected) = (String::new(), Vec::new());
        let mut ask = |text: &str, ours: usize| {
            writeln!(body, "printf(\"%s %zu\\n\", \"{text}\", (size_t)({text}));").unwrap();
            expected.push(format!("{text} {ours}"));
        };
        for (ours, theirs, members) in STRUCTURES {
            let of = |one: &&(&str, &str, usize)| one.0 == *ours;
            let fields: Vec<_> = FIELDS.iter().filter(of).collect();
            assert_eq!(fields.len(), members.len(), "{ours}");
            for ((_, _, offset), member) in fields.into_iter().zip(*members) {
                ask(&format!("offsetof({theirs}, {member})"), *offset);
            }
            // Later versions add members behind.
            let size = SIZES.iter().find(|one| one.0 == *ours).unwrap().1;
            match members.last() {
                Some(last) => ask(
                    &format!("offsetof({theirs}, {last}) + sizeof((({theirs} *)0)->{last})"),
                    size,
                ),
                None => ask(&format!("{theirs}_STRUCT_SIZE"), size),
            }
        }
        ask("CUPTI_AutoRange", super::ffi::AUTO_RANGE as usize);
        ask("CUPTI_KernelReplay", super::ffi::KERNEL_REPLAY as usize);
        ask("CUPTI_UserRange", super::ffi::USER_RANGE as usize);
        ask("CUPTI_UserReplay", super::ffi::USER_REPLAY as usize);
        ask(
            "CUPTI_PROFILER_CONFIGURATION_SUPPORTED",
            super::ffi::SUPPORTED as usize,
        );
        ask("CUPTI_PROFILER_TYPE_RANGE_PROFILER", 0);
        for kind in MetricKind::ALL {
            let name = match kind {
                MetricKind::Counter => "CUPTI_METRIC_TYPE_COUNTER",
                MetricKind::Ratio => "CUPTI_METRIC_TYPE_RATIO",
                MetricKind::Throughput => "CUPTI_METRIC_TYPE_THROUGHPUT",
            };
            ask(name, kind as usize);
        }
        let headers = tools().join("cupti").join(folder).join("include");
        assert_eq!(ask_headers_of(&headers, &body), expected, "{folder}");
    }
}

/// The environment variable of a child that says which version to ask.
const FOLDER: &str = "GPUTRAIL_TEST_CUPTI";

/// Calls `ask` with the folder and the functions of each version. Each has a process of its own, as a process has
/// one library that libcupti asks. `test` is the name of the calling test.
fn in_each_version(test: &str, ask: impl Fn(&str, &Cupti)) {
    let wanted = std::env::var(FOLDER).ok();
    for (folder, file) in WITHOUT_DRIVER {
        if wanted.is_none() {
            let whole = format!("cuda::counting::tests::{test}");
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", &whole, "--nocapture"]);
            let ended = run(child.env(FOLDER, folder)).well();
            assert!(ended.text().contains("1 passed"), "{}", ended.text());
        } else if wanted.as_deref() == Some(folder) {
            let path = tools().join("cupti").join(folder).join("lib").join(file);
            // SAFETY: libcupti, whose constructors need no driver.
            let library = unsafe { Library::new(path) }.unwrap();
            let cupti = Cupti::of(&library);
            // Its threads and handlers may go on.
            let _ = library.into_raw();
            ask(folder, &cupti);
        }
    }
}

#[test]
fn metrics_of_a_chip_are_defined_by_the_library() {
    needs!(metrics_of_a_chip_are_defined_by_the_library: Need::Cupti);
    in_each_version(
        "metrics_of_a_chip_are_defined_by_the_library",
        |folder, cupti| {
            let host = &MetricHost::new(cupti, c"GH100").unwrap();
            let names = host.names().unwrap();
            assert!(names.len() > 3000, "{folder}: {}", names.len());
            assert!(
                names.iter().all(|(name, _)| name.contains("__")),
                "{folder}"
            );
            // Metrics have properties in the first form of their kind.
            for (name, kind) in names.iter().step_by(10) {
                let full = format!("{name}{}", kind.default_form());
                let properties = host.properties(&full);
                assert!(properties.is_ok(), "{folder}: {full}: {properties:?}");
            }
            let define = |name: &str| define(host, &names, name).unwrap();
            let read = define("DRAM__bytes_read").unwrap();
            assert_eq!(read.name, "dram__bytes_read.sum");
            assert_eq!(read.description, "# of bytes read from DRAM");
            assert_eq!((read.usage, &*read.block), (Usage::Bytes, "dram"));
            let rate = define("dram__bytes_read.avg.per_second").unwrap();
            assert_eq!(rate.name, "dram__bytes_read.avg.per_second");
            let hits = define("l1tex__t_sector_hit_rate.pct").unwrap();
            assert_eq!(hits.usage, Usage::Percentage);
            let throughput = define("dram__throughput").unwrap();
            assert_eq!(
                throughput.name,
                "dram__throughput.avg.pct_of_peak_sustained_elapsed"
            );
            // As the library lists it, and as it is asked for.
            for name in ["CTC.TriageCompute.ctc__rx_bytes", "ctc__rx_bytes.sum"] {
                assert_eq!(define(name).unwrap().name, "ctc__rx_bytes.sum");
            }
            let name = "FBSP.TriageCompute.dramc__cycles_elapsed.sum";
            assert_eq!(define("dramc__cycles_elapsed").unwrap().name, name);
            assert_eq!(define(name).unwrap().name, name);
            let near = define("dram__bytes_raed.sum").unwrap_err();
            assert_eq!(near[0], "dram__bytes_read");
            let near = define("dram__bytes_read.sun").unwrap_err();
            assert_eq!(near[0], "dram__bytes_read.sum");
            assert!(define("nothing").unwrap_err().is_empty());
        },
    );
}

/// The passes of CUPTI for metrics with their forms.
fn passes_of(cupti: &Cupti, names: &[&str]) -> Result<usize, String> {
    let host = MetricHost::new(cupti, c"GH100").map_err(|failed| failed.to_string())?;
    passes(&host, names).map_err(|failed| failed.to_string())
}

#[test]
fn passes_are_those_of_the_metric_library() {
    needs!(passes_are_those_of_the_metric_library: Need::Cupti);
    in_each_version("passes_are_those_of_the_metric_library", |folder, cupti| {
        // It opens the library.
        drop(MetricHost::new(cupti, c"GH100").unwrap());
        let path = tools().join("cupti").join(folder).join("lib").join(LIBRARY);
        // SAFETY: the library is in the process.
        let library = MetricLibrary::of(unsafe { Library::new(path) }.unwrap()).unwrap();
        let chip = library.chip("GH100").unwrap();
        let throughput = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
        let sets: [(&[&str], usize); 8] = [
            // Metrics of executed instructions are no other ones.
            (&["sm__sass_inst_executed_op_global_ld.sum"], 1),
            (&["smsp__sass_thread_inst_executed.sum"], 1),
            (&["dram__bytes_read.sum"], 1),
            (&["dram__bytes_read.sum", "sm__cycles_active.avg"], 1),
            (&["l1tex__t_sector_hit_rate.pct", "lts__t_sectors.sum"], 1),
            (&[throughput], 5),
            (&[throughput, "sm__inst_executed.sum"], 5),
            (&["ctc__rx_bytes.sum"], 1),
        ];
        for (names, expected) in sets {
            assert_eq!(passes_of(cupti, names), Ok(expected), "{folder}: {names:?}");
            assert_eq!(chip.passes(names), Ok(expected), "{folder}: {names:?}");
        }
        let refused = passes_of(cupti, &["ctc__rx_bytes.sum", "dram__bytes_read.sum"]);
        let words =
            "cuptiProfilerHostConfigAddMetrics: the device or its driver does not support it";
        assert!(refused.unwrap_err().contains(words), "{folder}");
    });
}

/// The passes that our planner needs for counters of a hardware unit that counts `capacity` of them at a time.
fn planned(names: &[&str], capacity: u32) -> usize {
    let at = DefinitionPlace {
        file: "made".into(),
        line: 1,
        column: 1,
    };
    let counter = |(event, name): (u32, &&str)| Defined {
        name: (*name).to_owned(),
        description: String::new(),
        usage: Usage::Items,
        from: DefinedFrom::Event {
            block: "unit".to_owned(),
            event,
            instance: None,
        },
        at: at.clone(),
    };
    let block = HardwareBlock {
        name: "unit".to_owned(),
        instances: None,
        capacity: Some(capacity),
    };
    let mut sources = Sources::default();
    let definitions = Definitions {
        dialect: Dialect::Instances,
        blocks: vec![block],
        counters: (0..).zip(names).map(counter).collect(),
    };
    sources.architectures.insert("made".to_owned(), definitions);
    let catalogue = Catalogue::from(sources);
    let architecture = &catalogue.architectures["made"];
    let all: Vec<_> = (0..names.len() as u32).map(CounterIndex).collect();
    plan(architecture, &all).unwrap().passes.len()
}

/// Of the first counters of a hardware unit: how many the unit counts at a time, their passes by NVIDIA's library and by our
/// planner with this capacity, and the groups of one pass into which they are divided for application replay.
type OfUnit = (&'static str, [usize; 4]);

/// NVIDIA's passes are fewer than ours where counters share events of the hardware, and more where an event needs more than one
/// place, or a certain one: both are known to the library only. A metric that is divided among passes has no group.
const UNITS: [[OfUnit; 6]; 2] = [
    [
        ("dram__", [12, 1, 1, 1]),
        ("lts__", [7, 4, 3, 4]),
        ("l1tex__", [4, 4, 5, 8]),
        ("smsp__", [9, 4, 3, 4]),
        ("sm__", [4, 3, 5, 3]),
        ("fbpa__", [4, 2, 3, 2]),
    ],
    [
        ("dram__", [12, 1, 1, 1]),
        ("lts__", [5, 5, 4, 4]),
        ("l1tex__", [4, 4, 5, 8]),
        ("smsp__", [9, 4, 3, 4]),
        ("sm__", [4, 3, 5, 3]),
        ("fbpa__", [4, 2, 3, 2]),
    ],
];

#[test]
fn our_planner_is_held_against_nvidias_passes() {
    needs!(our_planner_is_held_against_nvidias_passes: Need::Cupti);
    in_each_version(
        "our_planner_is_held_against_nvidias_passes",
        |folder, cupti| {
            let names = MetricHost::new(cupti, c"GH100").unwrap().names().unwrap();
            let version = WITHOUT_DRIVER.iter().position(|of| of.0 == folder).unwrap();
            for (unit, expected) in UNITS[version] {
                let of_unit = |known: &&(String, MetricKind)| {
                    known.1 == MetricKind::Counter && known.0.starts_with(unit)
                };
                let counters = names.iter().filter(of_unit).take(20);
                let counters: Vec<String> =
                    counters.map(|(name, _)| format!("{name}.sum")).collect();
                let counters: Vec<&str> = counters.iter().map(String::as_str).collect();
                let capacity = (1..=counters.len())
                    .take_while(|count| passes_of(cupti, &counters[..*count]) == Ok(1))
                    .count();
                let theirs = passes_of(cupti, &counters).unwrap();
                let ours = planned(&counters, capacity as u32);
                let mut groups: Vec<Vec<&str>> = Vec::new();
                'names: for name in &counters {
                    for group in &mut groups {
                        group.push(name);
                        if passes_of(cupti, group) == Ok(1) {
                            continue 'names;
                        }
                        group.pop();
                    }
                    groups.push(vec![name]);
                }
                let found = [capacity, theirs, ours, groups.len()];
                assert_eq!(found, expected, "{folder}: {unit}");
            }
        },
    );
}
