//! The tables of rocprofv3. Those in CSV are recognised by their columns, those in JSON by their names.

use std::io::BufRead;

use super::csv::Csv;
use super::reader::{File, Reader};
use super::{agents, calls, kernels, memory, samples};
use crate::import::row::{Damage, Row};

/// A table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Table {
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

impl Table {
    /// The table with the columns of a CSV file.
    pub fn recognise(columns: &[String]) -> Option<Table> {
        let has = |names: &[&str]| {
            let mut names = names.iter();
            names.all(|name| columns.iter().any(|one| one == name))
        };
        let spans = ["Start_Timestamp", "End_Timestamp"];
        let tables: [(&[&str], Table); 10] = [
            (&["Node_Id", "Agent_Type"], Table::Agents),
            (
                &["Counter_Name", "Counter_Value", "Dispatch_Id"],
                Table::Counters,
            ),
            (&["Sample_Timestamp", "Instruction"], Table::Samples),
            (&["Name", "Calls", "TotalDurationNs"], Table::Statistics),
            (&["Kernel_Name", spans[0], spans[1]], Table::Kernels),
            (&["Direction", spans[0], spans[1]], Table::Copies),
            (&["Allocation_Size", spans[0], spans[1]], Table::Allocations),
            (&["Alloc_Flags", spans[0], spans[1]], Table::Scratch),
            (&["Domain", "Function", spans[0], spans[1]], Table::Calls),
            (&spans, Table::Spans),
        ];
        let found = tables.iter().find(|(names, _)| has(names));
        found.map(|(_, table)| *table)
    }

    /// Whether a file that begins so is one of these tables.
    pub fn is_head(head: &[u8]) -> bool {
        let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        Csv::open(line).is_ok_and(|csv| Table::of(&csv).is_some())
    }

    /// The table of a CSV file.
    pub fn of<R: BufRead>(csv: &Csv<R>) -> Option<Table> {
        Table::recognise(csv.columns())
    }

    /// The columns of its rows.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Table::Agents => agents::COLUMNS,
            Table::Calls => calls::COLUMNS,
            Table::Kernels | Table::Counters => kernels::COLUMNS,
            Table::Copies => memory::COPY_COLUMNS,
            Table::Allocations => memory::ALLOCATION_COLUMNS,
            Table::Scratch => memory::SCRATCH_COLUMNS,
            Table::Samples => samples::COLUMNS,
            Table::Spans => calls::SPAN_COLUMNS,
            Table::Statistics => &[],
        }
    }

    /// Adds a row with these columns.
    pub fn add<'r>(
        self,
        reader: &mut Reader<'_>,
        file: &File<'_>,
        row: &'r (dyn Row + 'r),
    ) -> Result<(), Damage> {
        match self {
            Table::Agents => agents::add(reader, file, row),
            Table::Calls => calls::add(reader, file, row),
            Table::Kernels => kernels::add(reader, file, row),
            Table::Counters => kernels::add_counter(reader, file, row),
            Table::Copies => memory::add_copy(reader, file, row),
            Table::Allocations => memory::add_allocation(reader, file, row),
            Table::Scratch => memory::add_scratch(reader, file, row),
            Table::Samples => samples::add(reader, file, row),
            Table::Spans => calls::add_span(reader, file, row),
            Table::Statistics => {
                let reason = "rows of statistics, which follow from the other tables";
                reader.report.remark(file.path, reason, row.position().0);
                Ok(())
            }
        }
    }
}
