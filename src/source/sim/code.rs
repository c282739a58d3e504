//! The code of a module's kernels as it is loaded: where each instruction lies, and which line it comes from.

use super::enqueue::KernelSource;
use super::random::{Purpose, Random};
use super::waves::{Program, Window};
use crate::capture::code::CodeOffset;
use crate::capture::names::Names;
use crate::code::symbols::{Line, listing};
use crate::record::CodeObjectId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// What a kernel executes, and its source.
#[derive(Debug)]
pub(super) struct Code {
    /// The source, as lines.
    pub(super) source: &'static str,
    /// The disassembly; see `waves::program`.
    pub(super) text: &'static str,
}

/// The file that sources are said to come from.
const FILE: &str = "train/kernels.cl";
/// Kernels begin at multiples of this.
const ALIGNMENT: u64 = 256;

/// The code of a module.
#[derive(Debug)]
pub(super) struct Loaded {
    source: String,
    kernels: Vec<Arc<LoadedKernel>>,
}

/// The code of a kernel.
pub(super) struct LoadedKernel {
    name: &'static str,
    program: Program,
    /// Bytes of the code object before it.
    begin: u64,
    /// Lines of the file before its source.
    lines_before: u32,
    /// What it does on a compute unit, by workgroups there: made when somebody looks.
    windows: Mutex<HashMap<u64, Arc<Window>>>,
}

impl std::fmt::Debug for LoadedKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadedKernel")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Loaded {
    /// # Panics
    ///
    /// If a kernel's code is not a program: it is the simulator's own.
    pub(super) fn new(sources: &'static [KernelSource]) -> Loaded {
        let mut source = String::new();
        let mut lines: HashMap<*const Code, u32> = HashMap::new();
        let mut begin = 0;
        let mut kernels = Vec::new();
        for kernel in sources {
            let lines_before = *lines.entry(kernel.code).or_insert_with(|| {
                let before = source.lines().count() as u32;
                source.push_str(kernel.code.source);
                before
            });
            let program = Program::read(kernel.code.text)
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
        Loaded { source, kernels }
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// The code of the kernel at `place`.
    pub(super) fn of(&self, place: usize) -> Arc<LoadedKernel> {
        self.kernels[place].clone()
    }

    /// Keeps the instructions as the bytes of `code`.
    pub(super) fn keep(&self, names: &Names, code: CodeObjectId) {
        let lines = self.kernels.iter().flat_map(|kernel| {
            kernel.program.lines.iter().map(|line| Line {
                offset: CodeOffset(kernel.begin + line.offset),
                function: kernel.name,
                file: FILE,
                line: kernel.lines_before + line.line,
                instruction: &line.text,
            })
        });
        names.code_bytes(code, &listing(&lines.collect::<Vec<_>>()), 0);
    }
}

impl LoadedKernel {
    /// Bytes from the code object's beginning to the instruction at `place`.
    pub(super) fn offset(&self, place: usize) -> u64 {
        self.begin + self.program.lines[place].offset
    }

    /// The lanes for which it is executed, a bit each.
    pub(super) fn lanes(&self, place: usize) -> u64 {
        match self.program.lines[place].lanes {
            64.. => u64::MAX,
            lanes => (1 << lanes) - 1,
        }
    }

    /// What a compute unit does with `resident` workgroups of `waves` waves. The same for the same seed.
    pub(super) fn window(&self, waves: u32, resident: u64, seed: u64) -> Arc<Window> {
        let mut windows = crate::platform::sync::lock_std(&self.windows);
        let window = windows.entry(resident).or_insert_with(|| {
            let random = Random::fork(seed, Purpose::Waves, self.begin as usize);
            let groups = resident as usize;
            Arc::new(Window::of(&self.program, waves as usize, groups, random))
        });
        window.clone()
    }
}
