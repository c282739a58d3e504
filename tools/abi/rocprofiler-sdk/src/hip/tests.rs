//! The table: what can be said of it without a runtime.

use super::functions::{ALL, HipFunction};
use super::table::ROWS;
use super::*;

#[test]
fn each_function_of_hip_has_a_number_and_fits_into_the_arguments() {
    for function in ALL {
        assert!(Numbered::new(function).is_some(), "{:?}", function.name);
        for (place, parameter) in function.places() {
            assert!(place + parameter.of.bytes <= ARGUMENT_BYTES);
        }
    }
}

#[test]
fn each_row_has_a_value_for_each_parameter() {
    for row in ROWS {
        assert_eq!(
            row.values.len(),
            row.shown.parameters.len(),
            "{}",
            row.function
        );
        let blocking = row.blocking.map(|(_, function)| function);
        for (of, same) in blocking.iter().flat_map(|blocking| {
            let parameters = |of: &'static HipFunction| of.parameters.iter();
            parameters(blocking).zip(parameters(row.shown))
        }) {
            assert_eq!(of.name, same.name, "{}", row.function);
        }
        let twice = ROWS.iter().filter(|one| one.function == row.function);
        assert_eq!(twice.count(), 1, "{}", row.function);
    }
}

#[test]
fn arguments_lie_where_c_puts_them() {
    let places = |function: &HipFunction| -> Vec<usize> {
        function.places().map(|(place, _)| place).collect()
    };
    let launch = places(&functions::hipModuleLaunchKernel);
    assert_eq!(launch, [0, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56]);
    assert_eq!(places(&functions::hipMemcpyAsync), [0, 8, 16, 24, 32]);
    assert_eq!(
        places(&functions::hipMemcpyPeerAsync),
        [0, 8, 16, 24, 32, 40]
    );
}

#[test]
fn values_are_texts_for_people() {
    let kind = &functions::hipMemcpy.parameters[3];
    assert_eq!(text(kind, 2), "hipMemcpyDeviceToHost");
    assert_eq!(text(kind, 9), "9");
    assert_eq!(text(&functions::hipMemcpy.parameters[0], 0x10), "0x10");
    let device = &functions::hipSetDevice.parameters[0];
    assert_eq!(text(device, 0xffff_ffff), "-1");
}
