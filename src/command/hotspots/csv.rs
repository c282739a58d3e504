//! One row for each sample, in the columns and with the quotes of rocprofv3's PC sampling files.

use crate::cli::Hotspots as Arguments;
use crate::cli::contents::Contents;
use crate::failure::Failure;
use crate::figures::count;
use crate::messages::say;
use crate::{input, stdout};
use anyhow::anyhow;
use gputrail_analysis::hotspots::{HotspotAnalysis, Sample};
use gputrail_record::{InstructionType, NotIssued, SamplingMethod, spreadsheet_text};
use std::fmt::Write;
use wildmatch::WildMatch;

const COLUMNS: &str = "\"Sample_Timestamp\",\"Exec_Mask\",\"Dispatch_Id\",\"Instruction\",\"Instruction_Comment\",\"Correlation_Id\"";
const STOCHASTIC_COLUMNS: &str =
    ",\"Wave_Issued_Instruction\",\"Instruction_Type\",\"Stall_Reason\",\"Wave_Count\"";

/// Rows are printed when this many bytes have been collected.
const ENOUGH: usize = 64 << 10;

/// The rows to be printed.
struct CsvRows {
    kernel: Option<WildMatch>,
    /// The method of all rows: the columns depend on it.
    method: Option<SamplingMethod>,
    text: String,
    rows: u64,
    /// Number of samples taken with the other method.
    others: u64,
    failed: Option<Failure>,
}

/// Runs the command for CSV.
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let mut rows = CsvRows {
        kernel: arguments.kernel.as_deref().map(WildMatch::new),
        method: arguments.method,
        text: String::new(),
        rows: 0,
        others: 0,
        failed: None,
    };
    let contents = Contents {
        raw_samples: true,
        ..Contents::default()
    };
    let mut hotspots = HotspotAnalysis::with_each(|sample| rows.add(sample));
    let problems = input::read(&arguments.files, contents, &mut hotspots)?;
    let report = hotspots.report();
    drop(hotspots);
    for problem in &problems {
        say!("{problem}");
    }
    rows.finish()?;
    if rows.rows == 0 && rows.others == 0 {
        return Err(match report.samples {
            0 => anyhow!(super::no_samples(&report)),
            _ => anyhow!(
                "no sample by itself, only their counts. CUDA gives no more; of other agents, record with --raw-samples, or \
                 take the capture (record --capture)"
            ),
        }
        .into());
    }
    if rows.others > 0 {
        let other = match rows.method {
            Some(SamplingMethod::STOCHASTIC) => SamplingMethod::HOST_TRAP,
            _ => SamplingMethod::STOCHASTIC,
        };
        let other = other.name().unwrap_or_default();
        say!(
            "{} taken in another way, with other columns: --method {other} writes them",
            count(rows.others, "sample")
        );
    }
    Ok(0)
}

impl CsvRows {
    fn add(&mut self, sample: &Sample<'_>) {
        if let Some(kernel) = &self.kernel
            && !kernel.matches(sample.kernel)
        {
            return;
        }
        let method = *self.method.get_or_insert(sample.outcome.method);
        if sample.outcome.method != method {
            self.others += 1;
            return;
        }
        if self.rows == 0 {
            self.text = header(method);
        }
        self.rows += 1;
        row(&mut self.text, sample);
        if self.text.len() >= ENOUGH {
            self.print();
        }
    }

    fn print(&mut self) {
        let text = std::mem::take(&mut self.text);
        if self.failed.is_none() {
            self.failed = stdout::print_csv(&text).err();
        }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.print();
        self.failed.take().map_or(Ok(()), Err)
    }
}

fn header(method: SamplingMethod) -> String {
    let more = match method {
        SamplingMethod::STOCHASTIC => STOCHASTIC_COLUMNS,
        _ => "",
    };
    format!("{COLUMNS}{more}\n")
}

fn row(text: &mut String, sample: &Sample<'_>) {
    // An instruction without text is shown by its address: an empty cell would lose it.
    let instruction = match sample.instruction {
        "" => format!("{:#x}", sample.offset),
        instruction => spreadsheet_text(instruction).replace('"', "\"\""),
    };
    let line = sample.line.map_or(String::new(), |(file, line)| {
        format!("{}:{line}", spreadsheet_text(file).replace('"', "\"\""))
    });
    let _ = write!(
        text,
        "{},{},{},\"{instruction}\",\"{line}\",{}",
        sample.time.0, sample.exec_mask, sample.dispatch, sample.correlation
    );
    if sample.outcome.method == SamplingMethod::STOCHASTIC {
        let outcome = &sample.outcome;
        let instruction = if outcome.issued() {
            outcome.instruction
        } else {
            InstructionType::NO_INST
        };
        let name = |name: Option<&'static str>| name.unwrap_or("");
        let _ = write!(
            text,
            ",{},\"{}\",\"{}\",{}",
            u8::from(outcome.issued()),
            name(instruction.vendor_name()),
            name(NotIssued(outcome.reason.0).vendor_name()),
            sample.wave_count
        );
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_code::aggregate::WaveOutcome;
    use gputrail_record::{Nanos, ProcessId, StallReason};

    /// The first lines of files written by rocprofv3.
    const ROCPROFV3_HOST_TRAP: &str = r#""Sample_Timestamp","Exec_Mask","Dispatch_Id","Instruction","Instruction_Comment","Correlation_Id""#;
    const ROCPROFV3_STOCHASTIC: &str = r#""Sample_Timestamp","Exec_Mask","Dispatch_Id","Instruction","Instruction_Comment","Correlation_Id","Wave_Issued_Instruction","Instruction_Type","Stall_Reason","Wave_Count""#;

    fn sample(outcome: WaveOutcome) -> Sample<'static> {
        Sample {
            process: ProcessId(1),
            time: Nanos(390_705_261_841_337),
            exec_mask: u64::MAX,
            dispatch: 24,
            correlation: 24,
            instruction: "s_waitcnt vmcnt(0)",
            code_object: "a.co",
            offset: 16,
            line: Some(("/src/vector-ops.cpp", 133)),
            kernel: "add",
            outcome,
            wave_count: 4,
        }
    }

    #[test]
    fn columns_are_those_of_rocprofv3() {
        let lines = [
            (SamplingMethod::HOST_TRAP, ROCPROFV3_HOST_TRAP),
            (SamplingMethod::STOCHASTIC, ROCPROFV3_STOCHASTIC),
        ];
        for (method, expected) in lines {
            assert_eq!(header(method), format!("{expected}\n"));
        }
    }

    #[test]
    fn rows_are_written_as_rocprofv3_writes_them() {
        let mut text = String::new();
        row(&mut text, &sample(WaveOutcome::HOST_TRAP));
        let first = "390705261841337,18446744073709551615,24,\"s_waitcnt vmcnt(0)\",\"/src/vector-ops.cpp:133\",24";
        assert_eq!(text, format!("{first}\n"));
        text.clear();
        let waits = WaveOutcome {
            method: SamplingMethod::STOCHASTIC,
            instruction: InstructionType::NONE,
            reason: NotIssued::WAITCNT,
            stall: StallReason::MEMORY_DEPENDENCY,
        };
        row(&mut text, &sample(waits));
        assert_eq!(
            text,
            format!(
                "{first},0,\"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_NO_INST\",\"ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_WAITCNT\",4\n"
            )
        );
    }

    #[test]
    fn an_instruction_without_text_is_shown_by_its_address() {
        let mut text = String::new();
        let unknown = Sample {
            instruction: "",
            line: None,
            ..sample(WaveOutcome::HOST_TRAP)
        };
        row(&mut text, &unknown);
        assert!(text.contains(",\"0x10\",\"\","), "{text}");
    }
}
