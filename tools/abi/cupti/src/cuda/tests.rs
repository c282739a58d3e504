//! The tables: what can be said of them without a runtime.

use super::*;
use gputrail_abi::functions::ambiguous;

#[test]
fn each_function_has_an_id_and_fits_into_the_parameters() {
    for (api, functions) in [(&DRIVER, functions::DRIVER), (&RUNTIME, functions::RUNTIME)] {
        assert_eq!(ambiguous(functions), []);
        for function in functions {
            let name = function.name.to_str().unwrap();
            assert!(api.names.values().any(|one| *one == name), "{name}");
            let end = function.places().last();
            let end = end.map_or(0, |(place, parameter)| place + parameter.of.bytes);
            assert!(end <= 8 * WORDS, "{name}: {end}");
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
