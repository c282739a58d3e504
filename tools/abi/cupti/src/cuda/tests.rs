//! The tables: what can be said of them without a runtime.

use super::*;
use functions::ALL;

#[test]
fn each_function_has_an_id_and_fits_into_the_parameters() {
    for function in ALL {
        let ids = [&DRIVER.ids, &RUNTIME.ids].map(|ids| ids.get(function.name));
        assert!(ids.iter().flatten().count() == 1, "{}", function.name);
        let mut end = 0_usize;
        for parameter in function.parameters {
            end = end.next_multiple_of(parameter.bytes) + parameter.bytes;
        }
        assert!(end <= 8 * WORDS, "{}: {end}", function.name);
    }
}

#[test]
fn each_row_has_a_value_for_each_parameter() {
    for rows in [table::RUNTIME, table::DRIVER] {
        for row in rows {
            let parameters = row.shown.parameters;
            assert_eq!(row.values.len(), parameters.len(), "{}", row.function);
            let blocking = row.blocking.map(|(_, function)| function.parameters);
            for (one, same) in blocking.unwrap_or_default().iter().zip(parameters) {
                assert_eq!(one.bytes, same.bytes, "{}", row.function);
            }
            let twice = rows.iter().filter(|one| one.function == row.function);
            assert_eq!(twice.count(), 1, "{}", row.function);
        }
    }
}

#[test]
fn ids_have_the_names_of_the_headers() {
    assert_eq!(
        name(CallbackDomain::DRIVER_API, 307),
        Some("cuLaunchKernel")
    );
    let launch = name(CallbackDomain::RUNTIME_API, 211);
    assert_eq!(launch, Some("cudaLaunchKernel_v7000"));
    assert_eq!(name(CallbackDomain::RESOURCE, 1), None);
    assert_eq!(size(CallbackDomain::DRIVER_API, Layout::Cuda13), 877);
}
