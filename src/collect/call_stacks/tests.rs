use super::outside::{OutsideFrame, frame_between};
use super::walker::{ROOM, ReadableStack, Walker, here};
use super::{CallStacks, StackBounds};
use gputrail_capture::names::Names;
use gputrail_record::{CallStackId, FrameAddress, HostModule, HostModuleId, MAX_FRAMES};
use proptest::prelude::*;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::thread;

/// Held while stacks are taken, and for writing by the test that forks: meanwhile no stack is taken.
static FORKS: RwLock<()> = RwLock::new(());

#[inline(never)]
fn innermost(walker: &mut Walker, names: &Names) -> bool {
    let bounds = StackBounds::of_thread();
    let (address, registers) = here();
    let stack = ReadableStack::Within(registers.sp(), bounds.high);
    black_box(walker.follow(address, registers, stack, names))
}

#[inline(never)]
fn descend(depth: usize, walker: &mut Walker, names: &Names) -> bool {
    if depth == 0 {
        return innermost(walker, names);
    }
    let is_complete = descend(depth - 1, walker, names);
    black_box(is_complete)
}

/// The number of frames in the code of `function`, of this program.
fn count_in(frames: &[FrameAddress], function: *const (), names: &Names) -> usize {
    let program = std::env::current_exe().unwrap();
    let modules: Vec<HostModule> = names.all();
    let is_program = |module: HostModuleId| {
        let found = modules.iter().find(|one| one.id == module);
        let path = found.and_then(|found| names.text(found.path));
        path.is_some_and(|path| path == program.to_string_lossy())
    };
    // The difference between addresses in memory and in the file.
    // SAFETY: asks the loader about the program.
    let bias = unsafe { libc::getauxval(libc::AT_PHDR) } - program_headers();
    let begin = function as u64 - bias;
    let frames = frames.iter().filter(|frame| is_program(frame.module()));
    frames
        .filter(|frame| (begin..begin + 400).contains(&frame.address()))
        .count()
}

/// Where the program headers lie in the program's file.
fn program_headers() -> u64 {
    // Behind the ELF header, in the first segment, as linkers write them.
    64
}

#[test]
fn a_stack_has_the_functions_of_its_thread_up_to_the_outermost() {
    let _no_fork = FORKS.read().unwrap_or_else(PoisonError::into_inner);
    let (mut walker, names) = (Walker::default(), Names::new());
    assert!(walker.update());
    assert!(thread::scope(|scope| {
        let deep = scope.spawn(|| descend(20, &mut walker, &names));
        deep.join().unwrap()
    }));
    let frames = walker.frames();
    assert_eq!(count_in(&frames[..1], innermost as *const (), &names), 1);
    assert_eq!(count_in(frames, descend as *const (), &names), 21);
}

#[test]
fn of_deep_stacks_the_innermost_frames_are_kept() {
    let _no_fork = FORKS.read().unwrap_or_else(PoisonError::into_inner);
    let (mut walker, names) = (Walker::default(), Names::new());
    assert!(walker.update());
    assert!(!descend(3 * MAX_FRAMES, &mut walker, &names));
    assert_eq!(walker.frames().len(), MAX_FRAMES);
}

#[test]
fn equal_stacks_are_one() {
    let _no_fork = FORKS.read().unwrap_or_else(PoisonError::into_inner);
    let (stacks, names) = (CallStacks::default(), Names::new());
    let bounds = StackBounds::of_thread();
    let ids: Vec<CallStackId> = (0..3).map(|_| stacks.take(&bounds, &names)).collect();
    assert!(ids[0].is_some());
    assert_eq!(ids, [ids[0]; 3]);
    assert_ne!(stacks.take(&bounds, &names), ids[0]);
}

#[test]
fn a_stack_is_taken_in_the_room_that_it_asks_for() {
    let _no_fork = FORKS.read().unwrap_or_else(PoisonError::into_inner);
    const PATTERN: u8 = 0xa5;
    let taken = thread::Builder::new().stack_size(1 << 20).spawn(|| {
        let (stacks, names) = (CallStacks::default(), Names::new());
        let bounds = StackBounds::of_thread();
        let sp = here().1.sp();
        let low = bounds.low + 8192;
        // Below the red zone and the frames of what is called here.
        for address in low..sp - 4096 {
            // SAFETY: the unused part of this thread's stack.
            unsafe { (address as *mut u8).write_volatile(PATTERN) };
        }
        assert!(black_box(stacks.take(&bounds, &names)).is_some());
        let mut used = low..sp;
        // SAFETY: as above.
        used.find(|address| unsafe { (*address as *const u8).read_volatile() } != PATTERN)
            .map(|lowest| sp - lowest)
    });
    let used = taken.unwrap().join().unwrap().expect("some of it was used");
    assert!(used < ROOM, "{used} bytes");
}

#[test]
fn without_room_no_stack_is_taken() {
    let (stacks, names) = (CallStacks::default(), Names::new());
    let high = StackBounds::of_thread().high;
    let low = here().1.sp() - ROOM / 2;
    assert_eq!(
        stacks.take(&StackBounds { low, high }, &names),
        CallStackId::NONE
    );
}

#[test]
fn on_a_stack_with_unknown_bounds_memory_is_read_through_the_system() {
    let _no_fork = FORKS.read().unwrap_or_else(PoisonError::into_inner);
    let (stacks, names) = (CallStacks::default(), Names::new());
    assert!(stacks.take(&StackBounds::default(), &names).is_some());
}

#[test]
fn a_child_that_is_forked_while_stacks_are_taken_can_use_the_loader() {
    let _alone = FORKS.write().unwrap_or_else(PoisonError::into_inner);
    let (stacks, names, done) = (CallStacks::default(), Names::new(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let bounds = StackBounds::of_thread();
            while !done.load(Ordering::Relaxed) {
                stacks.take(&bounds, &names);
            }
        });
        for _ in 0..200 {
            extern "C" fn each(_: *mut libc::dl_phdr_info, _: usize, _: *mut libc::c_void) -> i32 {
                0
            }
            // SAFETY: the child takes and leaves the loader's lock, and exits.
            let child = unsafe {
                let child = libc::fork();
                if child == 0 {
                    // If the lock were held for ever, the alarm would end the child.
                    libc::alarm(20);
                    libc::dl_iterate_phdr(Some(each), std::ptr::null_mut());
                    libc::_exit(7);
                }
                child
            };
            assert!(child > 0);
            let mut status = 0;
            // SAFETY: waits for the child.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(libc::WEXITSTATUS(status), 7, "{status:#x}");
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_function_that_returns_at_once_says_where_its_return_address_is() {
    let call = [0x90; 14]
        .into_iter()
        .chain([0xff, 0xd1])
        .collect::<Vec<u8>>();
    let trampoline = [0x48, 0x83, 0xc4, 0x08, 0xc3];
    let OutsideFrame::Returning(end) = frame_between(&call, &trampoline) else {
        panic!("no end");
    };
    let mut registers = framehop::x86_64::UnwindRegsX86_64::new(1, 1000, 7);
    let mut read = |address: u64| Ok(address * 10);
    assert_eq!(end.unwind(&mut registers, &mut read), Some(10_080));
    assert_eq!((registers.sp(), registers.bp()), (1016, 7));
    let popping = [0x41, 0x5c, 0x5d, 0xc3];
    let OutsideFrame::Returning(end) = frame_between(&call, &popping) else {
        panic!("no end");
    };
    assert_eq!(end.unwind(&mut registers, &mut read), Some(10_320));
    assert_eq!((registers.sp(), registers.bp()), (1040, 10_240));
    assert_eq!(frame_between(&call, &[0x90, 0xc3]), OutsideFrame::Ordinary);
    assert_eq!(
        frame_between(&[0x90; 16], &trampoline),
        OutsideFrame::NotCode
    );
}

proptest! {
    #[test]
    fn no_stack_makes_a_crash(words in proptest::collection::vec(any::<u64>(), 1..200), base: u64, code: u64, near: bool) {
        let _no_fork = FORKS.read().unwrap_or_else(PoisonError::into_inner);
        let (mut walker, names) = (Walker::default(), Names::new());
        prop_assert!(walker.update());
        let begin = words.as_ptr() as u64;
        let own = innermost as *const () as u64;
        // Words that lead back into the stack or into code, and others.
        let words: Vec<u64> = words
            .iter()
            .map(|word| match word % 4 {
                0 => begin + word / 4 % (8 * words.len() as u64),
                1 => own + word / 4 % 4096,
                2 if near => code.wrapping_add(word / 4 % 4096),
                _ => *word,
            })
            .collect();
        let sp = words.as_ptr() as u64;
        let end = sp + 8 * words.len() as u64;
        for base in [base, sp, sp + 1, end - 8, 0] {
            for stack in [ReadableStack::Within(sp, end), ReadableStack::Elsewhere(100)] {
                let registers = framehop::x86_64::UnwindRegsX86_64::new(own, sp, base);
                walker.follow(own + 1, registers, stack, &names);
                prop_assert!(walker.frames().len() <= MAX_FRAMES);
            }
        }
    }

    #[test]
    fn no_code_makes_a_panic(before: [u8; 16], behind: [u8; 16]) {
        let _ = frame_between(&before, &behind);
    }
}
