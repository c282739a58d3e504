//! The table: what can be said of it without a runtime.

use super::*;
use gputrail_abi::functions::ambiguous;

fn named(name: &CStr) -> &'static Function {
    FUNCTIONS.iter().find(|one| one.name == name).unwrap()
}

#[test]
fn each_function_of_hip_has_a_number_and_fits_into_the_arguments() {
    assert_eq!(ambiguous(FUNCTIONS), []);
    for function in FUNCTIONS {
        assert!(number_of(function.name).is_some(), "{:?}", function.name);
        for (place, parameter) in function.places() {
            assert!(place + parameter.of.bytes <= ARGUMENT_BYTES);
        }
    }
}

#[test]
fn arguments_lie_where_c_puts_them() {
    let places = |function: &CStr| -> Vec<usize> {
        named(function).places().map(|(place, _)| place).collect()
    };
    let launch = places(c"hipModuleLaunchKernel");
    assert_eq!(launch, [0, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56]);
    assert_eq!(places(c"hipMemcpyAsync"), [0, 8, 16, 24, 32]);
    assert_eq!(places(c"hipMemcpyPeerAsync"), [0, 8, 16, 24, 32, 40]);
}

#[test]
fn values_are_texts_for_people() {
    let kind = &named(c"hipMemcpy").parameters[3];
    assert_eq!(text(kind, 2), "hipMemcpyDeviceToHost");
    assert_eq!(text(kind, 9), "9");
    assert_eq!(text(&named(c"hipMemcpy").parameters[0], 0x10), "0x10");
    let device = &named(c"hipSetDevice").parameters[0];
    assert_eq!(text(device, 0xffff_ffff), "-1");
}
