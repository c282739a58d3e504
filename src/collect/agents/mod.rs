//! Services of agents: uses of a device that one context of the process configures, starts and stops.
//!
//! A source offers each of its agents to the service as a [`Provider`]. A context asks for an agent with a request,
//! whose type ([`AgentRequest`]) distinguishes the services: PC sampling ([`crate::sampling`]) and
//! counter collection ([`crate::counting`]). All
//! services of a process share one list of [`Claims`], which keeps those apart that exclude each other.

mod claims;
mod service;
#[cfg(test)]
mod tests;

pub(crate) use claims::{Claim, Conflict};
pub use claims::{Claims, HeldBy, ServiceKind};
pub use service::{AgentRefusal, AgentRequest, AgentService, ConfigureError, Delivery, Provider};
