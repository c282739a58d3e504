//! The layouts and numbers of the Event and Metric APIs against NVIDIA's headers, from the wheels of PyPI.

use super::ffi::{self, GroupSet, GroupSets, attribute, kind};
use crate::cuda::wheels_tests::ask_headers_of;
use core::mem::offset_of;
use gputrail_harness::machine::{Need, tools};
use gputrail_harness::needs;
use std::fmt::Write as _;

/// The folders of the versions that have these APIs.
const VERSIONS: [&str; 3] = [
    "11.8.87/nvidia/cuda_cupti",
    "12.1.105/nvidia/cuda_cupti",
    "12.9.79/nvidia/cuda_cupti",
];

#[test]
fn the_lists_and_numbers_are_those_of_the_headers_of_three_versions() {
    needs!(the_lists_and_numbers_are_those_of_the_headers_of_three_versions: Need::Cupti, Need::Program("cc"));
    let expected: [(&str, u64); 29] = [
        ("sizeof(CUpti_EventGroupSet)", size_of::<GroupSet>() as u64),
        (
            "offsetof(CUpti_EventGroupSet, numEventGroups)",
            offset_of!(GroupSet, count) as u64,
        ),
        (
            "offsetof(CUpti_EventGroupSet, eventGroups)",
            offset_of!(GroupSet, groups) as u64,
        ),
        (
            "sizeof(CUpti_EventGroupSets)",
            size_of::<GroupSets>() as u64,
        ),
        (
            "offsetof(CUpti_EventGroupSets, numSets)",
            offset_of!(GroupSets, count) as u64,
        ),
        (
            "offsetof(CUpti_EventGroupSets, sets)",
            offset_of!(GroupSets, sets) as u64,
        ),
        ("sizeof(CUpti_EventID)", 4),
        ("sizeof(CUpti_MetricID)", 4),
        ("sizeof(CUpti_EventDomainID)", 4),
        ("sizeof(CUpti_MetricValue)", 8),
        ("CUPTI_EVENT_ATTR_NAME", attribute::NAME.into()),
        ("CUPTI_METRIC_ATTR_NAME", attribute::NAME.into()),
        (
            "CUPTI_EVENT_ATTR_SHORT_DESCRIPTION",
            attribute::SHORT_DESCRIPTION.into(),
        ),
        (
            "CUPTI_METRIC_ATTR_LONG_DESCRIPTION",
            attribute::LONG_DESCRIPTION.into(),
        ),
        (
            "CUPTI_METRIC_ATTR_VALUE_KIND",
            attribute::METRIC_KIND.into(),
        ),
        (
            "CUPTI_EVENT_DOMAIN_ATTR_NAME",
            attribute::DOMAIN_NAME.into(),
        ),
        (
            "CUPTI_EVENT_DOMAIN_ATTR_TOTAL_INSTANCE_COUNT",
            attribute::DOMAIN_ALL_INSTANCES.into(),
        ),
        (
            "CUPTI_EVENT_GROUP_ATTR_EVENT_DOMAIN_ID",
            attribute::GROUP_DOMAIN.into(),
        ),
        (
            "CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES",
            attribute::GROUP_ALL_INSTANCES.into(),
        ),
        (
            "CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS",
            attribute::GROUP_EVENTS.into(),
        ),
        (
            "CUPTI_EVENT_GROUP_ATTR_INSTANCE_COUNT",
            attribute::GROUP_INSTANCES.into(),
        ),
        ("CUPTI_METRIC_VALUE_KIND_PERCENT", kind::PERCENT.into()),
        (
            "CUPTI_METRIC_VALUE_KIND_THROUGHPUT",
            kind::THROUGHPUT.into(),
        ),
        (
            "CUPTI_METRIC_VALUE_KIND_UTILIZATION_LEVEL",
            kind::UTILIZATION.into(),
        ),
        ("CUPTI_METRIC_VALUE_KIND_INT64", kind::INT64.into()),
        (
            "CUPTI_EVENT_COLLECTION_MODE_KERNEL",
            ffi::MODE_KERNEL.into(),
        ),
        ("CUPTI_EVENT_OVERFLOW", ffi::OVERFLOW),
        ("CUPTI_EVENT_INVALID", ffi::INVALID),
        (
            "CUPTI_ERROR_INVALID_EVENT_VALUE",
            ffi::INVALID_EVENT_VALUE as u64,
        ),
    ];
    let mut body = String::new();
    for (text, _) in expected {
        writeln!(body, "printf(\"%s %zu\\n\", \"{text}\", (size_t)({text}));").unwrap();
    }
    let expected = expected.map(|(text, value)| format!("{text} {value}"));
    for folder in VERSIONS {
        let headers = tools().join("cupti").join(folder).join("include");
        assert_eq!(ask_headers_of(&headers, &body), expected, "{folder}");
    }
}
