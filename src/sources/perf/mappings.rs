//! The executable mappings of the process: code of kernels and everything else. They are read from `/proc/self/maps`
//! first and followed through the kernel's mmap records, whose times distinguish a kernel from a later one at the same
//! addresses.
//!
//! The maps are read again whenever code is loaded, inside the recorded program. So their bytes are compared in place; the crate
//! procfs makes a structure with a path and a map of attributes for each mapping.

use super::deleted_file::{DELETED, FileMapping, rebuild};
use super::image::KernelImage;
use gputrail_capture::code::{CodeOffset, MAX_CODE_OBJECT};
use gputrail_capture::names::Names;
use gputrail_record::{
    AgentId, CodeObject, CodeObjectId, KernelId, KernelSymbol, ModuleId, code_bytes,
};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

/// The limit mappings, and the limit names of mappings outside of kernels.
const MAX_MAPPINGS: usize = 1 << 14;
/// The name of unknown memory.
const UNKNOWN: &str = "(unknown)";

/// The location of an address.
#[derive(Clone, Debug)]
pub enum CodeLocation {
    /// Code of a kernel.
    Kernel(Arc<KernelCode>, CodeOffset),
    /// Other memory: the name of its mapping.
    Elsewhere(Arc<str>),
}

/// The loaded code of a kernel.
#[derive(Debug)]
pub struct KernelCode {
    /// Its code object.
    pub id: CodeObjectId,
    /// The kernel's name.
    pub kernel: Arc<str>,
    load_base: u64,
}

#[cfg(test)]
impl KernelCode {
    /// Code of `kernel` at address 0.
    pub fn new(id: CodeObjectId, kernel: &str) -> KernelCode {
        KernelCode {
            id,
            kernel: kernel.into(),
            load_base: 0,
        }
    }
}

#[derive(Clone)]
enum CodeOwner {
    Kernel(Arc<KernelCode>),
    Elsewhere(Arc<str>),
}

struct ProcessMapping {
    start: u64,
    end: u64,
    /// The time of the mapping, by the samples' clock.
    since: u64,
    path: Box<[u8]>,
    owner: CodeOwner,
}

/// The executable mappings of the process.
#[derive(Default)]
pub struct Mappings {
    /// In order of time.
    all: Vec<ProcessMapping>,
    names: HashMap<Box<str>, Arc<str>>,
    /// The modules of code objects, as far as known.
    modules: HashMap<CodeObjectId, ModuleId>,
    /// Code objects whose bytes could not be stored.
    pub not_stored: u64,
}

impl Mappings {
    /// Reads `/proc/self/maps` and adds the mappings that are new.
    pub fn read_all(&mut self, since: u64, agent: AgentId, names: &Names) {
        let text = read_maps();
        for line in text.split(|byte| *byte == b'\n') {
            let Some(line) = MapsEntry::read(line).filter(|line| line.has_permission(2, b'x'))
            else {
                continue;
            };
            let (start, end) = (line.start, line.end);
            let is_known = self.newest(start, u64::MAX).is_some_and(|known| {
                (known.start, known.end, &*known.path) == (start, end, line.path)
            });
            if !is_known {
                self.add(start, end, line.offset, line.path, since, agent, names);
            }
        }
    }

    /// Adds a mapping.
    #[expect(
        clippy::too_many_arguments,
        reason = "the fields of a mapping as the kernel prints them"
    )]
    pub fn add(
        &mut self,
        start: u64,
        end: u64,
        offset: u64,
        path: &[u8],
        since: u64,
        agent: AgentId,
        names: &Names,
    ) {
        let name = path;
        let path = String::from_utf8_lossy(path);
        let owner = match self.kernel(&path, start, offset, agent, names) {
            Some(code) => CodeOwner::Kernel(code),
            None => CodeOwner::Elsewhere(self.name(&path)),
        };
        if self.all.len() >= MAX_MAPPINGS {
            // The oldest mappings are the limit likely to be unmapped.
            self.all.drain(..MAX_MAPPINGS / 4);
        }
        self.all.push(ProcessMapping {
            start,
            end,
            since,
            path: name.into(),
            owner,
        });
    }

    /// The location of `address` at `time`, or `None` if it was not mapped then.
    pub fn find(&self, address: u64, time: u64) -> Option<CodeLocation> {
        Some(match &self.newest(address, time)?.owner {
            CodeOwner::Kernel(code) => CodeLocation::Kernel(
                code.clone(),
                CodeOffset(address.wrapping_sub(code.load_base)),
            ),
            CodeOwner::Elsewhere(name) => CodeLocation::Elsewhere(name.clone()),
        })
    }

    /// The name of unknown memory.
    pub fn unknown(&mut self) -> Arc<str> {
        self.name(UNKNOWN)
    }

    fn newest(&self, address: u64, time: u64) -> Option<&ProcessMapping> {
        self.all.iter().rev().find(|mapping| {
            (mapping.start..mapping.end).contains(&address) && mapping.since <= time
        })
    }

    /// Records that `code` set_module to the program of `kernel`, as a sample has shown.
    pub fn set_module(&mut self, code: &KernelCode, kernel: KernelId, names: &Names) {
        let Some(module) = names
            .get::<KernelSymbol>(kernel.0)
            .map(|symbol| symbol.module)
        else {
            return;
        };
        if !module.is_some() || self.modules.insert(code.id, module) == Some(module) {
            return;
        }
        if let Some(mut object) = names.get::<CodeObject>(code.id.0) {
            object.module = module;
            names.code_object(object);
        }
    }

    /// Identifies the code of a kernel: names it as a code object and stores its bytes before the
    /// file is deleted.
    fn kernel(
        &mut self,
        path: &str,
        start: u64,
        offset: u64,
        agent: AgentId,
        names: &Names,
    ) -> Option<Arc<KernelCode>> {
        let (path, is_deleted) = match path.strip_suffix(DELETED) {
            Some(path) => (path, true),
            None => (path, false),
        };
        // Libraries have a version suffix or a `lib` prefix; PoCL names the file after the kernel.
        if !path.starts_with('/') || !path.ends_with(".so") {
            return None;
        }
        let file = if is_deleted {
            None
        } else {
            File::open(path).ok()
        };
        let (image, bytes, flags) = match file {
            Some(mut file) => {
                let image = KernelImage::of(&file)?;
                let mut bytes = Vec::new();
                let limit = MAX_CODE_OBJECT as u64 + 1;
                let read = (&mut file).take(limit).read_to_end(&mut bytes);
                let is_complete = matches!(read, Ok(length) if length <= MAX_CODE_OBJECT);
                (image, is_complete.then_some(bytes), 0)
            }
            // Deleted before it was seen: its loaded parts are still in memory.
            None => {
                let bytes = rebuild(file_mappings(&read_maps(), path), start)?;
                let image = KernelImage::of_bytes(&bytes)?;
                (image, Some(bytes), code_bytes::FROM_MEMORY)
            }
        };
        let load_base = image.load_base(start, offset)?;
        let mut object = CodeObject::blank();
        (object.agent, object.path) = (agent, names.string(path));
        (object.load_base, object.load_size) = (load_base, image.load_size());
        let id = names.code_object(object);
        match bytes {
            Some(bytes) => names.code_bytes(id, &bytes, flags),
            None => self.not_stored += 1,
        }
        Some(Arc::new(KernelCode {
            id,
            kernel: image.kernel.into(),
            load_base,
        }))
    }

    fn name(&mut self, path: &str) -> Arc<str> {
        let name = match path {
            "" | "//anon" => "(memory without a file)",
            path => path.rsplit('/').next().unwrap_or(path),
        };
        match self.names.get(name) {
            Some(known) => known.clone(),
            None if self.names.len() >= MAX_MAPPINGS => UNKNOWN.into(),
            None => {
                let new: Arc<str> = name.into();
                self.names.insert(name.into(), new.clone());
                new
            }
        }
    }
}

/// The contents of `/proc/self/maps`, or nothing on error: then locations are unknown until mmap
/// records arrive.
fn read_maps() -> Vec<u8> {
    let mut text = Vec::new();
    let _ = File::open("/proc/self/maps").and_then(|mut file| file.read_to_end(&mut text));
    text
}

/// The mappings of the file at `path`, which may have been deleted.
fn file_mappings(list: &[u8], path: &str) -> Vec<FileMapping> {
    let lines = list.split(|byte| *byte == b'\n');
    let parts = lines.filter_map(|line| {
        let line = MapsEntry::read(line)?;
        let of = line.path;
        let of = of.strip_suffix(DELETED.as_bytes()).unwrap_or(of);
        (of == path.as_bytes() && line.end > line.start).then_some(FileMapping {
            start: line.start,
            end: line.end,
            offset: line.offset,
            is_writable: line.has_permission(1, b'w'),
        })
    });
    parts.collect()
}

/// A line of `/proc/self/maps`.
#[derive(Debug, PartialEq, Eq)]
struct MapsEntry<'a> {
    start: u64,
    end: u64,
    /// A letter or a dash each.
    permissions: &'a [u8],
    /// Offset in the file.
    offset: u64,
    path: &'a [u8],
}

impl<'a> MapsEntry<'a> {
    fn read(line: &'a [u8]) -> Option<MapsEntry<'a>> {
        let mut words = line.splitn(6, |byte| *byte == b' ');
        let (range, permissions, offset) = (words.next()?, words.next()?, words.next()?);
        let path = words.nth(2).unwrap_or_default().trim_ascii_start();
        let number =
            |digits: &[u8]| u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        let dash = range.iter().position(|byte| *byte == b'-')?;
        Some(MapsEntry {
            start: number(&range[..dash])?,
            end: number(&range[dash + 1..])?,
            permissions,
            offset: number(offset)?,
            path,
        })
    }

    fn has_permission(&self, index: usize, letter: u8) -> bool {
        self.permissions.get(index) == Some(&letter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_list_of_mappings_are_read() {
        let line = b"7f00-7f80 r-xp 00001000 fe:01 1234      /tmp/a kernel.so";
        let kernel = MapsEntry {
            start: 0x7f00,
            end: 0x7f80,
            permissions: b"r-xp",
            offset: 0x1000,
            path: b"/tmp/a kernel.so",
        };
        assert_eq!(MapsEntry::read(line), Some(kernel));
        let unnamed = MapsEntry::read(b"7f00-7f80 rw-p 0 00:00 0").unwrap();
        assert_eq!(unnamed.path, b"");
        assert!(unnamed.has_permission(1, b'w') && !unnamed.has_permission(2, b'x'));
        assert_eq!(MapsEntry::read(b"7f00 r-xp 0 00:00 0"), None);
        assert_eq!(MapsEntry::read(b""), None);
    }

    #[test]
    fn a_kernel_whose_file_is_deleted_is_kept_from_memory() {
        use gputrail_capture::{FileHeader, Reader, Writer};
        use gputrail_code::symbols::{Missing, Symbols};
        use gputrail_record::ProcessId;
        use std::ffi::CString;
        use std::os::unix::ffi::OsStrExt as _;

        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("kernel.c");
        let text = "static int twice(int x) { return 2 * x; }\n\
                    int _pocl_kernel_sum_workgroup(int x) { return twice(x) + 1; }\n\
                    int _pocl_kernel_sum_workgroup_fast(int x) { return twice(x) + 2; }\n";
        std::fs::write(&source, text).unwrap();
        for style in ["gnu", "sysv", "both"] {
            let library = directory.path().join(format!("{style}.so"));
            let status = std::process::Command::new("gcc")
                .args(["-shared", "-fPIC", "-O2", "-g", "-o"])
                .args([&library, &source])
                .arg(format!("-Wl,--hash-style={style}"))
                .status()
                .expect("gcc");
            assert!(status.success());
            let path = CString::new(library.as_os_str().as_bytes()).unwrap();
            // SAFETY: the library has no constructors, and the symbol exists.
            let address = unsafe {
                let loaded = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
                assert!(!loaded.is_null());
                libc::dlsym(loaded, c"_pocl_kernel_sum_workgroup".as_ptr()) as u64
            };
            std::fs::remove_file(&library).unwrap();

            let names = Names::new();
            let mut mappings = Mappings::default();
            mappings.read_all(0, AgentId(1), &names);
            let Some(CodeLocation::Kernel(code, offset)) = mappings.find(address, 1) else {
                panic!("{style}: no kernel");
            };
            assert_eq!(&*code.kernel, "sum");
            assert_eq!(mappings.not_stored, 0);

            let capture = directory.path().join(format!("{style}.gputrail"));
            let header = FileHeader::new(0, ProcessId(1), 1_000_000_000, 0, [0; 16]);
            names.add_writer(Writer::create(&capture, &header).unwrap());
            let reader = Reader::open(&capture).unwrap();
            gputrail_code::reader::link(&gputrail_symbols::GPUTRAIL_SYMBOLS);
            let found = Symbols::new().resolve(reader.metadata(), code.id, offset);
            let symbol = found.symbol.as_ref().expect("a symbol");
            assert_eq!(
                (&*symbol.name, symbol.offset),
                ("_pocl_kernel_sum_workgroup", 0)
            );
            assert!(found.instruction.is_some() || !cfg!(target_arch = "x86_64"));
            assert_eq!(found.missing, Some(Missing::FromMemory(code.id)));
        }
    }

    #[test]
    fn an_address_is_where_it_was_at_the_time() {
        let names = Names::new();
        let mut mappings = Mappings::default();
        let mut map = |start, end, path: &[u8], since| {
            mappings.add(start, end, 0, path, since, AgentId(1), &names);
        };
        map(0x1000, 0x3000, b"/lib/first.so.1", 10);
        map(0x2000, 0x4000, b"/lib/second.so.1", 20);
        let at = |address, time| match mappings.find(address, time) {
            Some(CodeLocation::Elsewhere(name)) => Some(name.to_string()),
            _ => None,
        };
        assert_eq!(at(0x2800, 15).as_deref(), Some("first.so.1"));
        assert_eq!(at(0x2800, 25).as_deref(), Some("second.so.1"));
        assert_eq!(at(0x1800, 25).as_deref(), Some("first.so.1"));
        assert_eq!(at(0x5000, 25), None);
        assert_eq!(at(0x1800, 5), None);
    }
}
