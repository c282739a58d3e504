//! Programs: the disassembly of a kernel, with a source line number before each instruction.
//!
//! ```text
//! 4   s_load_dwordx4 s[0:3], s[4:5], 0x0
//!     s_waitcnt lgkmcnt(0)
//! loop:
//! 6   global_load_dwordx4 v[4:7], v[0:1], off
//! 9   s_cbranch_scc1 loop ;x48
//! 11  s_endpgm
//! ```
//!
//! An instruction without a line number has the line of the previous one. `;x48` states that the branch is taken 48
//! times before it falls through, `;lanes 16` the number of active lanes, `;stride 4` that the lanes of an access are 4
//! elements apart. `s_cbranch_execz` is taken by all waves of a
//! workgroup but the first. The mnemonics are those of AMD's CDNA instruction set, as far as the model distinguishes
//! them; operands state dependencies.

use gputrail_record::{AccessDirection, InstructionClass, InstructionType};
use std::collections::HashMap;

/// An instruction.
#[derive(Clone, Debug)]
pub(in crate::sim) struct WaveInstruction {
    pub operation: WaveOperation,
    /// Registers that it reads.
    pub reads: Vec<Registers>,
    /// The register range that it writes.
    pub writes: Option<Registers>,
    /// The number of active lanes.
    pub lanes: u32,
    /// Accesses: the elements from the address of a lane to that of the next one.
    pub stride: u32,
    /// Whether it writes memory.
    pub stores: bool,
    /// Line of the source.
    pub line: u32,
    /// The offset in the program, in bytes.
    pub offset: u64,
    /// Its disassembly.
    pub text: String,
}

/// A range of registers: vector registers from 0, accumulators from 256, scalar ones from 512, then the special ones.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::sim) struct Registers {
    pub first: u16,
    pub count: u16,
}

/// Local memory bandwidth, in bytes per cycle, and its banks.
const LOCAL_BYTES: u64 = 128;
const BANKS: u32 = 32;
/// Bytes of a request to memory.
const REQUEST_BYTES: u64 = 64;

/// An access to memory, as far as an instruction makes one.
#[derive(Copy, Clone, Debug)]
pub(in crate::sim) struct Access {
    pub class: InstructionClass,
    pub direction: AccessDirection,
    /// Bytes for each lane.
    pub bytes: u32,
    /// Requests to global memory, or cycles of local memory.
    pub transactions: u64,
    /// The fewest that are possible.
    pub ideal_transactions: u64,
}

/// The number of registers.
pub(super) const REGISTERS: usize = 640;
const SPECIAL: [(&str, u16); 4] = [("vcc", 636), ("scc", 637), ("exec", 638), ("m0", 639)];

/// The operation of an instruction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::sim) enum WaveOperation {
    /// Vector arithmetic, and the cycles that its pipe is busy.
    Vector { cycles: u32, dual: bool },
    /// Matrix arithmetic.
    Matrix { cycles: u32 },
    /// Scalar arithmetic.
    Scalar,
    /// A scalar read of memory.
    ScalarLoad,
    /// A vector load; bytes per lane.
    Load { bytes: u32 },
    /// A vector store; bytes per lane.
    Store { bytes: u32 },
    /// A texture read.
    Texture,
    /// Local memory access; bytes per lane.
    Local { bytes: u32 },
    /// Local memory access by the direct path.
    LocalDirect,
    /// Waits until at most this many operations are outstanding.
    Wait { load: u32, store: u32, local: u32 },
    /// Waits for the other waves of the workgroup.
    Barrier,
    /// Branches this many times before it falls through.
    Branch { to: u32, times: u32 },
    /// Branches in all waves of a workgroup but the first.
    Skip { to: u32 },
    /// Branches always.
    Jump { to: u32 },
    /// Sleeps.
    Sleep { cycles: u32 },
    /// Does nothing for this many cycles.
    Internal { cycles: u32 },
    /// A message to the host.
    Message,
    /// An export.
    Export,
    /// Ends the wave.
    End,
}

/// A kernel's program.
#[derive(Clone, Debug)]
pub(in crate::sim) struct WaveProgram {
    pub lines: Vec<WaveInstruction>,
}

impl WaveInstruction {
    /// The cycles of local memory that an access to `bytes` for each lane takes: lanes that are an even number of elements
    /// apart leave banks unused.
    pub fn local_cycles(&self, bytes: u32) -> u64 {
        let conflicts = 1 << self.stride.trailing_zeros().min(BANKS.trailing_zeros());
        u64::from(self.lanes * bytes).div_ceil(LOCAL_BYTES) * conflicts
    }

    /// The requests to memory of an access to `bytes` for each lane: those of 64 bytes, and those of 32.
    pub fn requests(&self, bytes: u32) -> (u64, u64) {
        let (lanes, bytes) = (u64::from(self.lanes), u64::from(bytes));
        let span = lanes * bytes * u64::from(self.stride);
        let (whole, small) = match span % REQUEST_BYTES {
            0 => (span / REQUEST_BYTES, 0),
            1..=32 => (span / REQUEST_BYTES, 1),
            _ => (span / REQUEST_BYTES + 1, 0),
        };
        // Lanes that are further apart have requests of their own.
        (whole.min(lanes * bytes.div_ceil(REQUEST_BYTES)), small)
    }

    /// The access that it makes.
    pub fn access(&self) -> Access {
        let ideal = WaveInstruction {
            stride: 1,
            ..self.clone()
        };
        let requests = |line: &WaveInstruction, bytes| {
            let (whole, small) = line.requests(bytes);
            whole + small
        };
        let (class, bytes, transactions, ideal_transactions) = match self.operation {
            WaveOperation::Load { bytes } | WaveOperation::Store { bytes } => (
                InstructionClass::GLOBAL_ACCESS,
                bytes,
                requests(self, bytes),
                requests(&ideal, bytes),
            ),
            WaveOperation::Texture => (
                InstructionClass::GLOBAL_ACCESS,
                TEXEL_BYTES,
                requests(self, TEXEL_BYTES),
                requests(&ideal, TEXEL_BYTES),
            ),
            WaveOperation::Local { bytes } => (
                InstructionClass::LOCAL_ACCESS,
                bytes,
                self.local_cycles(bytes),
                ideal.local_cycles(bytes),
            ),
            // One value for all lanes.
            WaveOperation::LocalDirect => (InstructionClass::LOCAL_ACCESS, 4, 1, 1),
            WaveOperation::Branch { .. }
            | WaveOperation::Skip { .. }
            | WaveOperation::Jump { .. } => (InstructionClass::BRANCH, 0, 0, 0),
            _ => (InstructionClass::EXECUTION, 0, 0, 0),
        };
        Access {
            class,
            direction: match bytes {
                0 => AccessDirection::NONE,
                _ if self.stores => AccessDirection::STORE,
                _ => AccessDirection::LOAD,
            },
            bytes,
            transactions,
            ideal_transactions,
        }
    }
}

/// Bytes of a texel for each lane.
pub(in crate::sim) const TEXEL_BYTES: u32 = 4;

impl WaveOperation {
    /// The type of its instructions. Conditional branches are those that are taken.
    pub fn instruction_type(&self) -> InstructionType {
        match self {
            WaveOperation::Vector { dual: true, .. } => InstructionType::DUAL_VALU,
            WaveOperation::Vector { .. } => InstructionType::VALU,
            WaveOperation::Matrix { .. } => InstructionType::MATRIX,
            WaveOperation::Scalar | WaveOperation::ScalarLoad => InstructionType::SCALAR,
            WaveOperation::Load { .. } | WaveOperation::Store { .. } => InstructionType::FLAT,
            WaveOperation::Texture => InstructionType::TEX,
            WaveOperation::Local { .. } => InstructionType::LDS,
            WaveOperation::LocalDirect => InstructionType::LDS_DIRECT,
            WaveOperation::Barrier => InstructionType::BARRIER,
            WaveOperation::Branch { .. } | WaveOperation::Skip { .. } => {
                InstructionType::BRANCH_TAKEN
            }
            WaveOperation::Jump { .. } => InstructionType::JUMP,
            WaveOperation::Message => InstructionType::MESSAGE,
            WaveOperation::Export => InstructionType::EXPORT,
            WaveOperation::Wait { .. }
            | WaveOperation::Sleep { .. }
            | WaveOperation::Internal { .. }
            | WaveOperation::End => InstructionType::OTHER,
        }
    }
}

impl WaveProgram {
    /// Parses a program. The error states the line and the problem.
    pub fn read(text: &str) -> Result<WaveProgram, String> {
        let mut labels: HashMap<&str, u32> = HashMap::new();
        let mut count = 0;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.strip_suffix(':') {
                Some(label) => drop(labels.insert(label, count)),
                None => count += 1,
            }
        }
        let mut lines: Vec<WaveInstruction> = Vec::new();
        let mut offset = 0;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.ends_with(':') {
                continue;
            }
            let before = lines.last().map_or(1, |line| line.line);
            let read = instruction(line, before, offset, &labels)
                .map_err(|what| format!("line {}: {what}: {line:?}", number + 1))?;
            offset += if wide(&read.operation) { 8 } else { 4 };
            lines.push(read);
        }
        match lines.last() {
            Some(last) if last.operation == WaveOperation::End => Ok(WaveProgram { lines }),
            _ => Err("the last instruction is not s_endpgm".into()),
        }
    }
}

/// Whether an instruction has 8 bytes instead of 4.
fn wide(operation: &WaveOperation) -> bool {
    use WaveOperation::*;
    matches!(
        operation,
        Matrix { .. } | ScalarLoad | Load { .. } | Store { .. } | Texture | Local { .. } | Export
    )
}

fn instruction(
    text: &str,
    before: u32,
    offset: u64,
    labels: &HashMap<&str, u32>,
) -> Result<WaveInstruction, String> {
    let (text, notes) = text.split_once(';').unwrap_or((text, ""));
    let mut text = text.trim();
    let mut line = before;
    if let Some((number, rest)) = text.split_once(char::is_whitespace)
        && let Ok(number) = number.parse()
    {
        (line, text) = (number, rest.trim());
    }
    let mut times = 1;
    let mut lanes = 64;
    let mut stride = 1;
    for note in notes.split(';').map(str::trim) {
        if let Some(number) = note.strip_prefix('x') {
            times = number.parse().map_err(|_| "no number of turns")?;
        } else if let Some(number) = note.strip_prefix("lanes ") {
            lanes = number.parse().map_err(|_| "no number of lanes")?;
        } else if let Some(number) = note.strip_prefix("stride ") {
            stride = number.parse().map_err(|_| "no number of elements")?;
        }
    }
    let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
    let operands: Vec<&str> = split(operands);
    let label = || {
        let label = operands.first().ok_or("no label")?;
        labels
            .get(label)
            .copied()
            .ok_or(format!("no label {label}"))
    };
    let number = |default: u32| {
        operands
            .first()
            .and_then(|n| n.parse().ok())
            .unwrap_or(default)
    };
    let width = || match mnemonic {
        _ if mnemonic.ends_with("x4") || mnemonic.ends_with("b128") => 16,
        _ if mnemonic.ends_with("x2") || mnemonic.ends_with("b64") => 8,
        _ => 4,
    };
    use WaveOperation::*;
    let operation = match mnemonic {
        "s_endpgm" => End,
        "s_barrier" => Barrier,
        "s_waitcnt" => waits(&operands)?,
        "s_sleep" => Sleep {
            cycles: 64 * number(1),
        },
        "s_nop" => Internal {
            cycles: 1 + number(0),
        },
        "s_branch" => Jump { to: label()? },
        "s_sendmsg" => Message,
        "exp" => Export,
        "lds_direct_load" => LocalDirect,
        "s_cbranch_execz" => Skip { to: label()? },
        _ if mnemonic.starts_with("s_cbranch") => Branch {
            to: label()?,
            times,
        },
        _ if mnemonic.starts_with("s_load") => ScalarLoad,
        _ if mnemonic.starts_with("s_") => Scalar,
        // The larger shapes take 16 passes of 4 cycles.
        _ if mnemonic.starts_with("v_mfma_f32_32x32") => Matrix { cycles: 64 },
        _ if mnemonic.starts_with("v_mfma") => Matrix { cycles: 32 },
        _ if mnemonic.starts_with("v_dual") => Vector {
            cycles: 4,
            dual: true,
        },
        // Transcendental functions run at a quarter of the rate.
        _ if ["v_exp", "v_log", "v_rcp", "v_rsq", "v_sqrt", "v_sin"]
            .iter()
            .any(|t| mnemonic.starts_with(t)) =>
        {
            Vector {
                cycles: 16,
                dual: false,
            }
        }
        _ if mnemonic.starts_with("v_") => Vector {
            cycles: 4,
            dual: false,
        },
        _ if mnemonic.starts_with("global_load") => Load { bytes: width() },
        _ if mnemonic.starts_with("global_store") || mnemonic.starts_with("global_atomic") => {
            Store { bytes: width() }
        }
        _ if mnemonic.starts_with("image_") => Texture,
        _ if mnemonic.starts_with("ds_") => Local { bytes: width() },
        _ => return Err("an instruction that the model does not know".into()),
    };
    let mut ranges: Vec<Registers> = operands.iter().filter_map(|one| registers(one)).collect();
    let first_is_result = operands
        .first()
        .is_some_and(|first| registers(first).is_some())
        && !matches!(operation, Store { .. } | Export)
        && !mnemonic.starts_with("ds_write")
        && !mnemonic.starts_with("s_cmp");
    let mut writes = first_is_result.then(|| ranges.remove(0));
    if mnemonic.starts_with("s_cmp") {
        writes = registers("scc");
    }
    if mnemonic.starts_with("s_cbranch_scc") {
        ranges.extend(registers("scc"));
    }
    if mnemonic.starts_with("s_cbranch_vcc") {
        ranges.extend(registers("vcc"));
    }
    Ok(WaveInstruction {
        operation,
        reads: ranges,
        writes,
        lanes,
        stride,
        stores: matches!(operation, Store { .. }) || mnemonic.starts_with("ds_write"),
        line,
        offset,
        text: text.to_owned(),
    })
}

/// Splits operands at commas outside of brackets.
fn split(operands: &str) -> Vec<&str> {
    operands
        .split(',')
        .map(str::trim)
        .filter(|one| !one.is_empty())
        .collect()
}

/// Parses `v3`, `v[4:7]`, `s2`, `a[0:15]` or `vcc`. Returns `None` for the last word of a modifier.
fn registers(text: &str) -> Option<Registers> {
    if let Some((_, first)) = SPECIAL.iter().find(|(name, _)| *name == text) {
        return Some(Registers {
            first: *first,
            count: 1,
        });
    }
    let base = match text.as_bytes().first()? {
        b'v' => 0,
        b'a' => 256,
        b's' => 512,
        _ => return None,
    };
    let rest = &text[1..];
    let (first, last): (u16, u16) = match rest.strip_prefix('[') {
        Some(range) => {
            let (first, last) = range.strip_suffix(']')?.split_once(':')?;
            (first.parse().ok()?, last.parse().ok()?)
        }
        None => {
            let only = rest.parse().ok()?;
            (only, only)
        }
    };
    let limit = if base == 512 { 104 } else { 256 };
    (first <= last && last < limit).then_some(Registers {
        first: base + first,
        count: last - first + 1,
    })
}

/// Parses `vmcnt(2)`, `lgkmcnt(0)` or `vscnt(0)`.
fn waits(operands: &[&str]) -> Result<WaveOperation, String> {
    const ANY: u32 = u32::MAX;
    let (mut load, mut store, mut local) = (ANY, ANY, ANY);
    for operand in operands.iter().flat_map(|one| one.split_whitespace()) {
        let (name, count) = operand
            .strip_suffix(')')
            .and_then(|one| one.split_once('('))
            .ok_or("a counter looks like vmcnt(0)")?;
        let count = count.parse().map_err(|_| "no number in the counter")?;
        match name {
            "vmcnt" => load = count,
            "vscnt" => store = count,
            "lgkmcnt" => local = count,
            _ => return Err(format!("no counter {name}")),
        }
    }
    Ok(WaveOperation::Wait { load, store, local })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_its_disassembly() {
        let text = "
            4 s_load_dwordx4 s[0:3], s[4:5], 0x0
            s_waitcnt lgkmcnt(0)
            loop:
            6 global_load_dwordx4 v[4:7], v[0:1], off
            s_waitcnt vmcnt(0) lgkmcnt(3)
            7 v_fma_f32 v8, v4, v5, v8 ;lanes 16
            9 s_cmp_lt_u32 s6, s3
            s_cbranch_scc1 loop ;x48
            11 s_endpgm
        ";
        let program = WaveProgram::read(text).unwrap();
        let lines: Vec<(u32, u64)> = program.lines.iter().map(|l| (l.line, l.offset)).collect();
        let expected = [
            (4, 0),
            (4, 8),
            (6, 12),
            (6, 20),
            (7, 24),
            (9, 28),
            (9, 32),
            (11, 36),
        ];
        assert_eq!(lines, expected);
        let fma = &program.lines[4];
        assert_eq!((fma.lanes, fma.reads.len()), (16, 3));
        assert_eq!(fma.writes, registers("v8"));
        let wait = WaveOperation::Wait {
            load: 0,
            store: u32::MAX,
            local: 3,
        };
        assert_eq!(program.lines[3].operation, wait);
        let branch = &program.lines[6];
        assert_eq!(branch.operation, WaveOperation::Branch { to: 2, times: 48 });
        assert_eq!(branch.reads, [registers("scc").unwrap()]);
    }

    #[test]
    fn errors_name_the_line_and_the_name() {
        let wrong = |text: &str| WaveProgram::read(text).unwrap_err();
        assert!(wrong("1 s_barrier").contains("s_endpgm"));
        assert!(wrong("1 t_what v0\n s_endpgm").contains("line 1"));
        assert!(wrong("1 s_branch nowhere\n s_endpgm").contains("no label nowhere"));
        assert!(wrong("1 s_waitcnt xcnt(1)\n s_endpgm").contains("no counter xcnt"));
    }
}
