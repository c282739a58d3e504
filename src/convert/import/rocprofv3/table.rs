//! The tables of rocprofv3. Those in CSV are recognised by their columns, those in JSON by their names.

use std::io::BufRead;

use super::reader::{RecordingFile, RecordingReader};
use super::{agents, calls, kernels, memory, samples};
use crate::import::csv::Csv;
use crate::import::row::{Damage, Row};

/// A table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum RocprofTable {
    /// The devices.
    Agents,
    /// Calls of HIP, HSA, RCCL and other libraries, and markers.
    Calls,
    /// Kernels.
    Kernels,
    /// Counters of dispatches.
    Counters,
    /// Copies.
    Copies,
    /// Memory that is allocated and freed.
    Allocations,
    /// Memory for private variables of kernels.
    Scratch,
    /// Samples of the program counter, taken by the host or by the hardware.
    Samples,
    /// Another table of events that last.
    Spans,
    /// Sums over the other tables.
    Statistics,
}

impl RocprofTable {
    /// The table with the columns of a CSV file.
    pub fn recognise(columns: &[String]) -> Option<RocprofTable> {
        let has = |names: &[&str]| {
            let mut names = names.iter();
            names.all(|name| columns.iter().any(|one| one == name))
        };
        let spans = ["Start_Timestamp", "End_Timestamp"];
        let tables: [(&[&str], RocprofTable); 10] = [
            (&["Node_Id", "Agent_Type"], RocprofTable::Agents),
            (
                &["Counter_Name", "Counter_Value", "Dispatch_Id"],
                RocprofTable::Counters,
            ),
            (&["Sample_Timestamp", "Instruction"], RocprofTable::Samples),
            (
                &["Name", "Calls", "TotalDurationNs"],
                RocprofTable::Statistics,
            ),
            (&["Kernel_Name", spans[0], spans[1]], RocprofTable::Kernels),
            (&["Direction", spans[0], spans[1]], RocprofTable::Copies),
            (
                &["Allocation_Size", spans[0], spans[1]],
                RocprofTable::Allocations,
            ),
            (&["Alloc_Flags", spans[0], spans[1]], RocprofTable::Scratch),
            (
                &["Domain", "Function", spans[0], spans[1]],
                RocprofTable::Calls,
            ),
            (&spans, RocprofTable::Spans),
        ];
        let found = tables.iter().find(|(names, _)| has(names));
        found.map(|(_, table)| *table)
    }

    /// Whether a file that begins so is one of these tables.
    pub fn is_head(head: &[u8]) -> bool {
        let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        Csv::open(line).is_ok_and(|csv| RocprofTable::of(&csv).is_some())
    }

    /// The table of a CSV file.
    pub fn of<R: BufRead>(csv: &Csv<R>) -> Option<RocprofTable> {
        RocprofTable::recognise(csv.columns())
    }

    /// The columns of its rows.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            RocprofTable::Agents => agents::COLUMNS,
            RocprofTable::Calls => calls::COLUMNS,
            RocprofTable::Kernels | RocprofTable::Counters => kernels::COLUMNS,
            RocprofTable::Copies => memory::COPY_COLUMNS,
            RocprofTable::Allocations => memory::ALLOCATION_COLUMNS,
            RocprofTable::Scratch => memory::SCRATCH_COLUMNS,
            RocprofTable::Samples => samples::COLUMNS,
            RocprofTable::Spans => calls::SPAN_COLUMNS,
            RocprofTable::Statistics => &[],
        }
    }

    /// Adds a row with these columns.
    pub fn add<'r>(
        self,
        reader: &mut RecordingReader<'_>,
        file: &RecordingFile<'_>,
        row: &'r (dyn Row + 'r),
    ) -> Result<(), Damage> {
        match self {
            RocprofTable::Agents => agents::add(reader, file, row),
            RocprofTable::Calls => calls::add(reader, file, row),
            RocprofTable::Kernels => kernels::add(reader, file, row),
            RocprofTable::Counters => kernels::add_counter(reader, file, row),
            RocprofTable::Copies => memory::add_copy(reader, file, row),
            RocprofTable::Allocations => memory::add_allocation(reader, file, row),
            RocprofTable::Scratch => memory::add_scratch(reader, file, row),
            RocprofTable::Samples => samples::add(reader, file, row),
            RocprofTable::Spans => calls::add_span(reader, file, row),
            RocprofTable::Statistics => {
                let reason = "rows of statistics, which follow from the other tables";
                reader.report.remark(file.path, reason, row.position().0);
                Ok(())
            }
        }
    }
}
