//! The modules that the dynamic loader has loaded, with their unwind information.
//!
//! The list is compared with the loader's counts of loads and unloads before each stack, and read again when these have
//! changed, so that no memory of an unloaded module is read: a module with a frame on a thread's stack stays loaded.
//!
//! The loader's list is read under its lock. A child that is forked meanwhile would inherit that lock and wait for it for
//! ever, so a thread that forks waits until no thread is there, and none goes there until the child has been made.

use super::walker::ModuleUnwinder;
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use gputrail_capture::names::Names;
use gputrail_record::{FrameAddress, HostModuleId};
use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// Unwind information of a module, in its memory.
pub(super) type UnwindSection = &'static [u8];

/// The most modules.
const MAX_MODULES: usize = 1 << 14;
/// The longest build id, in bytes.
const MAX_BUILD_ID: usize = 64;

/// A program or library.
#[derive(Debug)]
struct LoadedModule {
    /// Its code.
    code: Range<u64>,
    /// The difference between its addresses in memory and in its file.
    bias: u64,
    /// Its path; empty for the program.
    path: Box<[u8]>,
    build_id: Box<[u8]>,
    /// Its name in the capture, from the first stack that has it.
    id: HostModuleId,
    /// Its `.eh_frame_hdr`, in memory.
    frame_header: Option<Range<u64>>,
    /// The end of the segment with `.eh_frame_hdr` and `.eh_frame`.
    frames_end: u64,
}

/// The path and the build id of a module.
type ModuleFile = (Box<[u8]>, Box<[u8]>);

/// The loader's counts of loads and unloads.
type Generation = (u64, u64);

/// The modules, in the order of their addresses.
#[derive(Default)]
pub(super) struct LoadedModules {
    modules: Vec<LoadedModule>,
    generation: Option<Generation>,
    /// The names of modules that were unloaded, by path and build id.
    ids: HashMap<ModuleFile, HostModuleId>,
    /// The place of this library, if it is one.
    own: Option<usize>,
}

impl LoadedModules {
    /// Reads the loader's list if it has changed, and gives it to `unwinder`. `false`: it cannot be read now, as a thread
    /// forks.
    pub fn update(&mut self, unwinder: &mut ModuleUnwinder) -> bool {
        let Some(generation) = with_loader(generation) else {
            return false;
        };
        if self.generation == Some(generation) {
            return true;
        }
        let Some(list) = with_loader(list) else {
            return false;
        };
        let mut new = list.modules;
        new.sort_by_key(|module| module.code.start);
        new.dedup_by_key(|module| module.code.start);
        let mut is_known = vec![false; new.len()];
        for module in self.modules.drain(..) {
            let place = new.binary_search_by_key(&module.code.start, |module| module.code.start);
            match place {
                Ok(place) if new[place].is(&module) => {
                    is_known[place] = true;
                    new[place].id = module.id;
                }
                _ => {
                    unwinder.remove_module(module.code.start);
                    if module.id.is_some() {
                        self.ids.insert((module.path, module.build_id), module.id);
                    }
                }
            }
        }
        for (module, _) in new.iter_mut().zip(is_known).filter(|(_, known)| !known) {
            let key = (module.path.clone(), module.build_id.clone());
            module.id = self.ids.get(&key).copied().unwrap_or_default();
            unwinder.add_module(module.for_unwinding());
        }
        self.modules = new;
        self.generation = Some(list.generation);
        let own = self.at(with_loader::<()> as *const () as u64);
        // In a program that this code is linked with, stacks begin in this code.
        self.own = own.filter(|own| !self.modules[*own].path.is_empty());
        true
    }

    /// The place of the module with code at `address`.
    pub fn at(&self, address: u64) -> Option<usize> {
        let after = self
            .modules
            .partition_point(|module| module.code.start <= address);
        let place = after.checked_sub(1)?;
        (address < self.modules[place].code.end).then_some(place)
    }

    /// Whether the module at `place` is this library.
    pub fn is_own(&self, place: usize) -> bool {
        self.own == Some(place)
    }

    /// The frame at `address` in the module at `place`, which gets a name if it has none.
    pub fn frame(&mut self, place: usize, address: u64, names: &Names) -> FrameAddress {
        let module = &mut self.modules[place];
        if !module.id.is_some() {
            module.id = module.name(names);
        }
        if module.id.0 > FrameAddress::MAX_MODULE {
            return FrameAddress::new(HostModuleId::NONE, address);
        }
        FrameAddress::new(module.id, address.wrapping_sub(module.bias))
    }
}

impl LoadedModule {
    /// Whether it is the same file at the same place.
    fn is(&self, other: &LoadedModule) -> bool {
        (&self.code, self.bias, &self.frame_header)
            == (&other.code, other.bias, &other.frame_header)
            && (&self.path, &self.build_id) == (&other.path, &other.build_id)
    }

    #[cold]
    fn name(&self, names: &Names) -> HostModuleId {
        let digits = self.build_id.iter().map(|byte| format!("{byte:02x}"));
        let build_id = digits.collect::<String>();
        if self.path.is_empty() {
            let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
            return names.host_module(&program.to_string_lossy(), &build_id);
        }
        names.host_module(&String::from_utf8_lossy(&self.path), &build_id)
    }

    fn for_unwinding(&self) -> Module<UnwindSection> {
        let mut sections = ExplicitModuleSectionInfo::default();
        if let Some(header) = self.frame_header.clone()
            && let Some(frames) = frames_of(&header, self.frames_end)
        {
            let in_file = |range: &Range<u64>| {
                range.start.wrapping_sub(self.bias)..range.end.wrapping_sub(self.bias)
            };
            sections.eh_frame_hdr_svma = Some(in_file(&header));
            sections.eh_frame_svma = Some(in_file(&frames));
            sections.eh_frame_hdr = Some(bytes(header));
            sections.eh_frame = Some(bytes(frames));
        }
        Module::new(String::new(), self.code.clone(), self.bias, sections)
    }
}

/// The place of `.eh_frame`, which begins where its header says and ends at most with their segment.
fn frames_of(header: &Range<u64>, end: u64) -> Option<Range<u64>> {
    // Version 1; a signed distance of 4 bytes from its own place, as all linkers write it.
    let [1, 0x1b, _, _, distance @ ..] = bytes(header.clone()).first_chunk::<8>()? else {
        return None;
    };
    let distance = i64::from(i32::from_le_bytes(*distance));
    let begin = (header.start + 4).checked_add_signed(distance)?;
    (begin < end).then_some(begin..end)
}

/// The bytes of a module's memory.
fn bytes(range: Range<u64>) -> UnwindSection {
    let length = range.end.saturating_sub(range.start) as usize;
    // SAFETY: the range lies in a segment of a module that is not written to, and is readable as it is loaded. It is
    // read while a stack is followed, right after it was found that no module has been unloaded; modules with frames
    // on the stack stay loaded meanwhile.
    unsafe { std::slice::from_raw_parts(range.start as *const u8, length) }
}

/// Threads that are in the loader, and, in steps of [`FORKING`], threads that fork.
static IN_LOADER: AtomicU32 = AtomicU32::new(0);
const FORKING: u32 = 1 << 16;
/// How often a thread that forks looks whether the others have left. The list is read in less time, unless its memory comes
/// from an allocator that the thread has locked for the fork.
const PATIENCE: u32 = 1 << 16;

/// Calls `work`, which takes the loader's lock, unless a thread forks.
fn with_loader<R>(work: fn() -> R) -> Option<R> {
    static HANDLERS: Once = Once::new();
    if !HANDLERS.is_completed() {
        // SAFETY: the handlers stay, as this library does.
        HANDLERS.call_once(|| unsafe {
            libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child));
        });
    }
    let before = IN_LOADER.fetch_add(1, Ordering::Acquire);
    let result = (before < FORKING).then(work);
    IN_LOADER.fetch_sub(1, Ordering::Release);
    result
}

extern "C" fn before_fork() {
    IN_LOADER.fetch_add(FORKING, Ordering::AcqRel);
    for _ in 0..PATIENCE {
        if IN_LOADER.load(Ordering::Acquire).is_multiple_of(FORKING) {
            break;
        }
        std::thread::yield_now();
    }
}

extern "C" fn after_fork() {
    IN_LOADER.fetch_sub(FORKING, Ordering::Release);
}

extern "C" fn in_child() {
    IN_LOADER.store(0, Ordering::Relaxed);
}

/// The loader's list of modules.
struct ModuleList {
    modules: Vec<LoadedModule>,
    generation: Generation,
}

fn generation() -> Generation {
    extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
        // SAFETY: the loader's description of a module, and the place that was passed for the result.
        unsafe { *found.cast::<Generation>() = ((*info).dlpi_adds, (*info).dlpi_subs) };
        1
    }
    let mut found: Generation = (0, 0);
    // SAFETY: `first` stores to `found`, which is there during the call.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut found).cast()) };
    found
}

fn list() -> ModuleList {
    extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, list: *mut c_void) -> c_int {
        // SAFETY: the loader's description of a module, and the list that was passed, which nobody else uses.
        let (info, list) = unsafe { (&*info, &mut *list.cast::<ModuleList>()) };
        list.generation = (info.dlpi_adds, info.dlpi_subs);
        if list.modules.len() < MAX_MODULES {
            // SAFETY: the loader's description of a module that is loaded.
            list.modules.extend(unsafe { module(info) });
        }
        0
    }
    let mut list = ModuleList {
        modules: Vec::new(),
        generation: (0, 0),
    };
    // SAFETY: `each` adds to `list`, which is there during the call.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut list).cast()) };
    list
}

/// A module; `None` if it has no code.
///
/// # Safety
///
/// The loader has made `info`, and the module is loaded.
unsafe fn module(info: &libc::dl_phdr_info) -> Option<LoadedModule> {
    if info.dlpi_phdr.is_null() {
        return None;
    }
    // SAFETY: the loader's table of program headers has so many entries (the caller's promise).
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let bias = info.dlpi_addr;
    let range = |header: &libc::Elf64_Phdr, length: u64| {
        let start = bias.wrapping_add(header.p_vaddr);
        Some(start..start.checked_add(length)?)
    };
    let segments = || {
        headers
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD)
    };
    // The segment in which all of a range lies.
    let around = |part: &Range<u64>| {
        let in_file = segments().filter_map(|header| range(header, header.p_filesz));
        let mut around = in_file.filter(|all| all.start <= part.start && part.end <= all.end);
        around.next()
    };
    let of_type = |kind: u32| {
        let header = headers.iter().find(|header| header.p_type == kind)?;
        range(header, header.p_memsz)
    };
    let code = segments().filter(|header| header.p_flags & libc::PF_X != 0);
    let code = code.filter_map(|header| range(header, header.p_memsz));
    let code = code.reduce(|all, part| all.start.min(part.start)..all.end.max(part.end))?;
    let frame_header = of_type(libc::PT_GNU_EH_FRAME);
    let segment = frame_header.as_ref().and_then(around);
    let notes = headers
        .iter()
        .filter(|header| header.p_type == libc::PT_NOTE);
    let notes = notes.filter_map(|header| range(header, header.p_filesz));
    let notes = notes.filter(|part| around(part).is_some());
    let build_id = notes.map(bytes).find_map(build_id).unwrap_or_default();
    let path = if info.dlpi_name.is_null() {
        c""
    } else {
        // SAFETY: the loader's name of the module, which ends with a zero (the caller's promise).
        unsafe { CStr::from_ptr(info.dlpi_name) }
    };
    Some(LoadedModule {
        code,
        bias,
        path: path.to_bytes().into(),
        build_id: build_id.into(),
        id: HostModuleId::NONE,
        frames_end: segment.as_ref().map_or(0, |segment| segment.end),
        frame_header: frame_header.filter(|_| segment.is_some()),
    })
}

/// The build id among the notes of a module.
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    const BUILD_ID: u32 = 3;
    loop {
        let (head, rest) = notes.split_first_chunk::<12>()?;
        let word = |place: usize| {
            let bytes = head[place..].first_chunk::<4>();
            bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
        };
        let padded = |length: u32| (length as usize).next_multiple_of(4);
        let (name, rest) = rest.split_at_checked(padded(word(0)))?;
        let (content, next) = rest.split_at_checked(padded(word(4)))?;
        if word(8) == BUILD_ID && name == b"GNU\0" {
            return content.get(..(word(4) as usize).min(MAX_BUILD_ID));
        }
        notes = next;
    }
}
