//! Links the library so that it exports rocprofiler-sdk alone, and the entry point of a tool: gputrail's own functions are
//! those of `libgputrail.so.0`, and those that this library contains would be found in their place.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,librocprofiler-sdk.so.1");
    }
}
