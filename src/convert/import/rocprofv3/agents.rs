//! The devices.

use super::reader::{RecordingFile, RecordingReader};
use crate::import::row::{Damage, Row, rows};
use crate::import::tables::AgentRow;
use gputrail_trace::model::Agent;

rows! {
    /// A device.
    AgentInfo<'r> {
        node: &'r str = "Node_Id",
        kind: &'r str = "Agent_Type",
        name: &'r str = "Name",
        vendor: &'r str = "Vendor_Name",
        product: &'r str = "Product_Name",
    }
}

pub(super) const COLUMNS: &[&str] = AgentInfo::COLUMNS;

pub(super) fn add<'r>(
    reader: &mut RecordingReader<'_>,
    file: &RecordingFile<'_>,
    row: &'r (dyn Row + 'r),
) -> Result<(), Damage> {
    let info = AgentInfo::read(row)?;
    let key = |label: String| (file.group.clone(), label);
    let node = key(format!("Agent {}", info.node));
    if reader.agents.contains_key(&node) {
        return Ok(());
    }
    let number = reader.kinds.entry(info.kind.to_owned()).or_default();
    let title = format!("{} {number}", info.kind);
    *number += 1;
    let rest = row.rest();
    let units = rest
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("Cu_Count"));
    let units = units.and_then(|(_, units)| units.parse().ok()).unwrap_or(0);
    let own = [("Node_Id", info.node), ("Agent_Type", info.kind)];
    let attributes = own.into_iter().chain(rest);
    let attributes = attributes.filter(|(_, value)| !value.is_empty());
    let agent = reader.tables.agent(AgentRow {
        agent: Agent {
            title: title.clone(),
            name: match info.product {
                "" => info.name,
                product => product,
            }
            .to_owned(),
            vendor: info.vendor.to_owned(),
            model: info.product.to_owned(),
            architecture: info.name.to_owned(),
            pci_address: String::new(),
            attributes: attributes
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        },
        compute_units: units,
    });
    reader.agents.insert(node, agent);
    reader.agents.entry(key(title)).or_insert(agent);
    Ok(())
}
