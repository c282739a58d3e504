//! Metrics of NVIDIA's chips: their names, descriptions, units, and the passes that they take, from libnvperf_host.
//!
//! The library comes with CUPTI and needs no GPU. It is found as libcupti is, and is never unloaded. Semantics are those of
//! NVIDIA's PerfWorks: a *counter* is an event of a hardware unit; a *ratio* is computed from counters; a *throughput* is the
//! largest of several utilisations. A counter or throughput is named with the way in which the instances of its unit are
//! combined, and what follows from that: `dram__bytes_read.sum.per_second`.

mod ffi;
#[cfg(test)]
mod tests;

use super::library;
use bytemuck::Zeroable;
use ffi::{NvpwObject, NvpwText, Parameters};
use gputrail_counters::the_nearest;
use libloading::os::unix::Library;
use std::ffi::{CStr, CString};
use std::fmt;
use std::mem::ManuallyDrop;

/// The name of the library's file.
pub(super) const LIBRARY: &str = "libnvperf_host.so";

/// The ways in which the instances of a unit are combined.
const ROLLUPS: [&str; 4] = ["avg", "max", "min", "sum"];

/// The names of the values that follow from a metric and the time, by the library's numbers.
const SUBMETRICS: [&str; 22] = [
    "",
    "peak_sustained",
    "peak_sustained_active",
    "peak_sustained_active.per_second",
    "peak_sustained_elapsed",
    "peak_sustained_elapsed.per_second",
    "peak_sustained_frame",
    "peak_sustained_frame.per_second",
    "peak_sustained_region",
    "peak_sustained_region.per_second",
    "per_cycle_active",
    "per_cycle_elapsed",
    "per_cycle_in_frame",
    "per_cycle_in_region",
    "per_second",
    "pct_of_peak_sustained_active",
    "pct_of_peak_sustained_elapsed",
    "pct_of_peak_sustained_frame",
    "pct_of_peak_sustained_region",
    "max_rate",
    "pct",
    "ratio",
];

/// Why metrics cannot be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    /// The library was not found.
    #[error(
        "{LIBRARY} was not found: it comes with CUPTI (pip install nvidia-cuda-cupti-cu12 or nvidia-cuda-cupti, or set \
         {variable} to the path of libcupti)",
        variable = library::CUPTI_VARIABLE
    )]
    NoLibrary,
    /// The library does not know the chip.
    #[error("{LIBRARY} knows no chip {chip:?}; it knows {}", .known.join(", "))]
    UnknownChip {
        /// The name that was given.
        chip: String,
        /// The names of all chips.
        known: Vec<String>,
    },
    /// The chip has no such metric.
    #[error("{chip} has no metric {name:?}{}", the_nearest(.nearest))]
    UnknownMetric {
        /// The chip.
        chip: String,
        /// The name that was given.
        name: String,
        /// Names like it.
        nearest: Vec<String>,
    },
    /// The metric has no such form.
    #[error("{metric} of {chip} has no form {form:?}: it has {}", .forms.join(", "))]
    UnknownForm {
        /// The chip.
        chip: String,
        /// The metric.
        metric: String,
        /// The form that was given.
        form: String,
        /// The forms that there are.
        forms: Vec<String>,
    },
    /// A function failed.
    #[error("{LIBRARY}: {function} failed with status {status}")]
    Failed {
        /// The function.
        function: &'static str,
        /// Its status, an `NVPA_Status`.
        status: i32,
    },
    /// A function is missing.
    #[error("{LIBRARY} has no function {0}: a version from 11.8 to 13 is expected")]
    Missing(&'static str),
}

/// The kind of a metric.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MetricKind {
    /// An event of a hardware unit.
    Counter = 0,
    /// Computed from counters.
    Ratio = 1,
    /// The largest of several utilisations.
    Throughput = 2,
}

impl MetricKind {
    pub(super) const ALL: [MetricKind; 3] = [
        MetricKind::Counter,
        MetricKind::Ratio,
        MetricKind::Throughput,
    ];

    /// The form of a metric that is named without one.
    pub(super) fn default_form(self) -> &'static str {
        match self {
            MetricKind::Counter => ".sum",
            MetricKind::Ratio => ".ratio",
            MetricKind::Throughput => ".avg.pct_of_peak_sustained_elapsed",
        }
    }
}

impl fmt::Display for MetricKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MetricKind::Counter => "counter",
            MetricKind::Ratio => "ratio",
            MetricKind::Throughput => "throughput",
        })
    }
}

/// A metric of a chip, without its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name, such as `dram__bytes_read`.
    pub name: String,
    /// Its kind.
    pub kind: MetricKind,
    /// Its number among those of its kind.
    index: usize,
}

/// The properties of a metric, as the library tells them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricProperties {
    /// A sentence.
    pub description: String,
    /// The hardware unit, such as `dram`; empty where there is none.
    pub hardware: String,
    /// The unit of its value in its first form, such as `bytes`; empty where it has none.
    pub unit: String,
    /// The counters and throughputs of which a throughput is the largest.
    pub parts: Vec<String>,
}

/// libnvperf_host.
pub struct MetricLibrary {
    // Its threads and handlers may go on.
    library: ManuallyDrop<Library>,
}

impl MetricLibrary {
    /// Finds the library and initialises it.
    ///
    /// # Errors
    ///
    /// [`MetricError::NoLibrary`], [`MetricError::Missing`] and [`MetricError::Failed`].
    pub fn open() -> Result<MetricLibrary, MetricError> {
        let library = library::open_beside_cupti(LIBRARY).ok_or(MetricError::NoLibrary)?;
        MetricLibrary::of(library)
    }

    pub(super) fn of(library: Library) -> Result<MetricLibrary, MetricError> {
        let opened = MetricLibrary {
            library: ManuallyDrop::new(library),
        };
        let mut parameters = ffi::InitializeHost::zeroed();
        // SAFETY: no parameters.
        unsafe { opened.call(&mut parameters) }?;
        Ok(opened)
    }

    /// Calls the function that takes `parameters`.
    ///
    /// # Safety
    ///
    /// Their pointers are null where the function allows it, or point to what it expects.
    unsafe fn call<P: Parameters>(&self, parameters: &mut P) -> Result<(), MetricError> {
        type Function<P> = unsafe extern "C" fn(*mut P) -> i32;
        // SAFETY: the library's function of this name takes this structure.
        let function = unsafe { self.library.get::<Function<P>>(P::FUNCTION.as_bytes()) };
        let function = function.map_err(|_| MetricError::Missing(P::FUNCTION))?;
        // The size is the first member of each.
        // SAFETY: each structure of parameters begins with a usize, its size. The function takes this structure, and may use
        // its pointers (`# Safety`).
        let status = unsafe {
            std::ptr::from_mut(parameters)
                .cast::<usize>()
                .write(P::SIZE);
            function(parameters)
        };
        match status {
            0 => Ok(()),
            status => Err(MetricError::Failed {
                function: P::FUNCTION,
                status,
            }),
        }
    }

    /// The names of the chips that the library knows.
    ///
    /// # Errors
    ///
    /// [`MetricError::Missing`] and [`MetricError::Failed`].
    pub fn chips(&self) -> Result<Vec<String>, MetricError> {
        let mut parameters = ffi::ChipNames::zeroed();
        // SAFETY: the function fills in an array of texts.
        let names = unsafe {
            self.call(&mut parameters)?;
            slice(parameters.names, parameters.count)
        };
        // SAFETY: texts of the library.
        let mut names: Vec<String> = names.iter().map(|name| unsafe { text(*name) }).collect();
        names.dedup();
        Ok(names)
    }

    /// The chip with this name; upper and lower case are alike.
    ///
    /// # Errors
    ///
    /// [`MetricError::UnknownChip`], [`MetricError::Missing`] and [`MetricError::Failed`].
    pub fn chip(&self, name: &str) -> Result<Chip<'_>, MetricError> {
        let known = self.chips()?;
        let Some(name) = known.iter().find(|known| known.eq_ignore_ascii_case(name)) else {
            return Err(MetricError::UnknownChip {
                chip: name.to_owned(),
                known,
            });
        };
        Chip::new(self, name)
    }
}

/// A chip, and the library's evaluator of its metrics.
pub struct Chip<'l> {
    library: &'l MetricLibrary,
    /// Its name, such as `GH100`.
    pub name: String,
    c_name: CString,
    evaluator: NvpwObject,
    // The evaluator lives in it.
    _scratch: Vec<u8>,
    metrics: Vec<Metric>,
}

impl<'l> Chip<'l> {
    fn new(library: &'l MetricLibrary, name: &str) -> Result<Chip<'l>, MetricError> {
        let c_name = CString::new(name).unwrap_or_default();
        let mut size = ffi::ScratchSize::zeroed();
        size.chip = c_name.as_ptr();
        // SAFETY: a text; the other pointers may be null.
        unsafe { library.call(&mut size) }?;
        let mut scratch = vec![0u8; size.bytes];
        let mut parameters = ffi::InitializeEvaluator::zeroed();
        parameters.scratch = scratch.as_mut_ptr();
        parameters.bytes = scratch.len();
        parameters.chip = c_name.as_ptr();
        // SAFETY: memory of the size that the library asked for, which lives as long as the evaluator, and a text.
        unsafe { library.call(&mut parameters) }?;
        let mut chip = Chip {
            library,
            name: name.to_owned(),
            c_name,
            evaluator: parameters.evaluator,
            _scratch: scratch,
            metrics: Vec::new(),
        };
        for kind in MetricKind::ALL {
            let names = chip.names(kind)?;
            let metric = |(index, name)| Metric { name, kind, index };
            chip.metrics
                .extend(names.into_iter().enumerate().map(metric));
        }
        Ok(chip)
    }

    /// All metrics, by kind.
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    fn names(&self, kind: MetricKind) -> Result<Vec<String>, MetricError> {
        let mut parameters = ffi::MetricNames::zeroed();
        parameters.evaluator = self.evaluator;
        parameters.kind = kind as u8;
        // SAFETY: the chip's evaluator. The function fills in texts in one block, and where each begins.
        unsafe {
            self.library.call(&mut parameters)?;
            let begins = slice(parameters.begins, parameters.count);
            let name = |begin: &usize| text(parameters.texts.add(*begin));
            Ok(begins.iter().map(name).collect())
        }
    }

    /// The metric with this name, which may have a form.
    ///
    /// # Errors
    ///
    /// [`MetricError::UnknownMetric`]
    pub fn find(&self, name: &str) -> Result<&Metric, MetricError> {
        // The longest name that `name` begins with: names of ratios may have dots.
        let is_base = |metric: &&Metric| {
            let length = metric.name.len();
            let begins = name
                .get(..length)
                .is_some_and(|base| base.eq_ignore_ascii_case(&metric.name));
            begins && (name.len() == length || name[length..].starts_with('.'))
        };
        let bases = self.metrics.iter().filter(is_base);
        let found = bases.max_by_key(|metric| metric.name.len());
        found.ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> MetricError {
        let names = self.metrics.iter().map(|metric| metric.name.as_str());
        MetricError::UnknownMetric {
            chip: self.name.clone(),
            name: name.to_owned(),
            nearest: gputrail_counters::nearest(name, names),
        }
    }

    /// The properties of a metric, as the library tells them.
    ///
    /// # Errors
    ///
    /// [`MetricError::Missing`] and [`MetricError::Failed`].
    pub fn properties(&self, metric: &Metric) -> Result<MetricProperties, MetricError> {
        let mut parts = Vec::new();
        // SAFETY: the chip's evaluator and an index of its own; the functions fill in texts and arrays.
        let (description, unit) = unsafe {
            match metric.kind {
                MetricKind::Counter => {
                    let mut parameters = ffi::CounterProperties::zeroed();
                    parameters.evaluator = self.evaluator;
                    parameters.index = metric.index;
                    self.library.call(&mut parameters)?;
                    (text(parameters.description), parameters.unit)
                }
                MetricKind::Ratio => {
                    let mut parameters = ffi::RatioProperties::zeroed();
                    parameters.evaluator = self.evaluator;
                    parameters.index = metric.index;
                    self.library.call(&mut parameters)?;
                    (text(parameters.description), parameters.unit as u32)
                }
                MetricKind::Throughput => {
                    let mut parameters = ffi::ThroughputProperties::zeroed();
                    parameters.evaluator = self.evaluator;
                    parameters.index = metric.index;
                    self.library.call(&mut parameters)?;
                    let counters = slice(parameters.counters, parameters.counter_count);
                    let throughputs = slice(parameters.parts, parameters.part_count);
                    parts.extend(self.named(MetricKind::Counter, counters));
                    parts.extend(self.named(MetricKind::Throughput, throughputs));
                    (text(parameters.description), parameters.unit)
                }
            }
        };
        Ok(MetricProperties {
            description,
            hardware: self.hardware(unit).unwrap_or_default(),
            unit: self.unit(&metric.name).unwrap_or_default(),
            parts,
        })
    }

    fn named(&self, kind: MetricKind, indices: &[usize]) -> impl Iterator<Item = String> {
        let of_kind = self
            .metrics
            .iter()
            .filter(move |metric| metric.kind == kind);
        let of_kind: Vec<&Metric> = of_kind.collect();
        let name = move |index: usize| Some(of_kind.get(index)?.name.clone());
        indices.iter().copied().filter_map(name)
    }

    /// The name of a hardware unit.
    fn hardware(&self, unit: u32) -> Result<String, MetricError> {
        let mut parameters = ffi::UnitName::zeroed();
        parameters.evaluator = self.evaluator;
        parameters.unit = unit;
        // SAFETY: the chip's evaluator; the function fills in a text.
        unsafe {
            self.library.call(&mut parameters)?;
            Ok(text(parameters.name))
        }
    }

    /// The unit of a metric: `bytes`, `bytes/second`; empty where it has none. A name without a form stands for its first one.
    ///
    /// # Errors
    ///
    /// [`MetricError::UnknownMetric`], [`MetricError::Missing`] and [`MetricError::Failed`].
    pub fn unit(&self, name: &str) -> Result<String, MetricError> {
        let request = self.request(name)?;
        let mut parameters = ffi::Dimensions::zeroed();
        parameters.evaluator = self.evaluator;
        parameters.request = &raw const request;
        parameters.request_size = ffi::MetricRequest::SIZE;
        parameters.factor_size = ffi::Factor::SIZE;
        // SAFETY: the chip's evaluator and a request; without an array, the function counts.
        unsafe { self.library.call(&mut parameters) }?;
        let mut factors = vec![ffi::Factor::default(); parameters.count];
        parameters.factors = factors.as_mut_ptr();
        // SAFETY: as before, and an array of the length that it said.
        unsafe { self.library.call(&mut parameters) }?;
        factors.truncate(parameters.count);
        let (mut above, mut below) = (Vec::new(), Vec::new());
        for factor in factors {
            let mut name = ffi::DimensionName::zeroed();
            name.evaluator = self.evaluator;
            name.dimension = factor.dimension;
            // SAFETY: the chip's evaluator; the function fills in two texts.
            let (singular, plural) = unsafe {
                self.library.call(&mut name)?;
                (text(name.singular), text(name.plural))
            };
            match factor.exponent {
                1.. => above.push(plural),
                _ => below.push(singular),
            }
        }
        let mut unit = above.join("*");
        for name in below {
            unit += "/";
            unit += &name;
        }
        Ok(unit)
    }

    /// The forms that a metric may have, each with the dot that it begins with.
    ///
    /// # Errors
    ///
    /// [`MetricError::Missing`] and [`MetricError::Failed`].
    pub fn forms(&self, kind: MetricKind) -> Result<Vec<String>, MetricError> {
        let mut parameters = ffi::Submetrics::zeroed();
        parameters.evaluator = self.evaluator;
        parameters.kind = kind as u8;
        // SAFETY: the chip's evaluator; the function fills in an array.
        let submetrics = unsafe {
            self.library.call(&mut parameters)?;
            slice(parameters.submetrics, parameters.count)
        };
        let named = |number: &u16| SUBMETRICS.get(usize::from(*number));
        let submetrics: Vec<String> = submetrics
            .iter()
            .filter_map(named)
            .map(|name| {
                if name.is_empty() {
                    String::new()
                } else {
                    format!(".{name}")
                }
            })
            .collect();
        Ok(match kind {
            MetricKind::Ratio => submetrics,
            MetricKind::Counter | MetricKind::Throughput => ROLLUPS
                .iter()
                .flat_map(|rollup| submetrics.iter().map(move |of| format!(".{rollup}{of}")))
                .collect(),
        })
    }

    /// The library's request for a metric. A name without a form has the first one of its kind.
    fn request(&self, name: &str) -> Result<ffi::MetricRequest, MetricError> {
        let metric = self.find(name)?;
        let form = match &name[metric.name.len()..] {
            "" => metric.kind.default_form(),
            form => form,
        };
        let whole = format!("{}{form}", metric.name);
        let c_name = CString::new(whole).map_err(|_| self.unknown(name))?;
        let mut request = ffi::MetricRequest::default();
        let mut parameters = ffi::ConvertName::zeroed();
        parameters.evaluator = self.evaluator;
        parameters.name = c_name.as_ptr();
        parameters.request = &raw mut request;
        parameters.request_size = ffi::MetricRequest::SIZE;
        // SAFETY: the chip's evaluator, a text and a place for the request.
        let converted = unsafe { self.library.call(&mut parameters) };
        converted.map_err(|error| match error {
            MetricError::Failed { .. } => MetricError::UnknownForm {
                chip: self.name.clone(),
                metric: metric.name.clone(),
                form: form.to_owned(),
                forms: self.forms(metric.kind).unwrap_or_default(),
            },
            error => error,
        })?;
        Ok(request)
    }

    /// The number of passes of a workload in which metrics can be counted together. A name without a form stands for its
    /// first one.
    ///
    /// # Errors
    ///
    /// [`MetricError::UnknownMetric`], [`MetricError::Missing`] and [`MetricError::Failed`].
    pub fn passes(&self, names: &[&str]) -> Result<usize, MetricError> {
        let requests: Result<Vec<_>, _> = names.iter().map(|name| self.request(name)).collect();
        let requests = requests?;
        if requests.is_empty() {
            return Ok(0);
        }
        let mut parameters = ffi::RawDependencies::zeroed();
        parameters.evaluator = self.evaluator;
        parameters.requests = requests.as_ptr();
        parameters.request_count = requests.len();
        parameters.request_size = ffi::MetricRequest::SIZE;
        parameters.request_stride = size_of::<ffi::MetricRequest>();
        // SAFETY: the chip's evaluator and its requests; without arrays, the function counts.
        unsafe { self.library.call(&mut parameters) }?;
        let mut needed: Vec<NvpwText> = vec![std::ptr::null(); parameters.count];
        let mut optional: Vec<NvpwText> = vec![std::ptr::null(); parameters.optional_count];
        parameters.names = needed.as_mut_ptr();
        parameters.optional_names = optional.as_mut_ptr();
        // SAFETY: as before, and arrays of the lengths that it said.
        unsafe { self.library.call(&mut parameters) }?;
        needed.truncate(parameters.count);
        let raw: Vec<ffi::RawRequest> = needed
            .into_iter()
            .map(|name| ffi::RawRequest {
                size: ffi::RawRequest::SIZE,
                private: std::ptr::null(),
                name,
                isolated: 1,
                keeps_instances: 1,
            })
            .collect();
        CounterConfiguration::new(self)?.passes(&raw)
    }
}

impl Drop for Chip<'_> {
    fn drop(&mut self) {
        let mut parameters = ffi::DestroyEvaluator::zeroed();
        parameters.evaluator = self.evaluator;
        // SAFETY: the chip's evaluator, for the last time.
        let _ = unsafe { self.library.call(&mut parameters) };
    }
}

/// A configuration of counters of the hardware.
struct CounterConfiguration<'l> {
    library: &'l MetricLibrary,
    object: NvpwObject,
}

impl<'l> CounterConfiguration<'l> {
    fn new(chip: &Chip<'l>) -> Result<CounterConfiguration<'l>, MetricError> {
        let mut parameters = ffi::CreateConfiguration::zeroed();
        parameters.activity = ffi::ACTIVITY_PROFILER;
        parameters.chip = chip.c_name.as_ptr();
        // SAFETY: a text; the other pointers may be null.
        unsafe { chip.library.call(&mut parameters) }?;
        Ok(CounterConfiguration {
            library: chip.library,
            object: parameters.configuration,
        })
    }

    fn passes(&self, counters: &[ffi::RawRequest]) -> Result<usize, MetricError> {
        let mut begin = ffi::BeginPassGroup::zeroed();
        begin.configuration = self.object;
        let mut add = ffi::AddMetrics::zeroed();
        add.configuration = self.object;
        add.requests = counters.as_ptr();
        add.count = counters.len();
        let mut end = ffi::EndPassGroup::zeroed();
        end.configuration = self.object;
        let mut count = ffi::PassCount::zeroed();
        count.configuration = self.object;
        // SAFETY: a configuration, and counters whose names the library has given.
        unsafe {
            self.library.call(&mut begin)?;
            self.library.call(&mut add)?;
            self.library.call(&mut end)?;
            self.library.call(&mut count)?;
        }
        Ok(count.count)
    }
}

impl Drop for CounterConfiguration<'_> {
    fn drop(&mut self) {
        let mut parameters = ffi::DestroyConfiguration::zeroed();
        parameters.configuration = self.object;
        // SAFETY: the configuration, for the last time.
        let _ = unsafe { self.library.call(&mut parameters) };
    }
}

/// An array of the library's; empty where there is none.
///
/// # Safety
///
/// `first` is null or points to `count` values, which live as long as the result.
unsafe fn slice<'a, T>(first: *const T, count: usize) -> &'a [T] {
    match first.is_null() {
        true => &[],
        // SAFETY: `first` is not null, so that it points to `count` values, which live as long as the result.
        false => unsafe { std::slice::from_raw_parts(first, count) },
    }
}

/// A text of the library's; empty where there is none.
///
/// # Safety
///
/// `text` is null or points to a text with a terminating zero.
unsafe fn text(text: NvpwText) -> String {
    match text.is_null() {
        true => String::new(),
        // SAFETY: `text` is not null, so that it ends with a 0; it is copied.
        false => unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned(),
    }
}
