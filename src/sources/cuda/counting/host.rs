//! Metrics of a chip by CUPTI's profiler host interface, which needs no device: names, units, passes, the configuration of
//! the hardware, and values.

use super::ffi::{self as profiler, ProfilerText};
use crate::cuda::events::FailedFunction;
use crate::cuda::ffi::{Cupti, CuptiStatus, SUCCESS, call};
use crate::cuda::library;
use crate::cuda::metrics::{LIBRARY, MetricKind};
use crate::cuda::notes::why;
use crate::cuda::session::current_session;
use core::ffi::{CStr, c_void};
use gputrail_buffer::platform::sync::QuietMutex;
use gputrail_counters::{CounterLibrary, LibraryCounter, LibraryError, Usage, nearest};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt;
use std::sync::Once;

/// A function that failed, and its status.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::cuda) struct FailedStep {
    pub step: &'static str,
    pub status: CuptiStatus,
}

impl From<FailedFunction> for FailedStep {
    fn from(refused: FailedFunction) -> FailedStep {
        let FailedFunction { step, status } = refused;
        FailedStep { step, status }
    }
}

impl fmt::Display for FailedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, why(self.status))
    }
}

/// Calls a function of CUPTI with its parameters. The structure states its size (`new`), and null or 0 stands for what is
/// not given; the caller's `unsafe` block says where the pointers in it lead.
macro_rules! step {
    ($cupti:expr, $name:ident, $params:expr) => {
        match call!($cupti, $name(&raw mut $params)) {
            Some(SUCCESS) => Ok(()),
            status => Err($crate::cuda::counting::host::FailedStep {
                step: stringify!($name),
                status: status.unwrap_or(crate::cuda::ffi::NOT_IMPLEMENTED),
            }),
        }
    };
}
pub(super) use step;

/// CUPTI's object for the metrics of a chip. Metrics that are added stay.
pub(in crate::cuda) struct MetricHost<'c> {
    cupti: &'c Cupti,
    object: *mut c_void,
}

/// The names of a chip's metrics without their forms, and their kinds.
pub(in crate::cuda) type MetricNames = Vec<(String, MetricKind)>;

/// Opens the library that CUPTI's profiler host interface asks, where it lies beside libcupti. CUPTI looks for it where
/// the loader does, and finds one that is in the process.
fn open_metric_library(cupti: &Cupti) {
    static OPENED: Once = Once::new();
    OPENED.call_once(|| {
        let function = cupti.cuptiProfilerHostInitialize;
        let path = function.and_then(|function| library::beside(function as *const c_void));
        let path = path.map(|folder| folder.join(LIBRARY));
        if let Some(Ok(opened)) = path.map(|path| library::load(path.as_os_str())) {
            // It stays in the process, as libcupti does.
            let _ = opened.into_raw();
        }
    });
}

impl<'c> MetricHost<'c> {
    pub fn new(cupti: &'c Cupti, chip: &CStr) -> Result<MetricHost<'c>, FailedStep> {
        open_metric_library(cupti);
        let mut params = profiler::HostInitialize::new();
        params.chip = chip.as_ptr();
        // SAFETY: `chip` is a text that CUPTI reads in the call.
        unsafe { step!(cupti, cuptiProfilerHostInitialize, params) }?;
        let object = params.host;
        Ok(MetricHost { cupti, object })
    }

    /// The names of all metrics, sorted. Some are of one configuration of the hardware, which stands before the name
    /// (`CTC.TriageCompute.ctc__rx_bytes`); of those that are listed without it, too, only that name is returned.
    pub fn names(&self) -> Result<MetricNames, FailedStep> {
        let mut all = BTreeMap::new();
        for kind in MetricKind::ALL {
            let mut params = profiler::BaseMetrics::new();
            (params.host, params.kind) = (self.object, kind as u32);
            // SAFETY: CUPTI's object, which lives until `self` is dropped.
            unsafe { step!(self.cupti, cuptiProfilerHostGetBaseMetrics, params) }?;
            // SAFETY: CUPTI's list, which lives as long as the object.
            let names = unsafe { texts(params.names, params.count) };
            all.extend(names.into_iter().map(|name| (name, kind)));
        }
        let is_twice = |name: &str| bare(name) != name && all.contains_key(bare(name));
        Ok(all
            .iter()
            .filter(|(name, _)| !is_twice(name))
            .map(|(name, kind)| (name.clone(), *kind))
            .collect())
    }

    /// The forms of a metric: `sum`, `sum.per_second`. CUPTI tells them for a metric in one of its forms.
    pub fn forms(&self, name: &str, kind: MetricKind) -> Result<Vec<String>, FailedStep> {
        let name = format!("{name}{}", kind.default_form());
        let name = CString::new(name).unwrap_or_default();
        let mut params = profiler::SubMetrics::new();
        (params.host, params.kind) = (self.object, kind as u32);
        params.metric = name.as_ptr();
        // SAFETY: the object of `self`, and a text that CUPTI reads in the call.
        unsafe { step!(self.cupti, cuptiProfilerHostGetSubMetrics, params) }?;
        // SAFETY: as in `names`.
        let forms = unsafe { texts(params.names, params.count) };
        let plain = |form: String| form.trim_start_matches('.').to_owned();
        Ok(forms.into_iter().map(plain).collect())
    }

    /// The description, the hardware unit and the unit of a metric in one of its forms.
    pub fn properties(&self, name: &str) -> Result<[String; 3], FailedStep> {
        let name = CString::new(name).unwrap_or_default();
        let mut params = profiler::MetricProperties::new();
        (params.host, params.metric) = (self.object, name.as_ptr());
        // SAFETY: the object of `self`, and a text that CUPTI reads in the call.
        unsafe { step!(self.cupti, cuptiProfilerHostGetMetricProperties, params) }?;
        let all = [params.description, params.hardware, params.unit];
        // SAFETY: null, or CUPTI's texts.
        Ok(all.map(|one| unsafe { text(one) }))
    }

    /// Adds metrics, and returns the configuration of the hardware for all that were added.
    pub fn configure(&self, names: &[ProfilerText]) -> Result<Vec<u8>, FailedStep> {
        let mut params = profiler::AddMetrics::new();
        params.host = self.object;
        (params.names, params.count) = (names.as_ptr(), names.len());
        // SAFETY: the object of `self`, and `count` names, which CUPTI reads in the call: the callers keep the texts until
        // it returns.
        unsafe { step!(self.cupti, cuptiProfilerHostConfigAddMetrics, params) }?;
        let mut size = profiler::ConfigSize::new();
        size.host = self.object;
        // SAFETY: the object of `self`.
        unsafe { step!(self.cupti, cuptiProfilerHostGetConfigImageSize, size) }?;
        let mut image = vec![0; size.bytes];
        let mut params = profiler::Config::new();
        params.host = self.object;
        (params.bytes, params.image) = (image.len(), image.as_mut_ptr());
        // SAFETY: the object of `self`, and an image of the size that CUPTI has just told.
        unsafe { step!(self.cupti, cuptiProfilerHostGetConfigImage, params) }?;
        Ok(image)
    }

    /// The passes of a configuration.
    pub fn passes(&self, image: &[u8]) -> Result<usize, FailedStep> {
        let mut params = profiler::Passes::new();
        (params.bytes, params.image) = (image.len(), image.as_ptr());
        // SAFETY: `image` has as many bytes as stated, and CUPTI reads it in the call.
        unsafe { step!(self.cupti, cuptiProfilerHostGetNumOfPasses, params) }?;
        Ok(params.passes)
    }

    /// The values of metrics in a range of what was counted.
    pub fn evaluate(
        &self,
        data: &[u8],
        range: usize,
        names: &[ProfilerText],
    ) -> Result<Vec<f64>, FailedStep> {
        let mut values = vec![0.0; names.len()];
        let mut params = profiler::Evaluate::new();
        (params.host, params.range) = (self.object, range);
        (params.image, params.image_size) = (data.as_ptr(), data.len());
        (params.names, params.count) = (names.as_ptr(), names.len());
        params.values = values.as_mut_ptr();
        // SAFETY: the object of `self`; `data` and `names` are as long as stated, which CUPTI reads in the call; `values`
        // has a place for each name.
        unsafe { step!(self.cupti, cuptiProfilerHostEvaluateToGpuValues, params) }?;
        Ok(values)
    }
}

impl Drop for MetricHost<'_> {
    fn drop(&mut self) {
        let mut params = profiler::HostDeinitialize::new();
        params.host = self.object;
        // SAFETY: the object of `self`, which nothing uses any more: texts of its are copied.
        let _ = unsafe { step!(self.cupti, cuptiProfilerHostDeinitialize, params) };
    }
}

/// # Safety
///
/// `text` is null or a text with a terminating zero.
unsafe fn text(text: ProfilerText) -> String {
    match text.is_null() {
        true => String::new(),
        // SAFETY: `text` is not null, so that it ends with a 0; it is copied.
        false => unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned(),
    }
}

/// # Safety
///
/// `first` is null or leads to `count` texts.
unsafe fn texts(first: *const ProfilerText, count: usize) -> Vec<String> {
    if first.is_null() {
        return Vec::new();
    }
    // SAFETY: `first` is not null, so that it leads to `count` texts, which stay during the call.
    let all = unsafe { core::slice::from_raw_parts(first, count) };
    // SAFETY: each text is null or ends with a 0.
    all.iter().map(|one| unsafe { text(*one) }).collect()
}

/// The metrics of a chip, for the counter collection service.
pub(super) struct ChipMetrics {
    pub device: String,
    pub chip: CString,
    /// The names, once they have been asked for.
    names: QuietMutex<Option<MetricNames>>,
}

impl ChipMetrics {
    pub fn new(device: String, chip: CString) -> ChipMetrics {
        let names = QuietMutex::default();
        ChipMetrics {
            device,
            chip,
            names,
        }
    }

    /// Calls `ask` with an object for the chip and the names of its metrics.
    fn with<R>(
        &self,
        ask: impl FnOnce(&MetricHost<'_>, &MetricNames) -> Result<R, FailedStep>,
    ) -> Result<R, String> {
        let session = current_session().ok_or("CUPTI is not in use in this process")?;
        let asked = MetricHost::new(&session.cupti, &self.chip).and_then(|host| {
            let mut known = self.names.lock();
            let names = match known.take() {
                Some(names) => names,
                None => host.names()?,
            };
            let answer = ask(&host, &names);
            *known = Some(names);
            answer
        });
        asked.map_err(|failed| failed.to_string())
    }
}

impl fmt::Debug for ChipMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChipMetrics").field(&self.chip).finish()
    }
}

/// The name of a metric without the configuration of the hardware before it.
pub(in crate::cuda) fn bare(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The metric that is called `name`, its kind, and the form behind it. `name` may have a configuration of the hardware before
/// it, or lack it.
fn split<'n>(names: &'n MetricNames, name: &'n str) -> Option<(&'n str, MetricKind, &'n str)> {
    let (base, form) = base_and_form(name);
    let is_base = |known: &&(String, MetricKind)| bare(&known.0).eq_ignore_ascii_case(base);
    let (known, kind) = names.iter().find(is_base)?;
    Some((known, *kind, form))
}

/// The name of a metric without configuration and form, and its form. Metrics have two underscores in their name;
/// configurations and forms have none.
fn base_and_form(name: &str) -> (&str, &str) {
    let start = name.find("__").and_then(|at| name[..at].rfind('.'));
    let plain = start.map_or(name, |at| &name[at + 1..]);
    plain.split_once('.').unwrap_or((plain, ""))
}

/// Parts of the names of forms whose values are so much for each of something else, or a limit of that.
const RATES: [&str; 4] = [".ratio", ".per_", ".max_rate", ".peak_sustained"];

/// The unit of a metric, by the library's words.
fn usage(name: &str, unit: &str) -> Usage {
    match unit {
        _ if name.contains(".pct") => Usage::Percentage,
        // They do not add up.
        _ if RATES.iter().any(|rate| name.contains(rate)) => Usage::Ratio,
        "byte" | "bytes" => Usage::Bytes,
        "nanosecond" | "nanoseconds" => Usage::Nanoseconds,
        "cycle" | "cycles" => Usage::Cycles,
        _ => Usage::Items,
    }
}

/// The metric that is called `name`, in a form of its own or the first one of its kind; else the nearest names.
pub(super) fn define(
    host: &MetricHost<'_>,
    names: &MetricNames,
    name: &str,
) -> Result<Result<LibraryCounter, Vec<String>>, FailedStep> {
    let Some((base, kind, form)) = split(names, name) else {
        let all = names.iter().map(|(name, _)| name.as_str());
        return Ok(Err(nearest(base_and_form(name).0, all)));
    };
    let forms = host.forms(base, kind)?;
    let form = match form {
        "" => kind.default_form().trim_start_matches('.').to_owned(),
        form => form.to_ascii_lowercase(),
    };
    if !forms.contains(&form) {
        let forms = forms.iter().map(String::as_str);
        let near = match nearest(&form, forms.clone()) {
            near if near.is_empty() => forms.take(3).map(str::to_owned).collect(),
            near => near,
        };
        let whole = |form: &String| format!("{base}.{form}");
        return Ok(Err(near.iter().map(whole).collect()));
    }
    let full = format!("{base}.{form}");
    let [description, block, unit] = host.properties(&full)?;
    let usage = usage(&full, &unit);
    Ok(Ok(LibraryCounter {
        name: full,
        description,
        usage,
        block,
    }))
}

/// The passes in which metrics, named with their forms, are counted together.
pub(super) fn passes(host: &MetricHost<'_>, names: &[&str]) -> Result<usize, FailedStep> {
    let names: Vec<CString> = names
        .iter()
        .map(|name| CString::new(*name).unwrap_or_default())
        .collect();
    let texts: Vec<ProfilerText> = names.iter().map(|name| name.as_ptr()).collect();
    host.passes(&host.configure(&texts)?)
}

impl CounterLibrary for ChipMetrics {
    fn device(&self) -> &str {
        &self.device
    }

    fn define(&self, name: &str) -> Result<LibraryCounter, LibraryError> {
        self.with(|host, names| define(host, names, name))
            .map_err(LibraryError::Failed)?
            .map_err(LibraryError::Unknown)
    }

    fn passes(&self, names: &[&str]) -> Result<usize, String> {
        let ask = |names: &[&str]| self.with(|host, _| passes(host, names));
        ask(names).map_err(|why| {
            let alone = names.iter().find_map(|name| {
                let refused = ask(&[name]).err()?;
                Some(format!("{name} is not counted by CUPTI: {refused}"))
            });
            alone.unwrap_or_else(|| format!("not together with the others: {why}"))
        })
    }
}

/// A device that cannot be counted, for this reason.
#[derive(Debug)]
pub(super) struct Unavailable {
    pub device: String,
    pub reason: String,
}

impl CounterLibrary for Unavailable {
    fn device(&self) -> &str {
        &self.device
    }

    fn define(&self, _: &str) -> Result<LibraryCounter, LibraryError> {
        Err(LibraryError::Failed(self.reason.clone()))
    }

    fn passes(&self, _: &[&str]) -> Result<usize, String> {
        Err(self.reason.clone())
    }
}
