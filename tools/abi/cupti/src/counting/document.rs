//! Metrics by the names of CUPTI's document (tables 1 to 4), beside those that gputrail has: their definitions, and the kinds of their values.
//! Instructions of waves stand for those of warps, TCC for the cache at the second level, EA for the memory of the device.

use gputrail_abi::counting::define;
use std::sync::Once;

/// The definitions, as ROCProfiler's files have them.
const DEFINITIONS: &str = include_str!("document.xml");

/// Adds the metrics to those of all devices, once.
pub fn add() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Without them, devices have the other metrics.
        let _ = define(DEFINITIONS);
    });
}

/// The kind of a metric's values (`CUpti_MetricValueKind`).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ValueKind {
    Double = 0,
    Uint64 = 1,
    Percent = 2,
    /// Bytes in a second.
    Throughput = 3,
    /// From 0 (idle) to 10.
    UtilizationLevel = 5,
}

impl ValueKind {
    /// The kind of a metric of the document, by its name.
    pub fn of(name: &str) -> Option<ValueKind> {
        let is_of_document = DEFINITIONS.contains(&format!("name={name} "));
        is_of_document.then(|| match name {
            "ipc" | "issued_ipc" | "inst_per_warp" => ValueKind::Double,
            _ if name.ends_with("_efficiency") || name.ends_with("_rate") => ValueKind::Percent,
            _ if name.ends_with("_throughput") => ValueKind::Throughput,
            _ if name.ends_with("_utilization") => ValueKind::UtilizationLevel,
            _ => ValueKind::Uint64,
        })
    }

    /// The bits of a value of this kind (`CUpti_MetricValue`).
    pub fn bits(self, value: f64) -> u64 {
        match self {
            ValueKind::Double | ValueKind::Percent => value.to_bits(),
            // Numbers beyond the type become its nearest one.
            ValueKind::Uint64 | ValueKind::Throughput => value.round() as u64,
            ValueKind::UtilizationLevel => value.round().clamp(0.0, 10.0) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_types_of_their_kinds() {
        let kinds = [
            ("ipc", ValueKind::Double, 1.5f64.to_bits()),
            ("inst_executed", ValueKind::Uint64, 2),
            ("l2_tex_hit_rate", ValueKind::Percent, 1.5f64.to_bits()),
            ("dram_read_throughput", ValueKind::Throughput, 2),
            ("dram_utilization", ValueKind::UtilizationLevel, 2),
        ];
        for (name, kind, bits) in kinds {
            assert_eq!(ValueKind::of(name), Some(kind), "{name}");
            assert_eq!(kind.bits(1.5), bits, "{name}");
        }
        assert_eq!(ValueKind::of("L2CacheHit"), None);
        assert_eq!(ValueKind::UtilizationLevel.bits(12.0), 10);
    }
}
