//! Kernels, and counters of their dispatches.

use super::reader::{RecordingFile, RecordingReader};
use crate::import::row::{Damage, Row, rows};
use crate::import::tables::{DispatchCounterRow, ProcessHandle, StageHandle, Tables, WorkRow};
use gputrail_trace::capture::short_name;
use gputrail_trace::model::{Launch, Resources};

rows! {
    /// A dispatch of a kernel. Rows of counters have one, too, with the products of the sizes, which become arguments.
    Kernel<'r> {
        start: u64 = "Start_Timestamp",
        end: u64 = "End_Timestamp",
        agent: &'r str = "Agent_Id",
        queue: u64 = "Queue_Id",
        stream: Option<u32> = "Stream_Id",
        process: Option<u32> = "Process_Id",
        thread: u32 = "Thread_Id",
        dispatch: u64 = "Dispatch_Id",
        name: &'r str = "Kernel_Name",
        correlation: u64 = "Correlation_Id",
        local: u32 = "LDS_Block_Size|Group_Segment_Size",
        private: u32 = "Scratch_Size|Private_Segment_Size",
        registers: u32 = "VGPR_Count",
        accumulation: u32 = "Accum_VGPR_Count",
        scalar: u32 = "SGPR_Count",
        workgroup_x: u32 = "Workgroup_Size_X",
        workgroup_y: u32 = "Workgroup_Size_Y",
        workgroup_z: u32 = "Workgroup_Size_Z",
        grid_x: u64 = "Grid_Size_X",
        grid_y: u64 = "Grid_Size_Y",
        grid_z: u64 = "Grid_Size_Z",
        counter: &'r str = "Counter_Name",
        value: Option<f64> = "Counter_Value",
    }
}

pub(super) const COLUMNS: &[&str] = Kernel::COLUMNS;

/// The stage of a kernel. rocprofv3 writes names demangled, with what a function returns and takes, and with a suffix.
pub(super) fn stage(tables: &mut Tables, name: &str) -> StageHandle {
    let name = name.strip_suffix(".kd").unwrap_or(name);
    tables.kernel(short_name(name), name)
}

impl Kernel<'_> {
    /// The work of the row.
    fn work(
        &self,
        reader: &mut RecordingReader<'_>,
        process: ProcessHandle,
        file: &RecordingFile<'_>,
        row: &dyn Row,
    ) -> WorkRow {
        let agent = reader.agent(file, self.agent);
        let queue = format!("queue {}", self.queue);
        let queue = reader.queue(process, agent, self.stream, &queue);
        let ids = [("queue_id", self.queue), ("dispatch_id", self.dispatch)];
        WorkRow {
            process,
            queue,
            stage: stage(&mut reader.tables, self.name),
            thread: self.thread,
            correlation: self.correlation,
            dispatch: self.dispatch,
            start: self.start,
            end: self.end,
            launch: (self.grid_x != 0).then_some(Launch {
                grid: [self.grid_x, self.grid_y, self.grid_z],
                workgroup: [self.workgroup_x, self.workgroup_y, self.workgroup_z],
            }),
            resources: Resources {
                registers: self.registers,
                accumulation_registers: self.accumulation,
                scalar_registers: self.scalar,
                static_local: self.local,
                private: self.private,
                ..Resources::default()
            },
            arguments: reader.arguments(&ids, row),
            ..WorkRow::default()
        }
    }
}

pub(super) fn add<'r>(
    reader: &mut RecordingReader<'_>,
    file: &RecordingFile<'_>,
    row: &'r (dyn Row + 'r),
) -> Result<(), Damage> {
    let kernel = Kernel::read(row)?;
    let process = reader.process(file, kernel.process);
    let work = kernel.work(reader, process, file, row);
    reader.tables.add_work(work);
    Ok(())
}

/// Adds the value of a counter during a dispatch, and the dispatch, unless the row before is one of it.
pub(super) fn add_counter<'r>(
    reader: &mut RecordingReader<'_>,
    file: &RecordingFile<'_>,
    row: &'r (dyn Row + 'r),
) -> Result<(), Damage> {
    let kernel = Kernel::read(row)?;
    let place = Kernel::COLUMNS.len() - 1;
    let value = kernel.value.ok_or_else(|| row.damage(place, "a number"))?;
    let dispatch = (reader.process(file, kernel.process), kernel.dispatch);
    let counter = reader.tables.text(kernel.counter);
    reader.tables.add_dispatch_counter(DispatchCounterRow {
        process: dispatch.0,
        dispatch: dispatch.1,
        counter,
        value,
    });
    if reader.counted.replace(dispatch) != Some(dispatch) {
        let work = kernel.work(reader, dispatch.0, file, row);
        reader.tables.add_counted_work(work);
    }
    Ok(())
}
