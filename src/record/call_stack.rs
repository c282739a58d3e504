//! Call stacks of the host, and the modules that their code lies in.
//!
//! Both are metadata: a call refers to its stack by id ([`Api::stack`](super::Api::stack)), and equal stacks share one.

use super::*;

/// The most frames of a stack; of deeper ones, the innermost are kept.
pub const MAX_FRAMES: usize = 128;

/// The code address of a frame: a module and the address in its file, or an address of the process in none.
///
/// ```text
/// 0..48    the address: in the module's ELF file, or of the process
/// 48..64   the module; 0 for code that lies in none, such as that of a JIT
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub struct FrameAddress(pub u64);

impl FrameAddress {
    const ADDRESS_BITS: u32 = 48;
    /// The highest id of a module that fits.
    pub const MAX_MODULE: u32 = u16::MAX as u32;

    /// The frame at `address` in `module`, or of the process if that is none.
    pub const fn new(module: HostModuleId, address: u64) -> FrameAddress {
        let address = address & ((1 << Self::ADDRESS_BITS) - 1);
        FrameAddress((module.0 as u64) << Self::ADDRESS_BITS | address)
    }

    /// The module, or none.
    pub const fn module(self) -> HostModuleId {
        HostModuleId((self.0 >> Self::ADDRESS_BITS) as u32)
    }

    /// The address in the module's file, or of the process if it lies in no module.
    pub const fn address(self) -> u64 {
        self.0 & ((1 << Self::ADDRESS_BITS) - 1)
    }
}

impl layout::FieldType for FrameAddress {}

/// A call stack. 16 bytes plus 8 for each frame; the size in the header determines the number of frames.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct CallStack {
    /// Kind [`Kind::CALL_STACK`]; its size covers the frames. Flag `UNFINISHED`: outer frames are missing, because the stack
    /// was deeper or could not be followed.
    pub header: Header,
    /// The id.
    pub id: CallStackId,
    /// Number of frames.
    pub count: u32,
    /// The addresses of the calls, innermost first: each is the return address less 1. Only the first `count` are
    /// written.
    pub frames: [FrameAddress; MAX_FRAMES],
}
record!(CallStack, Kind::CALL_STACK, 16 + 8 * MAX_FRAMES, false);

impl CallStack {
    /// The size in bytes of a record with `count` frames.
    pub const fn bytes_for(count: usize) -> usize {
        16 + 8 * count
    }

    /// The record of a stack. Frames beyond [`MAX_FRAMES`] are left out.
    pub fn new(frames: &[FrameAddress], is_complete: bool) -> CallStack {
        let kept = frames.len().min(MAX_FRAMES);
        let mut record = CallStack::blank();
        record.header.words = (Self::bytes_for(kept) / 8) as u16;
        if !is_complete || kept < frames.len() {
            record.header.flags = flags::UNFINISHED;
        }
        record.count = kept as u32;
        record.frames[..kept].copy_from_slice(&frames[..kept]);
        record
    }

    /// The frames, innermost first.
    pub fn frames(&self) -> &[FrameAddress] {
        &self.frames[..(self.count as usize).min(MAX_FRAMES)]
    }

    /// The bytes of the record, without those of frames that it does not have.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::bytes_of(self)[..Self::bytes_for(self.frames().len())]
    }
}

/// A program or library with host code on call stacks. 24 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct HostModule {
    /// Kind [`Kind::HOST_MODULE`].
    pub header: Header,
    /// The id.
    pub id: HostModuleId,
    /// The path of its file.
    pub path: StringId,
    /// Its build id in hexadecimal digits, or none.
    pub build_id: StringId,
    /// Reserved, 0.
    pub reserved: u32,
}
record!(HostModule, Kind::HOST_MODULE, 24);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_keeps_its_module_and_its_address() {
        let frame = FrameAddress::new(HostModuleId(7), 0x7fff_1234_5678);
        assert_eq!(frame.module(), HostModuleId(7));
        assert_eq!(frame.address(), 0x7fff_1234_5678);
        let last = FrameAddress::new(HostModuleId(FrameAddress::MAX_MODULE), u64::MAX);
        assert_eq!(last.module().0, FrameAddress::MAX_MODULE);
    }

    #[test]
    fn a_stack_takes_only_the_space_of_its_frames() {
        let frames = [FrameAddress(5), FrameAddress(6)];
        let stack = CallStack::new(&frames, true);
        assert_eq!(stack.bytes().len(), 32);
        let read: CallStack = Records::new(stack.bytes()).next().unwrap().read().unwrap();
        assert_eq!((read.frames(), read.header.flags), (&frames[..], 0));
        let deep = CallStack::new(&[FrameAddress(1); MAX_FRAMES + 1], true);
        assert_eq!(deep.frames().len(), MAX_FRAMES);
        assert!(deep.header.has(flags::UNFINISHED));
    }
}
