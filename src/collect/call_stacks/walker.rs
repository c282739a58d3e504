//! Follows the stack of the calling thread.

use super::StackBounds;
use super::loaded::{LoadedModules, UnwindSection};
use super::outside::{OutsideCode, OutsideFrame};
use framehop::{FrameAddress as CodeAddress, MustNotAllocateDuringUnwind, Unwinder as _};
use gputrail_buffer::platform::system::peek;
use gputrail_capture::names::Names;
use gputrail_record::{CallStackId, FrameAddress, HostModuleId, MAX_FRAMES};

#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{
    CacheAarch64 as Cache, UnwindRegsAarch64 as Registers, UnwinderAarch64 as Unwinder,
};
#[cfg(target_arch = "x86_64")]
use framehop::x86_64::{
    CacheX86_64 as Cache, UnwindRegsX86_64 as Registers, UnwinderX86_64 as Unwinder,
};

/// Free space on a thread's stack below which its stack is not followed: rows of unwind information, of 6 KiB each, are
/// passed by value.
pub(super) const ROOM: u64 = 48 << 10;
/// The most words that are read through the system for one stack, of a thread that runs on a stack of its own making.
const MAX_PEEKS: usize = 4 * MAX_FRAMES;

/// The unwinder of loaded modules.
pub(super) type ModuleUnwinder = Unwinder<UnwindSection, MustNotAllocateDuringUnwind>;

/// Follows stacks.
pub(super) struct Walker {
    unwinder: ModuleUnwinder,
    cache: Cache<MustNotAllocateDuringUnwind>,
    modules: LoadedModules,
    outside: OutsideCode,
    /// The frames of the latest stack, innermost first.
    frames: Vec<FrameAddress>,
}

impl Default for Walker {
    fn default() -> Walker {
        Walker {
            unwinder: Unwinder::new(),
            cache: Cache::new_in(),
            modules: LoadedModules::default(),
            outside: OutsideCode::default(),
            frames: Vec::with_capacity(MAX_FRAMES),
        }
    }
}

impl Walker {
    /// See [`CallStacks::take`](super::CallStacks::take).
    #[inline(never)]
    pub fn take(&mut self, bounds: &StackBounds, names: &Names) -> CallStackId {
        let (address, registers) = here();
        let sp = registers.sp();
        let stack = match bounds.high.checked_sub(sp) {
            Some(_) if sp >= bounds.low => {
                if sp - bounds.low < ROOM {
                    return CallStackId::NONE;
                }
                ReadableStack::Within(sp, bounds.high)
            }
            // A fiber, or a signal handler on a stack of its own.
            _ => ReadableStack::Elsewhere(MAX_PEEKS),
        };
        if !self.modules.update(&mut self.unwinder) {
            return CallStackId::NONE;
        }
        let is_complete = self.follow(address, registers, stack, names);
        names.call_stack(&self.frames, is_complete)
    }

    /// Puts the frames of a stack into `frames`. Returns whether its outermost frame was reached.
    pub(super) fn follow(
        &mut self,
        address: u64,
        mut registers: Registers,
        mut stack: ReadableStack,
        names: &Names,
    ) -> bool {
        self.frames.clear();
        let mut read = |address: u64| stack.read(address);
        let mut at = CodeAddress::from_instruction_pointer(address);
        let mut is_inside = true;
        // Frames of this library are left out at the inner end, and bounded like the others.
        for _ in 0..2 * MAX_FRAMES {
            let address = at.address_for_lookup();
            let module = self.modules.at(address);
            is_inside &= module.is_some_and(|module| self.modules.is_own(module));
            let mut outside = OutsideFrame::Ordinary;
            if module.is_none() {
                outside = self.outside.at(at.address());
                if outside == OutsideFrame::NotCode {
                    return false;
                }
            }
            if !is_inside {
                if self.frames.len() == MAX_FRAMES {
                    return false;
                }
                // The address of a call is that of the instruction before its return address, whose last byte is this one.
                let frame = match module {
                    Some(module) => self.modules.frame(module, address, names),
                    None => FrameAddress::new(HostModuleId::NONE, address),
                };
                self.frames.push(frame);
            }
            let next = match outside {
                OutsideFrame::Returning(end) => Ok(end.unwind(&mut registers, &mut read)),
                _ => self
                    .unwinder
                    .unwind_frame(at, &mut registers, &mut self.cache, &mut read),
            };
            at = match next.map(|next| next.map(CodeAddress::from_return_address)) {
                Ok(None) => return true,
                Ok(Some(Some(next))) => next,
                Ok(Some(None)) | Err(_) => return false,
            };
        }
        false
    }

    /// The frames of the latest stack.
    #[cfg(test)]
    pub fn frames(&self) -> &[FrameAddress] {
        &self.frames
    }

    /// Reads the loaded modules.
    #[cfg(test)]
    pub fn update(&mut self) -> bool {
        self.modules.update(&mut self.unwinder)
    }
}

/// The memory of a stack that is followed.
pub(super) enum ReadableStack {
    /// The part of the thread's own stack that is in use, from and to these addresses. All of it is mapped.
    Within(u64, u64),
    /// Some other memory, read through the system, which reports what is not mapped; this many times.
    Elsewhere(usize),
}

impl ReadableStack {
    #[inline]
    fn read(&mut self, address: u64) -> Result<u64, ()> {
        match self {
            ReadableStack::Within(from, to) => {
                let end = address.checked_add(8).ok_or(())?;
                if address < *from || end > *to {
                    return Err(());
                }
                // SAFETY: the word lies in the part of this thread's stack that is in use, which is mapped. The frames of
                // this library among it are read, too, so the read is volatile.
                let word = unsafe { (address as *const [u8; 8]).read_volatile() };
                Ok(u64::from_ne_bytes(word))
            }
            ReadableStack::Elsewhere(left) => {
                *left = left.checked_sub(1).ok_or(())?;
                let mut word = [0; 8];
                if peek(address, &mut word) {
                    Ok(u64::from_ne_bytes(word))
                } else {
                    Err(())
                }
            }
        }
    }
}

/// The registers that the end of a function changes.
pub(super) trait ReadableRegisters {
    /// The stack pointer.
    fn stack_pointer(&self) -> u64;
    /// Returns to `caller`.
    fn leave(&mut self, caller: u64, stack_pointer: u64, frame_pointer: Option<u64>);
}

#[cfg(target_arch = "x86_64")]
impl ReadableRegisters for Registers {
    fn stack_pointer(&self) -> u64 {
        self.sp()
    }

    fn leave(&mut self, caller: u64, stack_pointer: u64, frame_pointer: Option<u64>) {
        self.set_ip(caller);
        self.set_sp(stack_pointer);
        if let Some(frame_pointer) = frame_pointer {
            self.set_bp(frame_pointer);
        }
    }
}

#[cfg(target_arch = "aarch64")]
impl ReadableRegisters for Registers {
    fn stack_pointer(&self) -> u64 {
        self.sp()
    }

    fn leave(&mut self, caller: u64, stack_pointer: u64, frame_pointer: Option<u64>) {
        self.set_lr(caller);
        self.set_sp(stack_pointer);
        if let Some(frame_pointer) = frame_pointer {
            self.set_fp(frame_pointer);
        }
    }
}

/// The registers of the calling function: its address, and what is needed to find its caller.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn here() -> (u64, Registers) {
    let (address, sp, bp): (u64, u64, u64);
    // SAFETY: copies registers.
    unsafe {
        std::arch::asm!(
            "lea {address}, [rip]",
            "mov {sp}, rsp",
            "mov {bp}, rbp",
            address = out(reg) address,
            sp = out(reg) sp,
            bp = out(reg) bp,
            options(nomem, nostack, preserves_flags),
        );
    }
    (address, Registers::new(address, sp, bp))
}

/// The registers of the calling function: its address, and what is needed to find its caller.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(super) fn here() -> (u64, Registers) {
    let (address, lr, sp, fp): (u64, u64, u64, u64);
    // SAFETY: copies registers.
    unsafe {
        std::arch::asm!(
            "adr {address}, .",
            "mov {lr}, x30",
            "mov {sp}, sp",
            "mov {fp}, x29",
            address = out(reg) address,
            lr = out(reg) lr,
            sp = out(reg) sp,
            fp = out(reg) fp,
            options(nomem, nostack, preserves_flags),
        );
    }
    (address, Registers::new(lr, sp, fp))
}
