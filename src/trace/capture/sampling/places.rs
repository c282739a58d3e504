//! Names of code addresses: symbols, lines, instructions.

use std::sync::Arc;

use gputrail_capture::code::CodeOffset;
use gputrail_capture::{Metadata, kernel_names};
use gputrail_code::aggregate::Address;
use gputrail_code::symbols::{Resolved, Symbols};
use gputrail_record::{CodeObjectId, KernelId};

/// Resolves addresses, each once.
#[derive(Debug, Default)]
pub(super) struct Places {
    symbols: Symbols,
}

impl Places {
    /// The symbol, lines and instruction of an address.
    pub fn resolve(&mut self, metadata: &Metadata, address: Address) -> Arc<Resolved> {
        let offset = CodeOffset(address.offset);
        self.symbols.resolve(metadata, address.code_object, offset)
    }

    /// Forgets a code object whose bytes have come again.
    pub fn forget(&mut self, code_object: CodeObjectId) {
        self.symbols.forget(code_object);
    }

    /// The path of the code object that contains an address.
    pub fn object<'m>(&self, metadata: &'m Metadata, address: Address) -> &'m str {
        let object = metadata.code_objects.get(&address.code_object);
        object.map_or("", |object| metadata.string(object.path))
    }
}

/// The name of a kernel.
pub(super) fn kernel_name(metadata: &Metadata, kernel: KernelId) -> String {
    let symbol = metadata.kernels.get(&kernel);
    let name = symbol.map_or("", |symbol| {
        let name = metadata.string(symbol.name);
        kernel_names::kernel_name(name, metadata.string(symbol.demangled))
    });
    match (name, kernel) {
        ("", KernelId::NONE) => "code outside of kernels".to_owned(),
        ("", kernel) => format!("kernel {kernel}"),
        (name, _) => name.to_owned(),
    }
}

/// The line of a frame, as `file.cl:42`: the last part of the path identifies the file.
pub(super) fn line_name(file: &str, line: u32) -> String {
    let file = file.rsplit('/').next().unwrap_or(file);
    format!("{file}:{line}")
}
