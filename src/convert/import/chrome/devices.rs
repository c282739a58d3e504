//! Devices that a file names by the metadata of its processes or by events: those of XLA's profiler, Huawei's CANN, Intel's unitrace
//! and the intercept layer for OpenCL.

use std::collections::BTreeMap;

use super::collect::Collected;
use super::ids::Id;
use super::{intercept, unitrace, xla};

/// Devices by the processes that stand for their rows.
#[derive(Debug, Default)]
pub(super) struct NamedDevices {
    processes: BTreeMap<Id, u32>,
    /// Titles of those that are no GPUs, or whose numbers are others in the file.
    titles: BTreeMap<u32, String>,
    /// Names of their models.
    models: BTreeMap<u32, String>,
}

impl NamedDevices {
    /// The devices of a file that has been read.
    pub fn find(collected: &Collected<'_>) -> NamedDevices {
        let mut devices = NamedDevices::default();
        let writers = &collected.writers;
        for (pid, described) in &collected.processes {
            let named = match xla::kind_of(collected, *pid) {
                Some(named) => Some(named),
                None if writers.ascend.has_tasks => described.labels.as_deref().and_then(npu),
                None => None,
            };
            if let Some((kind, number)) = named {
                devices.add(kind, number);
                devices.processes.insert(*pid, number);
            }
            let name = described.name.as_deref().unwrap_or_default();
            if let Some(number) = writers.unitrace.devices.get(pid)
                && let Some((model, place)) = unitrace::described(name)
            {
                devices.processes.insert(*pid, *number);
                devices.models.insert(*number, model.to_owned());
                if let Some(place) = place {
                    devices.titles.insert(*number, format!("GPU {place}"));
                }
            }
        }
        for number in &writers.npus {
            devices.add("NPU", *number);
        }
        for (number, device) in writers.intercept.devices.iter().enumerate() {
            let (title, model) = intercept::title(number, device);
            devices.titles.insert(number as u32, title);
            devices.models.insert(number as u32, model);
        }
        devices
    }

    fn add(&mut self, kind: &str, number: u32) {
        if kind != "GPU" {
            let title = || format!("{kind} {number}");
            self.titles.entry(number).or_insert_with(title);
        }
    }

    /// The number of the device of a process.
    pub fn of_process(&self, pid: Id) -> Option<u32> {
        self.processes.get(&pid).copied()
    }

    /// Whether a process stands for rows of an NPU.
    pub fn is_npu(&self, pid: Id) -> bool {
        self.of_process(pid)
            .and_then(|number| self.titles.get(&number))
            .is_some_and(|title| title.starts_with("NPU"))
    }

    /// The title of a device.
    pub fn title(&self, number: i64) -> String {
        let own = u32::try_from(number).ok();
        let own = own.and_then(|number| self.titles.get(&number));
        own.cloned().unwrap_or_else(|| format!("GPU {number}"))
    }

    /// The model of a device, if it has a name.
    pub fn model(&self, number: i64) -> Option<&str> {
        let own = u32::try_from(number).ok()?;
        let model = self.models.get(&own)?;
        (!model.is_empty()).then_some(model)
    }
}

/// The kind and the number of the device in the label of a process of CANN: `NPU 3`, and without a number in older versions.
fn npu(labels: &str) -> Option<(&str, u32)> {
    match labels.strip_prefix("NPU")?.trim() {
        "" => Some(("NPU", 0)),
        number => Some(("NPU", number.parse().ok()?)),
    }
}
