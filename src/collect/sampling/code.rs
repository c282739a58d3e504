//! The code objects of this process, as their bytes in the names store say: the functions, lines and instructions of addresses.

use gputrail_capture::Metadata;
use gputrail_capture::code::CodeOffset;
use gputrail_capture::names::Names;
use gputrail_code::symbols::{Resolved, Symbols};
use gputrail_record::CodeObjectId;
use std::collections::HashSet;
use std::sync::Arc;

/// The code objects that have been read. Each is read when an address in it is looked up for the first time.
#[derive(Default)]
pub struct LoadedCode {
    metadata: Metadata,
    symbols: Symbols,
    /// Code objects whose bytes are in `metadata`.
    objects: HashSet<CodeObjectId>,
}

impl LoadedCode {
    /// Whether the bytes of `id` are known by now.
    fn read(&mut self, names: &Names, id: CodeObjectId) -> bool {
        if self.objects.contains(&id) {
            return true;
        }
        let mut is_known = false;
        names.read_code(id, |piece| {
            is_known = true;
            self.metadata.add(piece);
        });
        if is_known {
            self.objects.insert(id);
        }
        is_known
    }

    /// The resolution of `offset` in `id`; `None` as long as the bytes of the code object are not known.
    pub fn resolve(
        &mut self,
        names: &Names,
        id: CodeObjectId,
        offset: CodeOffset,
    ) -> Option<Arc<Resolved>> {
        let is_known = self.read(names, id);
        is_known.then(|| self.symbols.resolve(&self.metadata, id, offset))
    }

    /// The instructions of the function that contains `offset`; empty if unknown.
    pub fn instructions(
        &mut self,
        names: &Names,
        id: CodeObjectId,
        offset: CodeOffset,
    ) -> Vec<CodeOffset> {
        if self.read(names, id) {
            self.symbols.instructions(&self.metadata, id, offset)
        } else {
            Vec::new()
        }
    }

    /// Forgets what was read of a code object, which has been stored again with further instructions.
    pub fn forget(&mut self, id: CodeObjectId) {
        if self.objects.remove(&id) {
            self.symbols.forget(id);
        }
    }
}
