//! Tests against NVIDIA's own libraries and headers, from the wheels of PyPI. No GPU is needed.

use super::super::wheels_tests::ask_headers;
use super::*;
use gputrail_harness::machine::{Need, tools};
use gputrail_harness::needs;
use std::fmt::Write as _;

/// Libraries, with the numbers of counters, ratios and throughputs of the chip GH100.
const LIBRARIES: [(&str, [usize; 3]); 5] = [
    ("11.8.87/nvidia/cuda_cupti/lib", [2944, 160, 26]),
    ("12.1.105/nvidia/cuda_cupti/lib", [3070, 170, 27]),
    ("12.9.79/nvidia/cuda_cupti/lib", [3379, 199, 56]),
    ("13.0.85/nvidia/cu13/lib", [3389, 205, 56]),
    ("13.5.25/nvidia/cu13/lib", [3456, 214, 75]),
];

fn open(folder: &str) -> MetricLibrary {
    let path = tools().join("cupti").join(folder).join(LIBRARY);
    // SAFETY: NVIDIA's library, whose constructors need no driver.
    MetricLibrary::of(unsafe { Library::new(path) }.unwrap()).unwrap()
}

#[test]
fn chips_and_their_metrics_are_learnt_from_the_libraries_of_five_versions() {
    needs!(chips_and_their_metrics_are_learnt_from_the_libraries_of_five_versions: Need::Cupti);
    for (folder, counts) in LIBRARIES {
        let library = open(folder);
        let chip = library.chip("gh100").unwrap();
        assert_eq!(chip.name, "GH100");
        let of = |kind| {
            let of_kind = |metric: &&Metric| metric.kind == kind;
            chip.metrics().iter().filter(of_kind).count()
        };
        assert_eq!(MetricKind::ALL.map(of), counts, "{folder}");
        let read = chip.find("dram__bytes_read").unwrap();
        assert_eq!(read.kind, MetricKind::Counter);
        let properties = chip.properties(read).unwrap();
        assert_eq!(properties.description, "# of bytes read from DRAM");
        assert_eq!(properties.hardware.to_lowercase(), "dram");
        assert_eq!(properties.unit, "bytes");
        assert!(properties.parts.is_empty());
        let throughput = chip.find("gpu__compute_memory_throughput").unwrap();
        let parts = chip.properties(throughput).unwrap().parts;
        assert!(parts.len() > 1, "{folder}: {parts:?}");
        assert!(
            parts.iter().all(|part| chip.find(part).is_ok()),
            "{parts:?}"
        );
        // Every form that the library says there is can be asked for, of every kind.
        for name in [
            "dram__bytes_read",
            "l1tex__average_t_sectors_per_request",
            "dram__throughput",
        ] {
            let Ok(metric) = chip.find(name) else {
                continue;
            };
            let forms = chip.forms(metric.kind).unwrap();
            assert!(forms.len() >= 3);
            let passes = |form: &String| chip.passes(&[&format!("{name}{form}")]);
            assert!(forms.iter().filter(|form| passes(form).is_ok()).count() >= 3);
        }
    }
}

#[test]
fn passes_are_those_of_the_library() {
    needs!(passes_are_those_of_the_library: Need::Cupti);
    for (folder, _) in LIBRARIES {
        let library = open(folder);
        let chip = library.chip("GH100").unwrap();
        let passes = |names: &[&str]| chip.passes(names).unwrap();
        assert_eq!(passes(&["dram__bytes_read", "sm__cycles_active.avg"]), 1);
        let memory = "gpu__compute_memory_throughput";
        assert_eq!(passes(&[memory]), 5, "{folder}");
        assert!(passes(&[memory, "sm__inst_executed"]) >= 5);
        assert_eq!(passes(&[]), 0);
    }
}

#[test]
fn unknown_chips_and_metrics_are_named_with_those_like_them() {
    needs!(unknown_chips_and_metrics_are_named_with_those_like_them: Need::Cupti);
    let library = open(LIBRARIES[4].0);
    let refused = library.chip("GH1").err().unwrap().to_string();
    assert!(
        refused.contains("knows no chip \"GH1\"; it knows TU102, "),
        "{refused}"
    );
    let chip = library.chip("AD102").unwrap();
    let refused = chip.find("dram__bytes_reed").unwrap_err().to_string();
    assert!(
        refused.contains("nearest are dram__bytes_read, "),
        "{refused}"
    );
    let refused = chip.passes(&["dram__bytes_read.median"]).unwrap_err();
    let refused = refused.to_string();
    assert!(
        refused.contains("dram__bytes_read of AD102 has no form \".median\": it has .avg, "),
        "{refused}"
    );
}

#[test]
fn the_structures_are_those_of_the_headers() {
    needs!(the_structures_are_those_of_the_headers: Need::Cupti, Need::Program("cc"));
    let mut body = String::new();
    let mut sizes = Vec::new();
    fn known<P: Parameters>() -> (String, usize) {
        (format!("{}_Params_STRUCT_SIZE", P::FUNCTION), P::SIZE)
    }
    for (name, size) in [
        known::<ffi::InitializeHost>(),
        known::<ffi::ChipNames>(),
        known::<ffi::ScratchSize>(),
        known::<ffi::InitializeEvaluator>(),
        known::<ffi::DestroyEvaluator>(),
        known::<ffi::MetricNames>(),
        known::<ffi::Submetrics>(),
        known::<ffi::CounterProperties>(),
        known::<ffi::RatioProperties>(),
        known::<ffi::ThroughputProperties>(),
        known::<ffi::UnitName>(),
        known::<ffi::ConvertName>(),
        known::<ffi::Dimensions>(),
        known::<ffi::DimensionName>(),
        known::<ffi::RawDependencies>(),
        known::<ffi::CreateConfiguration>(),
        known::<ffi::BeginPassGroup>(),
        known::<ffi::AddMetrics>(),
        known::<ffi::EndPassGroup>(),
        known::<ffi::PassCount>(),
        known::<ffi::DestroyConfiguration>(),
        (
            "NVPW_MetricEvalRequest_STRUCT_SIZE".to_owned(),
            ffi::MetricRequest::SIZE,
        ),
        (
            "sizeof(NVPW_MetricEvalRequest)".to_owned(),
            size_of::<ffi::MetricRequest>(),
        ),
        (
            "NVPW_DimUnitFactor_STRUCT_SIZE".to_owned(),
            ffi::Factor::SIZE,
        ),
        (
            "sizeof(NVPW_DimUnitFactor)".to_owned(),
            size_of::<ffi::Factor>(),
        ),
        (
            "NVPA_RAW_METRIC_REQUEST_STRUCT_SIZE".to_owned(),
            ffi::RawRequest::SIZE,
        ),
        (
            "sizeof(NVPA_RawMetricRequest)".to_owned(),
            size_of::<ffi::RawRequest>(),
        ),
        (
            "NVPA_ACTIVITY_KIND_PROFILER".to_owned(),
            ffi::ACTIVITY_PROFILER as usize,
        ),
        ("NVPW_SUBMETRIC__COUNT".to_owned(), SUBMETRICS.len()),
        ("NVPW_ROLLUP_OP__COUNT".to_owned(), ROLLUPS.len()),
        ("NVPW_METRIC_TYPE__COUNT".to_owned(), MetricKind::ALL.len()),
    ] {
        let _ = writeln!(body, "printf(\"%zu\\n\", (size_t)({name}));");
        sizes.push((name, size.to_string()));
    }
    let answers = ask_headers(&body);
    let (names, ours): (Vec<String>, Vec<String>) = sizes.into_iter().unzip();
    let theirs: Vec<_> = names.iter().zip(&answers).collect();
    let ours: Vec<_> = names.iter().zip(&ours).collect();
    assert_eq!(ours, theirs);
}
