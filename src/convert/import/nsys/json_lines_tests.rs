//! Exports to JSON lines, made after those of Nsight Systems.

use std::fs;

use tempfile::TempDir;

use crate::import::damages;
use crate::import::log::StreamLog;
use crate::import::{InputFormat, Inputs, Report};
use gputrail_trace::model::Producer;

/// The process 42 with the thread 43 in the words of Nsight.
const EXPORT: &str = r#"{"Type":27,"CommEvent":{"Timestamp":"5","GlobalPid":"281475681353728","Commname":"train"}}
{"Type":59,"NvtxEvent":{"Type":59,"Timestamp":"90","Text":"step 1","GlobalTid":"281475681353771","EndTimestamp":"400","DomainId":"0","NsTime":true}}
{"Type":75,"NvtxEvent":{"Type":34,"Timestamp":"95","Text":"mark","GlobalTid":"281475681353771","DomainId":"0","NsTime":true}}
{"Type":48,"TraceProcessEvent":{"startNs":"100","endNs":"110","correlationId":7,"eventClass":0,"name":"2","returnValue32":0,"globalTid":"281475681353771"}}
{"Type":48,"TraceProcessEvent":{"startNs":"120","endNs":"130","correlationId":8,"eventClass":1,"name":"3","returnValue32":1,"globalTid":"281475681353771"}}
{"Type":48,"TraceProcessEvent":{"startNs":"140","endNs":"150","correlationId":0,"eventClass":28,"name":"6","globalTid":"281475681353771"}}
{"Type":79,"CudaEvent":{"startNs":"112","endNs":"150","correlationId":7,"deviceId":1,"contextId":"1","streamId":"7","eventClass":3,"globalPid":"281475681353728","kernel":{"demangledName":"5","shortName":"4","gridX":2,"gridY":1,"gridZ":1,"blockX":64,"blockY":1,"blockZ":1,"registersPerThread":32}}}
{"Type":80,"CudaEvent":{"startNs":"160","endNs":"170","correlationId":8,"deviceId":1,"contextId":"1","streamId":"43","eventClass":1,"globalPid":"281475681353728","memcpy":{"sizebytes":"4096","copyKind":"2","srcKind":2,"dstKind":1,"copyCount":"1"}}}
{"Type":106,"CudaEvent":{"startNs":"180","endNs":"190","correlationId":9,"deviceId":0,"contextId":"1","streamId":"7","eventClass":5,"globalPid":"281475681353728","sync":{"eventId":4294967295,"syncType":"SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE"}}}
{"Type":127,"CudaEvent":{"startNs":"0","endNs":"0","correlationId":10,"deviceId":1,"contextId":"1","streamId":"7","eventClass":6,"globalPid":"281475681353728","cudaEventRecord":{"eventId":3}}}
{"Type":41,"SchedEvent":{"startNs":"1","GlobalTid":"281475681353771"}}
"#;

const LISTS: &str = r#"{"data":["[Unknown]","worker","cudaLaunchKernel_v7000","cuMemcpyDtoHAsync_v2","scale","void scale<float>(float*)","cudnnFind"]}
{"data":[{"nameIdx":"1","priority":"10","globalTid":"281475681353771"}]}
"#;

/// This export, in a line for each text.
const SINGLE: &str = r#"{"type":"String","id":"1","value":"worker"}
{"type":"String","id":"2","value":"cudaLaunchKernel_v7000"}
{"type":"String","id":"3","value":"cuMemcpyDtoHAsync_v2"}
{"type":"String","id":"4","value":"scale"}
{"type":"String","id":"5","value":"void scale<float>(float*)"}
{"type":"String","id":"6","value":"cudnnFind"}
{"type":"ThreadName","globalTid":"281475681353771","nameId":"1","priority":"10"}
"#;

fn read(text: &str) -> (StreamLog, Report) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("report.json");
    fs::write(&path, text).unwrap();
    let inputs = Inputs::open(&[path]).unwrap();
    assert_eq!(inputs.recordings()[0].format(), InputFormat::NsightJson);
    let mut log = StreamLog::default();
    let report = inputs.produce(&mut log).unwrap();
    // Times as they stand in the lines.
    for line in &mut log.lines {
        *line = line.replace("1000000000", "");
    }
    (log, report)
}

#[test]
fn events_are_those_of_the_other_exports_wherever_the_texts_stand() {
    for text in [
        format!("{EXPORT}{LISTS}"),
        format!("{LISTS}{EXPORT}"),
        format!("{EXPORT}{SINGLE}"),
    ] {
        let (log, report) = read(&text);
        assert!(report.is_sound(), "{:?}", report.findings);
        assert_eq!(log.of("process "), ["42 train"]);
        assert_eq!(
            log.of("call "),
            [
                "cudaLaunchKernel 100..110 submitted [1]",
                "cuMemcpyDtoHAsync_v2 120..130 submitted [2]",
            ]
        );
        assert_eq!(
            log.of("work "),
            [
                "stream 7: scale 112..150",
                "stream 43: copy device to host 160..170 source=2 destination=1 copies=Int(1)",
            ]
        );
        assert_eq!(log.of("slice markers: "), ["step 1 090..400"]);
        assert_eq!(log.of("instant "), ["mark 095"]);
        assert_eq!(
            log.of("slice CUDA synchronization: "),
            ["STREAM_SYNCHRONIZE 180..190"]
        );
        assert_eq!(log.of("slice TraceProcessEvent: "), ["cudnnFind 140..150"]);
        assert!(log.tracks.iter().any(|track| track == "worker"));
        let counted: Vec<_> = report
            .unrepresented
            .iter()
            .map(|one| (&*one.reason, one.count))
            .collect();
        assert_eq!(
            counted,
            [
                ("CUDA events without a time, which was not collected", 1),
                ("rows of SchedEvent, which has no start, end and name", 1),
            ]
        );
    }
}

#[test]
fn damaged_lines_are_told_and_the_others_are_read() {
    let whole = format!("{EXPORT}{LISTS}");
    for (right, wrong) in [
        ("\"startNs\":\"112\"", "\"startNs\":\"soon\""),
        ("\"startNs\":\"112\"", "\"startNs\":\"112"),
        ("{\"Type\":79,\"CudaEvent\"", "{\"Type\":79,\"Cuda"),
        ("{\"Type\":79,", "[79,"),
        ("\"gridX\":2", "\"gridX\":-2"),
        (
            "\"deviceId\":1,\"contextId\":\"1\",\"streamId\":\"7\",\"eventClass\":3",
            "\"eventClass\":3",
        ),
    ] {
        let (log, report) = read(&whole.replacen(right, wrong, 1));
        assert_eq!(report.findings.len(), 1, "{wrong}: {:?}", report.findings);
        assert_eq!(log.of("work ").len(), 1, "{wrong}");
        assert_eq!(log.of("call ").len(), 2, "{wrong}");
    }
    // The last line that is cut.
    let (log, report) = read(&EXPORT[..EXPORT.len() - 20]);
    assert_eq!(report.findings.len(), 1);
    assert_eq!(log.of("work ").len(), 2);
}

#[test]
fn what_damage_costs_is_said() {
    for texts in [LISTS, SINGLE] {
        let unsaid = damages::unsaid(&format!("{EXPORT}{texts}"), false);
        assert!(unsaid.is_empty(), "{unsaid:#?}");
    }
}

#[test]
fn changed_files_make_no_panic() {
    let whole = format!("{EXPORT}{LISTS}");
    let mut random: u64 = 88_172_645_463_325_252;
    for _ in 0..300 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut bytes = whole.as_bytes().to_vec();
        let place = random as usize % bytes.len();
        bytes[place] = (random >> 32) as u8;
        if random >> 40 & 3 == 0 {
            bytes.truncate(place);
        }
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("report.json");
        fs::write(&path, &bytes).unwrap();
        if let Ok(inputs) = Inputs::open(&[path]) {
            let _ = inputs.produce(&mut StreamLog::default()).unwrap();
        }
    }
}
