//! The progress of a program until its death, in a file that outlives it. For OpenCL programs an independent layer
//! below ours writes it: `tests/programs/witness_layer.c`.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Command;

use gputrail_record::ThreadId;

use crate::command::TestDir;

/// The functions whose calls the witness counts.
pub const WITNESSED: [&str; 7] = [
    "clSetKernelArg",
    "clFlush",
    "clFinish",
    "clWaitForEvents",
    "clEnqueueNDRangeKernel",
    "clEnqueueReadImage",
    "clEnqueueWriteImage",
];

/// The file that a witness writes; `witness_layer.c` describes it.
pub struct Witness {
    file: File,
    pub path: PathBuf,
}

impl Witness {
    const BYTES: usize = 4096;
    /// The offset of the number of calls of all threads.
    pub const CALLS: u64 = 8;

    pub fn new(dir: &TestDir) -> Witness {
        let path = dir.join("witness");
        let file = File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(&path)
            .expect("a file for the witness");
        file.set_len(Self::BYTES as u64).expect("room for it");
        Witness { file, path }
    }

    fn word<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut word = [0; N];
        self.file
            .read_exact_at(&mut word, at)
            .expect("the witness's file is whole");
        word
    }

    /// The process that it observes, once there is one.
    pub fn process(&self) -> Option<i32> {
        Some(i32::from_ne_bytes(self.word(0))).filter(|process| *process != 0)
    }

    /// The number of calls of all threads.
    pub fn calls(&self) -> u64 {
        u64::from_ne_bytes(self.word(Self::CALLS))
    }

    /// The number of calls by thread.
    pub fn threads(&self) -> BTreeMap<ThreadId, u64> {
        (1..Self::BYTES as u64 / 16)
            .map(|place| place * 16)
            .map(|at| {
                let thread = ThreadId(u32::from_ne_bytes(self.word(at)));
                (thread, u64::from_ne_bytes(self.word(at + 8)))
            })
            .filter(|(thread, _)| thread.is_some())
            .collect()
    }

    /// Sets the environment so that the layer observes the program that `command` runs.
    pub fn watch<'a>(&self, dir: &TestDir, command: &'a mut Command) -> &'a mut Command {
        let layer = dir.join("witness_layer");
        if !layer.exists() {
            dir.library("witness_layer");
        }
        command
            .env("OPENCL_LAYERS", layer)
            .env("WITNESS", &self.path)
    }
}
