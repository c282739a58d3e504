//! Code that lies in no module: that of a JIT, and trampolines such as Python's.
//!
//! It has no unwind information, and mostly frame pointers. A trampoline that only calls another function has none, but
//! returns right after its call: the instructions there say where its own return address is.

use super::walker::ReadableRegisters;
use gputrail_buffer::platform::system::peek;

/// Entries of the cache, by address.
const CACHED: usize = 256;

/// A frame in code outside of modules.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum OutsideFrame {
    /// No call precedes the address, so it is no return address.
    NotCode,
    /// A function that may have a frame pointer.
    Ordinary,
    /// A function that returns at once.
    Returning(FunctionEnd),
}

/// The end of a function: it leaves this many bytes of the stack, below its return address.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct FunctionEnd {
    bytes: u32,
    /// Where among them the caller's frame pointer is, if it is restored.
    frame_pointer: Option<u32>,
}

impl FunctionEnd {
    /// Takes the frame off: the return address, if there is one.
    pub fn unwind(
        self,
        registers: &mut impl ReadableRegisters,
        read: &mut impl FnMut(u64) -> Result<u64, ()>,
    ) -> Option<u64> {
        let sp = registers.stack_pointer();
        let place = sp.checked_add(self.bytes.into())?;
        let caller = read(place).ok().filter(|caller| *caller != 0)?;
        let frame_pointer = match self.frame_pointer {
            Some(offset) => Some(read(sp + u64::from(offset)).ok()?),
            None => None,
        };
        registers.leave(caller, place + 8, frame_pointer);
        Some(caller)
    }
}

/// The frames outside of modules that have been looked at, by address.
#[derive(Default)]
pub(super) struct OutsideCode {
    known: Vec<(u64, Option<OutsideFrame>)>,
}

impl OutsideCode {
    /// The frame at a return address.
    pub fn at(&mut self, address: u64) -> OutsideFrame {
        if self.known.is_empty() {
            self.known.resize(CACHED, (0, None));
        }
        let place = (address ^ address >> 8) as usize % CACHED;
        if let (known, Some(frame)) = self.known[place]
            && known == address
        {
            return frame;
        }
        let frame = frame_at(address);
        self.known[place] = (address, Some(frame));
        frame
    }
}

/// Bytes before and behind a return address that are looked at.
const AROUND: usize = 16;

fn frame_at(address: u64) -> OutsideFrame {
    let mut code = [0; 2 * AROUND];
    let begin = address.checked_sub(AROUND as u64);
    if !begin.is_some_and(|begin| peek(begin, &mut code)) {
        return OutsideFrame::NotCode;
    }
    let (before, behind) = code.split_at(AROUND);
    frame_between(before, behind)
}

/// The frame at a return address with these bytes of code around it.
#[cfg(target_arch = "x86_64")]
pub(super) fn frame_between(before: &[u8], behind: &[u8]) -> OutsideFrame {
    let at = |back: usize| {
        before
            .len()
            .checked_sub(back)
            .and_then(|place| before.get(place))
    };
    // `call` with a distance, or of what a register or memory holds.
    let is_indirect = |back: usize| {
        at(back) == Some(&0xff) && at(back - 1).is_some_and(|operand| operand >> 3 & 7 == 2)
    };
    if at(5) != Some(&0xe8) && ![2, 3, 4, 6, 7].into_iter().any(is_indirect) {
        return OutsideFrame::NotCode;
    }
    match function_end(behind) {
        Some(end) => OutsideFrame::Returning(end),
        None => OutsideFrame::Ordinary,
    }
}

/// The end of a function that begins with `code`: nothing but `add $n, %rsp`, pops, and `ret`.
#[cfg(target_arch = "x86_64")]
fn function_end(mut code: &[u8]) -> Option<FunctionEnd> {
    let mut end = FunctionEnd {
        bytes: 0,
        frame_pointer: None,
    };
    if let [0x48, 0x83, 0xc4, bytes @ 0..=0x7f, rest @ ..] = code {
        end.bytes = u32::from(*bytes);
        code = rest;
    } else if let [0x48, 0x81, 0xc4, a, b, c @ 0..=0x0f, 0, rest @ ..] = code {
        end.bytes = u32::from_le_bytes([*a, *b, *c, 0]);
        code = rest;
    }
    loop {
        match code {
            [0x5d, rest @ ..] => {
                end.frame_pointer = Some(end.bytes);
                end.bytes += 8;
                code = rest;
            }
            [0x58..=0x5b | 0x5e..=0x5f, rest @ ..] | [0x41, 0x58..=0x5f, rest @ ..] => {
                end.bytes += 8;
                code = rest;
            }
            [0xc3, ..] | [0xf2 | 0xf3, 0xc3, ..] => return Some(end),
            _ => return None,
        }
    }
}

/// The frame at a return address with these bytes of code around it: code of this architecture has frame pointers.
#[cfg(target_arch = "aarch64")]
pub(super) fn frame_between(before: &[u8], _: &[u8]) -> OutsideFrame {
    let Some(call) = before.last_chunk::<4>() else {
        return OutsideFrame::NotCode;
    };
    let call = u32::from_le_bytes(*call);
    let is_direct = call & 0xfc00_0000 == 0x9400_0000;
    let is_of_register = call & 0xfeff_f000 == 0xd63f_0000;
    if is_direct || is_of_register {
        OutsideFrame::Ordinary
    } else {
        OutsideFrame::NotCode
    }
}
