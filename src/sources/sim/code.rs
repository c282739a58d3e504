//! The code of a loaded module: the offset and the source line of each instruction.

use super::random::{Purpose, Random};
use super::waves::{WaveOperation, WaveProgram, WaveWindow};
use gputrail_capture::code::CodeOffset;
use gputrail_capture::names::Names;
use gputrail_code::symbols::{ListingLine, listing};
use gputrail_record::{CodeObjectId, InstructionType};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The code of a kernel.
#[derive(Debug)]
pub(super) struct SimCode {
    /// The source text.
    pub(super) source: &'static str,
    /// The disassembly in the format of `waves::program`.
    pub(super) text: &'static str,
}

/// A kernel in the source of a module.
#[derive(Debug)]
pub(super) struct KernelSource {
    /// The mangled name.
    pub(super) name: &'static str,
    /// The demangled name.
    pub(super) demangled: &'static str,
    /// Work-items of a workgroup in x, y, z.
    pub(super) workgroup: [u32; 3],
    /// Registers per work-item.
    pub(super) registers: u32,
    /// Local memory per workgroup, in bytes.
    pub(super) local_memory: u32,
    /// Private memory per work-item for registers that were spilled, in bytes.
    pub(super) private_memory: u32,
    /// Workgroups that fit on a compute unit at once.
    pub(super) resident: u64,
    /// The time that a compute unit takes for `resident` workgroups, in nanoseconds.
    pub(super) group_time: u64,
    /// The code.
    pub(super) code: &'static SimCode,
    /// The kernel that each of its workgroups launches, by a part of its demangled name.
    pub(super) child: Option<&'static str>,
}

/// The name of the source file.
const FILE: &str = "train/kernels.cl";
/// The alignment of kernels.
const ALIGNMENT: u64 = 256;

/// The loaded code of a module.
#[derive(Debug)]
pub(super) struct LoadedModule {
    source: String,
    kernels: Vec<Arc<LoadedKernel>>,
}

/// The loaded code of a kernel.
pub(super) struct LoadedKernel {
    name: &'static str,
    program: WaveProgram,
    /// The offset in the code object.
    begin: u64,
    /// The line of the file before its source.
    lines_before: u32,
    /// The simulated execution on a compute unit, by the number of workgroups there. Created on first use.
    windows: Mutex<HashMap<u64, Arc<WaveWindow>>>,
}

impl std::fmt::Debug for LoadedKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadedKernel")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl LoadedModule {
    /// Loads the code of `sources`.
    ///
    /// # Panics
    ///
    /// If the text of a kernel is malformed: it is part of the simulator.
    pub(super) fn new(sources: &'static [KernelSource]) -> LoadedModule {
        let mut source = String::new();
        let mut lines: HashMap<*const SimCode, u32> = HashMap::new();
        let mut begin = 0;
        let mut kernels = Vec::new();
        for kernel in sources {
            let lines_before = *lines.entry(kernel.code).or_insert_with(|| {
                let before = source.lines().count() as u32;
                source.push_str(kernel.code.source);
                before
            });
            let program = WaveProgram::read(kernel.code.text)
                .unwrap_or_else(|what| panic!("{}: {what}", kernel.demangled));
            let end = begin + program.lines.last().map_or(0, |last| last.offset) + 8;
            kernels.push(Arc::new(LoadedKernel {
                name: kernel.demangled,
                program,
                begin,
                lines_before,
                windows: Mutex::default(),
            }));
            begin = end.next_multiple_of(ALIGNMENT);
        }
        LoadedModule { source, kernels }
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// The code of kernel `index`.
    pub(super) fn kernel(&self, index: usize) -> Arc<LoadedKernel> {
        self.kernels[index].clone()
    }

    /// Stores the instructions as the bytes of `code`.
    pub(super) fn store_bytes(&self, names: &Names, code: CodeObjectId) {
        names.code_bytes(code, &self.bytes(), 0);
    }

    /// The bytes of the code: a listing of its instructions.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let lines = self.kernels.iter().flat_map(|kernel| {
            kernel.program.lines.iter().map(|line| ListingLine {
                offset: CodeOffset(kernel.begin + line.offset),
                function: kernel.name,
                file: FILE,
                line: kernel.lines_before + line.line,
                instruction: &line.text,
            })
        });
        listing(&lines.collect::<Vec<_>>())
    }
}

impl LoadedKernel {
    /// The program of its waves.
    pub(super) fn program(&self) -> &WaveProgram {
        &self.program
    }

    /// The offset of instruction `index` in the code object.
    pub(super) fn offset(&self, index: usize) -> u64 {
        self.begin + self.program.lines[index].offset
    }

    /// The type of the instruction at `offset` in the code object; none outside of the kernel.
    pub(super) fn instruction_type(&self, offset: u64) -> InstructionType {
        let offset = offset.checked_sub(self.begin);
        let lines = &self.program.lines;
        let place =
            offset.and_then(|offset| lines.binary_search_by_key(&offset, |line| line.offset).ok());
        place.map_or(InstructionType::NONE, |place| {
            lines[place].operation.instruction_type()
        })
    }

    /// The execution mask of instruction `index`.
    pub(super) fn lanes(&self, index: usize) -> u64 {
        match self.program.lines[index].lanes {
            64.. => u64::MAX,
            lanes => (1 << lanes) - 1,
        }
    }

    /// The width of the banks of local memory for its accesses: 1 for 4 bytes, 2 for 8 bytes.
    pub(super) fn bank_configuration(&self) -> u8 {
        let is_wide = |operation| matches!(operation, WaveOperation::Local { bytes: 8.. });
        match self
            .program
            .lines
            .iter()
            .any(|line| is_wide(line.operation))
        {
            true => 2,
            false => 1,
        }
    }

    /// The execution of `resident` workgroups of `waves` waves each on a compute unit, deterministic for a seed.
    pub(super) fn window(&self, waves: u32, resident: u64, seed: u64) -> Arc<WaveWindow> {
        let mut windows = gputrail_buffer::platform::sync::lock_std(&self.windows);
        let window = windows.entry(resident).or_insert_with(|| {
            let random = Random::fork(seed, Purpose::Waves, self.begin as usize);
            let groups = resident as usize;
            Arc::new(WaveWindow::of(
                &self.program,
                waves as usize,
                groups,
                random,
            ))
        });
        window.clone()
    }
}
