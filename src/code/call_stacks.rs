//! The names of the functions on call stacks of the host.
//!
//! They come from the symbols of the files that the program had loaded, if these are still the same files, and from the map
//! that Python and JITs write for perf. All memory here is bounded.

mod perf_map;

use crate::symbols::elf::ElfCode;
use gputrail_capture::Metadata;
use gputrail_record::number_map::NumberMap;
use gputrail_record::{CallStackId, FrameAddress, HostModuleId, printable};
use perf_map::PerfMap;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Stands between a function and its caller in the text of a stack.
pub const CALLED_BY: &str = " < ";
/// The most names and bytes of texts that are kept; beyond it, they are made again.
const MAX_NAMES: usize = 1 << 18;
const MAX_TEXT: usize = 64 << 20;

/// Names the functions on the call stacks of one process.
#[derive(Default)]
pub struct CallStackNames {
    modules: HashMap<HostModuleId, Option<ElfCode>>,
    names: HashMap<FrameAddress, Arc<str>>,
    perf_map: Option<PerfMap>,
    texts: NumberMap<CallStackId, Arc<str>>,
    text_bytes: usize,
}

impl std::fmt::Debug for CallStackNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallStackNames").finish_non_exhaustive()
    }
}

impl CallStackNames {
    /// The functions of a stack, innermost first, with [`CALLED_BY`] between them; `None` if the stack is unknown.
    pub fn text(&mut self, metadata: &Metadata, id: CallStackId) -> Option<Arc<str>> {
        if let Some(text) = self.texts.get(&id) {
            return Some(text.clone());
        }
        let frames = metadata.call_stacks.get(&id)?;
        let mut text = String::new();
        for frame in frames {
            if !text.is_empty() {
                text.push_str(CALLED_BY);
            }
            text.push_str(&self.name(metadata, *frame));
        }
        if self.text_bytes + text.len() > MAX_TEXT {
            self.texts.clear();
            self.text_bytes = 0;
        }
        self.text_bytes += text.len();
        let text: Arc<str> = text.into();
        self.texts.insert(id, text.clone());
        Some(text)
    }

    fn name(&mut self, metadata: &Metadata, frame: FrameAddress) -> Arc<str> {
        if let Some(name) = self.names.get(&frame) {
            return name.clone();
        }
        if self.names.len() >= MAX_NAMES {
            self.names.clear();
        }
        let (name, is_found) = self.find(metadata, frame);
        // The name of a frame stands between separators.
        let name = printable(&name).replace(CALLED_BY, "<");
        let name: Arc<str> = name.into();
        // A map for perf grows while the program runs.
        if is_found || frame.module().is_some() {
            self.names.insert(frame, name.clone());
        }
        name
    }

    /// The name of a frame, and whether it is that of a function.
    fn find(&mut self, metadata: &Metadata, frame: FrameAddress) -> (Arc<str>, bool) {
        let address = frame.address();
        let Some(module) = metadata.host_modules.get(&frame.module()) else {
            let map = self.perf_map.get_or_insert_with(|| PerfMap::of(metadata));
            return match map.name(address) {
                Some(name) => (name.into(), true),
                None => (format!("{address:#x}").into(), false),
            };
        };
        let path = metadata.string(module.path);
        let code = self.modules.entry(module.id);
        let code =
            code.or_insert_with(|| ElfCode::open_names(path, metadata.string(module.build_id)));
        match code.as_mut().and_then(|code| code.name(address)) {
            Some(name) => (name, true),
            None => {
                let file = Path::new(path).file_name().unwrap_or_default();
                let name = format!("{}+{address:#x}", file.to_string_lossy());
                (name.into(), false)
            }
        }
    }
}
