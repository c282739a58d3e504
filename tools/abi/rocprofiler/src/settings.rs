//! The global properties: what the environment says, and then the tool of `ROCP_TOOL_LIB`.

use crate::types::Settings;
use gputrail_abi::lock;
use std::sync::Mutex;
use std::time::Duration;

/// Whether dispatches are intercepted: 0 if they are not.
const INTERCEPT_VARIABLE: &str = "ROCP_HSA_INTERCEPT";

static SETTINGS: Mutex<Option<Settings>> = Mutex::new(None);

/// The properties.
pub fn get() -> Settings {
    *lock(&SETTINGS).get_or_insert_with(|| {
        let is_off = std::env::var_os(INTERCEPT_VARIABLE).is_some_and(|value| value == "0");
        Settings {
            intercept_mode: u32::from(!is_off),
            timeout: u64::MAX,
            timestamp_on: 1,
            ..Settings::default()
        }
    })
}

/// Sets what a tool has changed.
pub fn set(settings: Settings) {
    *lock(&SETTINGS) = Some(settings);
}

/// How long is waited for data; `None` for as long as it takes.
pub fn timeout() -> Option<Duration> {
    match get().timeout {
        u64::MAX => None,
        nanos => Some(Duration::from_nanos(nanos)),
    }
}
