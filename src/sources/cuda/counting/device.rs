//! What CUDA's devices count, as the counter collection service is told, and what it asks of them.

use super::host::{self, ChipMetrics, MetricHost, Unavailable, step};
use super::range::ProfiledRanges;
use super::{
    COUNTS_EVENTS, CountedBy, ProfiledAgent, RangeValues, STATE, acquire, ffi, flush_times,
    release, report,
};
use crate::cuda::cupti;
use crate::cuda::devices::{CudaDevice, WHERE_USED};
use crate::cuda::enabling::{self, IS_COUNTING};
use crate::cuda::events::ffi::EventApi;
use crate::cuda::events::{self, DeviceEvents};
use crate::cuda::ffi::{Cupti, SUCCESS, call};
use crate::cuda::inside::InsideCupti;
use crate::cuda::objects::OBJECTS;
use crate::cuda::session::current_session;
use core::ffi::CStr;
use gputrail_collect::agents::{ConfigureError, Provider};
use gputrail_collect::counting::ranges::RangeCounter;
use gputrail_collect::counting::values::ValueRecords;
use gputrail_collect::counting::{Countable, CountingDelivery, CountingRequest};
use gputrail_collect::process;
use gputrail_counters::{Architecture, CounterLibrary, LibraryCounter, Usage};
use gputrail_interface::counting::CountingMode;
use gputrail_record::AgentId;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// Why a device has no range profiler.
const TOO_OLD: &str = "its architecture is older than compute capability 7.0 (7.5 with CUDA 13), which the range profiler takes";
/// The most passes of a kernel.
const MAX_PASSES: usize = 256;

/// A device, as the counter collection service knows it.
struct CountedDevice {
    agent: AgentId,
    name: String,
    number: u32,
    capability: u32,
    /// Its counters, once they have been asked for.
    possible: OnceLock<(Countable, CountedBy)>,
}

/// Offers a device to the counter collection service, and counts on it if the recording asks for that.
pub(in crate::cuda) fn offer(agent: AgentId, device: &CudaDevice) {
    let Some(board) = process::board() else {
        return;
    };
    let number = OBJECTS.lock().device(agent);
    let offered = Arc::new(CountedDevice {
        agent,
        name: device.name.clone(),
        number,
        capability: device.capability,
        possible: OnceLock::new(),
    });
    board.counting().offer(agent, &device.name, offered);
    if let Some(recorder) = process::recorder()
        && let Err(error) = recorder.count(agent, &device.name)
    {
        report(&error.to_string());
    }
}

/// The ranges of a device.
struct RangesOf {
    agent: AgentId,
}

impl RangeCounter for RangesOf {
    fn begin(&self, name: &str) {
        if let Some(counted) = STATE.lock().agents.get_mut(&self.agent) {
            let name = name.replace('\0', "");
            counted.range = Some(CString::new(name).unwrap_or_default());
            counted.ended.clear();
        }
    }

    fn end(&self) -> Vec<RangeValues> {
        let Some(session) = current_session() else {
            return Vec::new();
        };
        let _inside = InsideCupti::begin();
        // Launches in progress belong to the range.
        acquire();
        let mut state = STATE.lock();
        for place in 0..state.contexts.len() {
            if state.contexts[place].agent == self.agent {
                state.read_range(session, place);
            }
        }
        let counted = state.agents.get_mut(&self.agent);
        let ended = counted.map(|counted| {
            counted.range = None;
            std::mem::take(&mut counted.ended)
        });
        drop(state);
        release();
        ended.unwrap_or_default()
    }
}

/// Whether the library has the range profiler.
fn has_functions(cupti: &Cupti) -> bool {
    cupti.cuptiProfilerHostInitialize.is_some()
        && cupti.cuptiProfilerHostGetNumOfPasses.is_some()
        && cupti.cuptiProfilerHostEvaluateToGpuValues.is_some()
        && cupti.cuptiRangeProfilerEnable.is_some()
        && cupti.cuptiRangeProfilerDecodeData.is_some()
}

impl CountedDevice {
    /// The name of its chip, if the chip can be counted; else a sentence that says why not.
    fn chip(&self) -> Result<CString, String> {
        let session = current_session().ok_or("CUPTI is not in use in this process")?;
        let cupti = &session.cupti;
        if !has_functions(cupti) {
            return Err(format!(
                "libcupti (API version {}) lacks the range profiler (cuptiRangeProfiler...), which CUDA 12.6 and later have; \
                 name a later one with GPUTRAIL_CUPTI. {WHERE_USED}",
                cupti.version()
            ));
        }
        let _inside = InsideCupti::begin();
        let failed = |failed: host::FailedStep| failed.to_string();
        let mut params = ffi::Initialize::new();
        // SAFETY: no parameters.
        unsafe { step!(cupti, cuptiProfilerInitialize, params) }.map_err(failed)?;
        let mut params = ffi::DeviceSupported::new();
        params.device = self.number as i32;
        // SAFETY: the number of a device, and numbers that CUPTI fills in.
        unsafe { step!(cupti, cuptiProfilerDeviceSupported, params) }.map_err(failed)?;
        if params.supported != ffi::SUPPORTED {
            let obstacles = [
                (params.architecture, TOO_OLD),
                (params.sli, "SLI is enabled"),
                (params.vgpu, "profiling is not enabled for this vGPU"),
                (params.confidential, "confidential computing is enabled"),
                (params.mining, "it is a mining processor"),
                (params.wsl, "this WSL does not support it"),
            ];
            let found = obstacles.iter().find(|(level, _)| *level != ffi::SUPPORTED);
            let why = found.map_or("CUPTI does not say why", |(_, why)| why);
            let hint = match params.architecture {
                ffi::SUPPORTED => String::new(),
                _ => format!(". {WHERE_USED}"),
            };
            return Err(format!("CUPTI cannot profile the device: {why}{hint}"));
        }
        let mut params = ffi::ChipName::new();
        params.device = self.number as usize;
        // SAFETY: the number of a device; CUPTI fills in the address of a text of its own.
        unsafe { step!(cupti, cuptiDeviceGetChipName, params) }.map_err(failed)?;
        if params.name.is_null() {
            return Err("CUPTI does not know the chip".to_owned());
        }
        // SAFETY: CUPTI's text.
        Ok(unsafe { CStr::from_ptr(params.name) }.to_owned())
    }

    /// Its events and metrics, if the Event and Metric APIs count on it; else a sentence that says why not.
    fn events(&self) -> Result<DeviceEvents, String> {
        if self.capability >= events::TOO_NEW {
            return Err("the Event and Metric APIs do not support it".to_owned());
        }
        let _inside = InsideCupti::begin();
        let library = cupti::open().map_err(|error| error.to_string())?.library;
        let read = DeviceEvents::read(EventApi::of(&library), self.number as i32, &self.name);
        let read = read.map_err(|refused| host::FailedStep::from(refused).to_string())?;
        if read.definitions().is_empty() {
            Err("the Event and Metric APIs tell no event of it".to_owned())
        } else {
            Ok(read)
        }
    }

    fn possible(&self) -> &(Countable, CountedBy) {
        self.possible.get_or_init(|| {
            let chip = self.chip();
            let events = match &chip {
                Ok(_) => None,
                Err(_) => Some(self.events()),
            };
            let (architecture, by) = match chip.map_err(|why| (why, events)) {
                Ok(chip) => {
                    let names = current_session().and_then(|session| {
                        MetricHost::new(&session.cupti, &chip).ok()?.names().ok()
                    });
                    let plain = |(name, _): (String, _)| LibraryCounter {
                        name,
                        description: String::new(),
                        usage: Usage::Items,
                        block: String::new(),
                    };
                    let counters = names.unwrap_or_default().into_iter().map(plain).collect();
                    let metrics = ChipMetrics::new(self.name.clone(), chip.clone());
                    let library: Arc<dyn CounterLibrary> = Arc::new(metrics);
                    (
                        Architecture::of_library(counters, library),
                        CountedBy::Ranges(chip),
                    )
                }
                Err((_, Some(Ok(events)))) => {
                    let events = Arc::new(events);
                    (
                        Architecture::of_library(events.definitions(), events.clone()),
                        CountedBy::Events(events),
                    )
                }
                Err((why, events)) => {
                    let device = self.name.clone();
                    let reason = match events {
                        Some(Err(also)) if self.capability < events::TOO_NEW => {
                            format!("{why}; and not by events: {also}")
                        }
                        _ => why,
                    };
                    let library = Arc::new(Unavailable { device, reason });
                    (
                        Architecture::of_library(Vec::new(), library),
                        CountedBy::Nothing,
                    )
                }
            };
            let countable = Countable {
                architecture: Arc::new(architecture),
                dispatches: true,
                shortest_period: None,
                passes: MAX_PASSES,
                // Nothing runs a range again.
                range_passes: match by {
                    CountedBy::Events(_) => 0,
                    _ => 1,
                },
                per_pass: None,
            };
            (countable, by)
        })
    }
}

impl Provider<CountingRequest> for CountedDevice {
    fn configurations(&self) -> Vec<Countable> {
        vec![self.possible().0.clone()]
    }

    fn configure(&self, request: &CountingRequest) -> Result<(), ConfigureError> {
        let text = |text: &str| ConfigureError::System(text.to_owned());
        let is_range = request.mode == CountingMode::Range;
        if request.choice.is_some() && !is_range {
            return Err(text(
                "counters of CUDA's kernels are the same for all, and cannot be chosen for each",
            ));
        }
        let Some(names) = process::names() else {
            return Err(text("the recording has ended"));
        };
        let set = &request.set;
        let name = |index| CString::new(set.architecture().counter(index).name.as_str());
        let wanted = set
            .wanted()
            .iter()
            .map(|index| name(*index).unwrap_or_default());
        let counted = ProfiledAgent {
            ranges: if is_range {
                ProfiledRanges::Pushed
            } else {
                ProfiledRanges::Kernels
            },
            range: None,
            ended: Vec::new(),
            names: wanted.collect(),
            records: Arc::new(ValueRecords::new(
                set.clone(),
                self.agent,
                HashMap::new(),
                names,
            )),
            by: self.possible().1.clone(),
            started: None,
        };
        let is_by_events = matches!(counted.by, CountedBy::Events(_));
        COUNTS_EVENTS.fetch_or(is_by_events, Ordering::Relaxed);
        STATE.lock().agents.insert(self.agent, counted);
        if let Some(board) = process::board().filter(|_| is_range) {
            let ranges = RangesOf { agent: self.agent };
            board
                .ranges()
                .count_by(self.agent, Some(Arc::new(ranges)), names);
        }
        Ok(())
    }

    fn release(&self) {
        STATE.lock().agents.remove(&self.agent);
        if let Some(board) = process::board() {
            board.ranges().count_by(self.agent, None, board.names());
        }
    }

    fn start(&self, to: CountingDelivery) {
        if let Some(counted) = STATE.lock().agents.get_mut(&self.agent) {
            counted.started = Some(to);
            IS_COUNTING.store(true, Ordering::Relaxed);
        }
        enabling::enable();
    }

    fn stop(&self) {
        let Some(session) = current_session() else {
            return;
        };
        let _inside = InsideCupti::begin();
        acquire();
        flush_times();
        let mut state = STATE.lock();
        state.disable(session, |context| context.agent == self.agent);
        state.write_read(true);
        if let Some(counted) = state.agents.get_mut(&self.agent) {
            counted.started = None;
            counted.range = None;
            counted.ended.clear();
        }
        let any = state.agents.values().any(|one| one.started.is_some());
        IS_COUNTING.store(any, Ordering::Relaxed);
        drop(state);
        release();
        enabling::enable();
    }

    fn flush(&self) {
        // Not in a call of CUPTI's, which may wait for a lock that the caller holds, nor while a kernel is launched.
        if InsideCupti::is_set() {
            return;
        }
        let _inside = InsideCupti::begin();
        if acquire() {
            flush_times();
            STATE.lock().write_read(false);
            release();
        }
    }
}
