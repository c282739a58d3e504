//! The code that is sampled. Each function of a cubin is a code object, whose bytes are a table of the instructions that
//! were sampled, with their source lines as the library states them (`cuptiGetSassToSourceCorrelation`).
//!
//! CUPTI names a cubin by its CRC. The cubins themselves come when they are loaded; their CRCs are computed later, by the
//! thread that fetches samples.

use super::ffi::{CrcParams, LineParams};
use crate::cuda::ffi::{self, Cupti, call};
use core::ffi::{CStr, c_char};
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_capture::code::{CodeOffset, MAX_CODE_OBJECT};
use gputrail_capture::names::Names;
use gputrail_code::symbols::{ListingLine, listing};
use gputrail_record::{AgentId, CodeObject, CodeObjectId, KernelId, KernelSymbol};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The most bytes of cubins that are kept.
const MAX_CUBINS: usize = 256 << 20;
/// The most instructions with a line.
const MAX_INSTRUCTIONS: usize = 1 << 18;
/// The number of instructions whose lines are looked up in a function that has no line for any of them.
const MAX_WITHOUT_LINE: usize = 16;

/// Cubins that were loaded and have no CRC yet.
static LOADED: PerProcess<LoadedCubins> = PerProcess::new();

#[derive(Default)]
struct LoadedCubins {
    waiting: Vec<Box<[u8]>>,
    /// Bytes of all cubins that are kept.
    bytes: usize,
    left_out: u64,
}

/// A module was loaded.
pub(super) fn loaded(cubin: &[u8]) {
    let mut loaded = LOADED.lock();
    if cubin.len() > MAX_CODE_OBJECT || loaded.bytes + cubin.len() > MAX_CUBINS {
        loaded.left_out += 1;
        return;
    }
    loaded.bytes += cubin.len();
    loaded.waiting.push(cubin.into());
}

/// Cubins that were too large to be kept.
pub(super) fn left_out() -> u64 {
    LOADED.lock().left_out
}

/// The functions that were sampled.
#[derive(Default)]
pub(super) struct SampledCode {
    cubins: HashMap<u64, Box<[u8]>>,
    functions: HashMap<(AgentId, u64, KernelId), CubinFunction>,
    instructions: usize,
}

/// A function of a cubin on an agent.
struct CubinFunction {
    id: CodeObjectId,
    name: Arc<str>,
    /// The address of the first text with its name.
    first_text: usize,
    /// The lines of instructions, by offset in the function.
    lines: BTreeMap<u64, Option<CubinLine>>,
    /// Whether an instruction has a line.
    has_lines: bool,
    /// Whether its code object lacks an instruction.
    has_changed: bool,
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CubinLine {
    pub(super) file: Arc<str>,
    pub(super) number: u32,
}

impl SampledCode {
    /// Computes the CRCs of cubins that were loaded since.
    pub fn learn(&mut self, cupti: &Cupti) {
        let waiting = std::mem::take(&mut LOADED.lock().waiting);
        for cubin in waiting {
            match crc(cupti, &cubin).filter(|crc| !self.cubins.contains_key(crc)) {
                Some(crc) => drop(self.cubins.insert(crc, cubin)),
                // Loaded again, perhaps for another context.
                None => LOADED.lock().bytes -= cubin.len(),
            }
        }
    }

    /// The code object of an instruction of `kernel`, a function of the cubin with this CRC that CUPTI calls
    /// `function`, and whether this text is a copy of one that came before. CUPTI may go on to use the first one.
    pub fn object(
        &mut self,
        (cupti, names): (&Cupti, &Names),
        agent: AgentId,
        (crc, kernel, function): (u64, KernelId, &CStr),
        offset: u64,
    ) -> (CodeObjectId, bool) {
        let key = (agent, crc, kernel);
        let of = self.functions.entry(key).or_insert_with(|| {
            let mut object = CodeObject::blank();
            (object.agent, object.path) = (agent, names.string(&format!("cubin {crc:016x}")));
            CubinFunction {
                id: names.code_object(object),
                name: name_of(names, kernel),
                first_text: function.as_ptr() as usize,
                lines: BTreeMap::new(),
                has_lines: false,
                has_changed: false,
            }
        });
        if !of.lines.contains_key(&offset) && self.instructions < MAX_INSTRUCTIONS {
            let cubin = self.cubins.get(&crc);
            let cubin = cubin.filter(|_| of.has_lines || of.lines.len() < MAX_WITHOUT_LINE);
            let line = cubin.and_then(|cubin| line(cupti, cubin, function, offset));
            of.has_lines |= line.is_some();
            of.lines.insert(offset, line);
            of.has_changed = true;
            self.instructions += 1;
        }
        (of.id, of.first_text != function.as_ptr() as usize)
    }

    /// Stores the code objects that have further instructions, and returns their ids.
    pub fn store(&mut self, names: &Names) -> Vec<CodeObjectId> {
        let changed = self.functions.values_mut();
        let changed = changed.filter_map(|of| {
            std::mem::take(&mut of.has_changed).then(|| {
                names.code_bytes(of.id, &of.listing(), 0);
                of.id
            })
        });
        changed.collect()
    }
}

impl CubinFunction {
    fn listing(&self) -> Vec<u8> {
        let lines = self.lines.iter().map(|(offset, line)| ListingLine {
            offset: CodeOffset(*offset),
            function: &self.name,
            file: line.as_ref().map_or("", |line| &line.file),
            line: line.as_ref().map_or(0, |line| line.number),
            instruction: "",
        });
        listing(&lines.collect::<Vec<_>>())
    }
}

/// The name of a kernel as people read it.
fn name_of(names: &Names, kernel: KernelId) -> Arc<str> {
    let symbol = names.get::<KernelSymbol>(kernel.0);
    let texts = symbol.map(|symbol| [symbol.demangled, symbol.name].map(|text| names.text(text)));
    let [demangled, name] = texts.unwrap_or_default();
    let demangled = demangled.filter(|text| !text.is_empty());
    demangled.or(name).unwrap_or_default().into()
}

/// The CRC by which the library names the cubin in samples.
pub(super) fn crc(cupti: &Cupti, cubin: &[u8]) -> Option<u64> {
    let mut params = CrcParams {
        size: size_of::<CrcParams>(),
        cubin_size: cubin.len(),
        cubin: cubin.as_ptr(),
        crc: 0,
    };
    // SAFETY: `params` states its size, and the bytes of `cubin`, which CUPTI reads in the call.
    let status = unsafe { call!(cupti, cuptiGetCubinCrc(&raw mut params)) }?;
    (status == ffi::SUCCESS).then_some(params.crc)
}

/// The source line of an instruction, as the library finds it in the cubin.
pub(super) fn line(cupti: &Cupti, cubin: &[u8], function: &CStr, offset: u64) -> Option<CubinLine> {
    let none = core::ptr::null_mut();
    let mut params = LineParams {
        size: size_of::<LineParams>(),
        cubin: cubin.as_ptr(),
        function: function.as_ptr(),
        cubin_size: cubin.len(),
        line: 0,
        offset,
        file: none,
        folder: none,
    };
    // SAFETY: `params` states its size, and the bytes of `cubin`. CUPTI reads them and the text of `function` in the call.
    let status = unsafe { call!(cupti, cuptiGetSassToSourceCorrelation(&raw mut params)) }?;
    let (file, folder) = (taken(params.file), taken(params.folder));
    if status != ffi::SUCCESS || params.line == 0 {
        return None;
    }
    let file = file.filter(|file| !file.is_empty())?;
    let path = match folder.filter(|folder| !folder.is_empty() && !file.starts_with('/')) {
        Some(folder) => format!("{}/{file}", folder.trim_end_matches('/')),
        None => file,
    };
    Some(CubinLine {
        file: path.into(),
        number: params.line,
    })
}

/// A text that the library has allocated for us.
fn taken(text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: a text of the library, made with malloc, which is ours to free.
    unsafe {
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        libc::free(text.cast());
        Some(copy)
    }
}
