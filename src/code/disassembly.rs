//! Instructions of ELF files for which the [`reader`](crate::reader) has no disassembler: those of AMD's GPUs.
//!
//! The command links with one by [`link`], which may start a program of the system. A recorded program has none.

use std::sync::OnceLock;

/// The most functions that are disassembled in one process: each may start a program.
pub const MAX_FUNCTIONS: usize = 512;

/// The machine of an ELF file with code of AMD's GPUs.
const AMDGPU: u16 = 224;

/// The text of an instruction, and its address in the file.
pub type DisassembledInstruction = (u64, Box<str>);

/// A disassembler of functions. It says itself, once, why it cannot.
pub trait Disassembler: Sync {
    /// The instructions of a function of the ELF file in `bytes`, by the name of its symbol; none if they cannot be had.
    fn function(&self, bytes: &[u8], symbol: &str) -> Vec<DisassembledInstruction>;
}

static LINKED: OnceLock<&'static dyn Disassembler> = OnceLock::new();

/// Has code be disassembled by `disassembler` from now on. There is one in the process; a second one is not taken.
pub fn link(disassembler: &'static dyn Disassembler) {
    let _ = LINKED.set(disassembler);
}

/// The disassembler for the ELF file in `bytes`, if it needs one and there is one.
pub(crate) fn for_code(bytes: &[u8]) -> Option<&'static dyn Disassembler> {
    let linked = LINKED.get().copied()?;
    (machine(bytes) == Some(AMDGPU)).then_some(linked)
}

/// The machine of an ELF file, whose bytes are in the little-endian order.
fn machine(bytes: &[u8]) -> Option<u16> {
    let is_elf = bytes.starts_with(b"\x7fELF") && bytes.get(5) == Some(&1);
    let machine = bytes.get(18..20).filter(|_| is_elf)?;
    Some(u16::from_le_bytes([machine[0], machine[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_of_a_file_is_known() {
        let mut file = vec![0; 64];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[18] = 224;
        assert_eq!(machine(&file), Some(AMDGPU));
        assert_eq!(machine(&file[..19]), None);
        file[5] = 2;
        assert_eq!(machine(&file), None);
        assert_eq!(machine(b""), None);
    }
}
