//! Lists of activities as nvprof writes them.

use std::fs;

use tempfile::TempDir;

use crate::import::log::StreamLog;
use crate::import::{InputFormat, Inputs, Report};
use gputrail_trace::model::Producer;

/// A list with unified memory, behind the output of the program.
const UNIFIED: &str = "step 1 of 2
==4711== NVPROF is profiling process 4711, command: ./solve --size 8
==4711== Profiling application: ./solve --size 8
==4711== Profiling result:
\"Start\",\"Duration\",\"Grid X\",\"Grid Y\",\"Grid Z\",\"Block X\",\"Block Y\",\"Block Z\",\"Registers Per Thread\",\"Static SMem\",\"Dynamic SMem\",\"Size\",\"Throughput\",\"SrcMemType\",\"DstMemType\",\"Device\",\"Context\",\"Stream\",\"Unified Memory\",\"Virtual Address\",\"Name\",\"Correlation_ID\"
s,ms,,,,,,,,KB,B,MB,GB/s,,,,,,B,,,
0.000001,0.000992,,,,,,,,,,0.000977,1.0,\"Pageable\",\"Device\",\"Made GPU (1)\",\"1\",\"7\",,,\"[CUDA memcpy HtoD]\",105
0.000500,,,,,,,,,,,,,,,,,,\"PC 0x5e24\",\"0x7f54\",\"[Unified Memory CPU page faults]\",
0.001000,1.500000,4,2,1,192,1,1,16,0.5,32,,,,,\"Made GPU (1)\",\"1\",\"7\",,,\"void solve<int, float>(int, float*)\",121
0.001100,0.002000,,,,,,,,,,,,,,\"Made GPU (1)\",,,\"3\",\"0x7f55\",\"[Unified Memory GPU page faults]\",
0.001200,0.004000,,,,,,,,,,,,,,\"Made GPU (1)\",,,8192.000000,\"0x7f55\",\"[Unified Memory Memcpy HtoD]\",
0.001300,0.001000,,,,,,,,,,2.000000,1.0,\"Device\",,\"Made GPU (1)\",\"1\",\"22\",,,\"[CUDA memset]\",139
==4711== Warning: 1 record may be missing
";

/// Calls, with the ids behind the names, as older versions wrote them.
const CALLS: &str = "======== Profiling result:
\"Start\",\"Duration\",\"Name\"
us,ns,
0.000000,2866.000000,\"cudaMalloc [1]\"
35863.518000,952.500000,\"cuLaunchKernel [2]\"
";

fn read(text: &str) -> (StreamLog, Report) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("trace.csv");
    fs::write(&path, text).unwrap();
    let inputs = Inputs::open(&[path]).unwrap();
    assert_eq!(inputs.recordings()[0].format(), InputFormat::NvprofCsv);
    let mut log = StreamLog::default();
    let report = inputs.produce(&mut log).unwrap();
    (log, report)
}

#[test]
fn work_and_unified_memory_of_a_list_are_there() {
    let (log, report) = read(UNIFIED);
    assert!(report.is_sound(), "{:?}", report.findings);
    assert!(report.unrepresented.is_empty());
    assert_eq!(log.of("process "), ["4711 solve"]);
    let begin = 1_000_000_000_000_u64;
    let at = |start: u64, end: u64| format!("{}..{}", begin + start, begin + end);
    assert_eq!(
        log.of("work "),
        [
            format!(
                "stream 7: copy host to device {} source=Pageable destination=Device",
                at(1000, 1992)
            ),
            format!("stream 7: solve<int, float> {}", at(1_000_000, 2_500_000)),
            format!(
                "unified memory: copy host to device {} address=0x7f55",
                at(1_200_000, 1_204_000)
            ),
            format!("stream 22: fill {} source=Device", at(1_300_000, 1_301_000)),
        ]
    );
    assert_eq!(
        log.of("instant "),
        [format!("CPU page faults {}", begin + 500_000)]
    );
    assert_eq!(
        log.of("slice unified memory: "),
        [format!("GPU page faults {}", at(1_100_000, 1_102_000))]
    );
    let remarks: Vec<_> = report
        .remarks
        .iter()
        .map(|one| (&*one.reason, one.count))
        .collect();
    assert_eq!(
        remarks,
        [(
            "lines before the table, which are of the program or of nvprof",
            4
        )]
    );
}

#[test]
fn calls_of_older_versions_have_their_ids_behind_their_names() {
    let (log, report) = read(CALLS);
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(
        log.of("call "),
        [
            "cudaMalloc 1000000000000..1000000002866 submitted []",
            "cuLaunchKernel 1000035863518..1000035864471 submitted []",
        ]
    );
    assert_eq!(log.of("process "), ["1 unknown process"]);
    assert!(
        report
            .remarks
            .iter()
            .any(|one| one.reason.contains("rounded"))
    );
}

#[test]
fn damaged_lists_are_told_and_the_rest_is_read() {
    let damaged = [
        UNIFIED.replace("0.001000,1.5", "x,1.5"),
        UNIFIED.replace("s,ms,,", "h,ms,,"),
        UNIFIED.replace("192,1,1,16", "192,1,1,-16"),
        UNIFIED.replace("\"7\",,,\"void", "\"7\",,\"void"),
        UNIFIED.replace("0.001000,1.5", "0.001000,-1.5"),
        UNIFIED.replace("(int, float*)\",121", "(int, float*),121"),
    ];
    for text in damaged {
        let (log, report) = read(&text);
        assert!(!report.is_sound(), "{text}");
        assert!(
            log.of("work ").len() + log.of("slice ").len() >= 3,
            "{text}"
        );
    }
    // Cut anywhere, and any byte another one: nothing is made up, nothing is silent.
    let header = UNIFIED.find("\ns,ms").unwrap();
    for place in header..UNIFIED.len() {
        let (log, report) = read(&UNIFIED[..place]);
        assert!(log.of("work ").len() <= 4);
        drop(report);
    }
}
