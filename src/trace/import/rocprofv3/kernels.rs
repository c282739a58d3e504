//! Kernels.

use super::reader::{File, Reader};
use crate::trace::capture::short_name;
use crate::trace::import::row::{Damage, Row, rows};
use crate::trace::import::tables::{StageHandle, Tables, WorkRow};
use crate::trace::model::{Launch, Resources, WorkKind};

rows! {
    /// A dispatch of a kernel.
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
        workgroup_x: u32 = "Workgroup_Size_X",
        workgroup_y: u32 = "Workgroup_Size_Y",
        workgroup_z: u32 = "Workgroup_Size_Z",
        grid_x: u64 = "Grid_Size_X",
        grid_y: u64 = "Grid_Size_Y",
        grid_z: u64 = "Grid_Size_Z",
    }
}

pub(super) const COLUMNS: &[&str] = Kernel::COLUMNS;

/// The stage of a kernel. rocprofv3 writes names demangled, with what a function returns and takes, and with a suffix.
pub(super) fn stage(tables: &mut Tables, name: &str) -> StageHandle {
    let name = name.strip_suffix(".kd").unwrap_or(name);
    let short = short_name(name);
    let demangled = if short == name { "" } else { name };
    tables.stage(WorkKind::Kernel, short, demangled)
}

pub(super) fn add<'r>(
    reader: &mut Reader<'_>,
    file: &File<'_>,
    row: &'r (dyn Row + 'r),
) -> Result<(), Damage> {
    let kernel = Kernel::read(row)?;
    let process = reader.process(file, kernel.process);
    let agent = reader.agent(file, kernel.agent);
    let queue = format!("queue {}", kernel.queue);
    let queue = reader.queue(process, agent, kernel.stream, &queue);
    let ids = [("queue_id", kernel.queue), ("dispatch_id", kernel.dispatch)];
    let arguments = reader.arguments(&ids, row);
    let stage = stage(&mut reader.tables, kernel.name);
    reader.tables.add_work(WorkRow {
        process,
        queue,
        stage,
        thread: kernel.thread,
        correlation: kernel.correlation,
        dispatch: kernel.dispatch,
        start: kernel.start,
        end: kernel.end,
        bytes: 0,
        launch: (kernel.grid_x != 0).then_some(Launch {
            grid: [kernel.grid_x, kernel.grid_y, kernel.grid_z],
            workgroup: [kernel.workgroup_x, kernel.workgroup_y, kernel.workgroup_z],
        }),
        resources: Resources {
            registers: kernel.registers,
            static_local: kernel.local,
            dynamic_local: 0,
            private: kernel.private,
        },
        arguments,
    });
    Ok(())
}
