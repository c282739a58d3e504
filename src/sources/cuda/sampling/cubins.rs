//! Tests of a cubin that NVIDIA's assembler makes, read by NVIDIA's libraries: its CRC and the lines of its
//! instructions. There is no GPU: no sample is taken here.

use super::code::{crc, line};
use crate::cuda::ffi::Cupti;
use crate::cuda::wheels_tests::LIBRARIES;
use gputrail_harness::machine::{Need, tools};
use gputrail_harness::needs;
use gputrail_harness::program::run;
use libloading::os::unix::Library;
use std::collections::BTreeSet;
use std::process::Command;

/// A kernel whose instructions come from lines 3 to 5 of `/src/scale.cu`.
const PTX: &str = r#".version 6.0
.target sm_70
.address_size 64
.file 1 "/src/scale.cu"
.visible .entry scale(.param .u64 x)
{
    .reg .f32 %f<3>;
    .reg .b64 %d<2>;
    .loc 1 3 1
    ld.param.u64 %d1, [x];
    cvta.to.global.u64 %d1, %d1;
    .loc 1 4 5
    ld.global.f32 %f1, [%d1];
    mul.f32 %f2, %f1, 0f40000000;
    st.global.f32 [%d1], %f2;
    .loc 1 5 1
    ret;
}
"#;

#[test]
fn libraries_of_four_versions_find_the_crc_and_the_lines_of_a_cubin() {
    needs!(libraries_of_four_versions_find_the_crc_and_the_lines_of_a_cubin: Need::Cupti, Need::Ptxas);
    let folder = tempfile::tempdir().unwrap();
    let assemble = |text: &str| {
        let [source, output] = ["scale.ptx", "scale.cubin"].map(|name| folder.path().join(name));
        std::fs::write(&source, text).unwrap();
        let mut assembler = Command::new(tools().join("ptxas"));
        assembler.args(["-lineinfo", "-arch=sm_70", "-o"]);
        run(assembler.arg(&output).arg(&source)).well();
        std::fs::read(&output).unwrap()
    };
    let cubin = assemble(PTX);
    // The CRC is of some bytes of the cubin only, a fixed number at equal distances.
    let other = assemble(&PTX.replace("scale(", "a_kernel_with_a_longer_name("));

    let mut crcs = BTreeSet::new();
    for (path, ..) in LIBRARIES {
        // SAFETY: libcupti, whose constructors need no driver.
        let library = unsafe { Library::new(tools().join("cupti").join(path)) }.unwrap();
        let cupti = Cupti::of(&library);
        let known = crc(&cupti, &cubin).unwrap();
        assert_ne!(crc(&cupti, &other), Some(known), "{path}");
        crcs.insert(known);

        let (from, cubin) = (&cupti, cubin.as_slice());
        let lines = |function| (0..16).filter_map(move |at| line(from, cubin, function, at * 16));
        let found: Vec<_> = lines(c"scale").collect();
        assert!(
            found.iter().all(|line| &*line.file == "/src/scale.cu"),
            "{path}: {found:?}"
        );
        let numbers: BTreeSet<u32> = found.iter().map(|line| line.number).collect();
        assert_eq!(numbers, BTreeSet::from([3, 4, 5]), "{path}");
        assert_eq!(
            lines(c"other").count(),
            0,
            "{path}: a function that the cubin lacks"
        );
        // Its threads and handlers go on.
        std::mem::forget(library);
    }
    assert_eq!(crcs.len(), 1, "all versions name the cubin alike");
}
