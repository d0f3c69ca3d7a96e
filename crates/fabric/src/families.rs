//! List of all families of fabrics, and the parser from specifications to fabrics.
//!
//! A new family with links needs a file in [`family`] and a line in [`FAMILIES`]. A new family with
//! circuits also needs a variant of [`CircuitMachine`]; the compiler then reports every `match`
//! that lacks the variant.

pub mod medium;

use crate::fabric::part::{DEGRADED, WITHOUT};
use crate::fabric::{Fabric, FabricError, FamilyRecord, PresetRecord};
use crate::family;
use crate::family::circuit_switch::CircuitSwitch;
use crate::family::gpu_servers::ServersOnLight;
use crate::family::lightpath_grid::LightpathGrid;
use crate::family::passive_star::PassiveStar;
use crate::family::wdm_graph::WdmGraph;
use crate::family::wdm_ring::WdmRing;
use crate::family::wss_grid::WssGrid;
pub use medium::Medium;
use opticoll_base::spec::{Role, Spec};

/// All families.
pub const FAMILIES: &[&FamilyRecord] = &[
    &family::wdm_ring::RECORD,
    &family::wdm_graph::GRAPH,
    &family::wdm_graph::LINE,
    &family::wdm_graph::TREE,
    &family::wdm_graph::HYPERCUBE,
    &family::wdm_graph::TORUS,
    &family::wdm_graph::MESH,
    &family::wdm_graph::LADDER,
    &family::crossbar::RECORD,
    &family::fat_tree::RECORD,
    &family::dragonfly::RECORD,
    &family::torus::TORUS,
    &family::torus::MESH,
    &family::torus::LADDER,
    &family::torus::RING,
    &family::torus::LINE,
    &family::torus::HYPERCUBE,
    &family::tree::RECORD,
    &family::ocs_torus::RECORD,
    &family::fully_connected::RECORD,
    &family::custom::RECORD,
    &family::gpu_servers::RECORD,
    &family::wss_grid::RECORD,
    &family::lightpath_grid::RECORD,
    &family::passive_star::RECORD,
    &family::circuit_switch::RECORD,
    &family::message_cost::ZERO,
    &family::message_cost::HOCKNEY,
    &family::message_cost::LOGGP,
];

/// Returns all presets.
pub fn presets() -> impl Iterator<Item = &'static PresetRecord> {
    FAMILIES.iter().flat_map(|family| family.presets)
}

/// Concrete type of a machine with circuits, for code that handles particular families.
#[derive(Debug, Clone, Copy)]
pub enum CircuitMachine<'a> {
    /// Ring with wavelength-division multiplexing.
    WdmRing(&'a WdmRing),
    /// Graph of fibres.
    WdmGraph(&'a WdmGraph),
    /// Grid of wavelength-selective switches.
    WssGrid(&'a WssGrid),
    /// Grid of lightpaths.
    LightpathGrid(&'a LightpathGrid),
    /// Passive star.
    PassiveStar(&'a PassiveStar),
    /// Circuit switch.
    CircuitSwitch(&'a CircuitSwitch),
    /// Servers joined by light.
    ServersOnLight(&'a ServersOnLight),
}

impl Fabric {
    /// Returns the machine with its concrete type, or `None` if the machine has no circuits.
    pub fn circuit_machine(&self) -> Option<CircuitMachine<'_>> {
        let ring = self.downcast().map(CircuitMachine::WdmRing);
        ring.or_else(|| self.downcast().map(CircuitMachine::WssGrid))
            .or_else(|| self.downcast().map(CircuitMachine::WdmGraph))
            .or_else(|| self.downcast().map(CircuitMachine::LightpathGrid))
            .or_else(|| self.downcast().map(CircuitMachine::PassiveStar))
            .or_else(|| self.downcast().map(CircuitMachine::CircuitSwitch))
            .or_else(|| self.downcast().map(CircuitMachine::ServersOnLight))
    }

    /// Parses a specification such as `wdm_ring:ranks=16,wavelengths=2` or
    /// `optree_paper:ranks=512`. Options in the specification replace the options of a preset.
    ///
    /// # Errors
    /// The name is unknown, or an option is wrong or missing.
    pub fn parse(text: &str) -> Result<Fabric, FabricError> {
        Medium::parse(text)?.fabric()
    }
}

/// Returns the fabric that remains after `failures`: options for broken parts such as
/// `without=0>1`, or only the parts, such as `0>1` or `0-1@50Gb/s`. The failures are added to the
/// parts that are already broken. On a `wss_grid`, the option `leaving` lists nodes that leave.
///
/// # Errors
/// An option does not describe failures, or a part does not exist.
pub fn after_failures(fabric: &Fabric, failures: &str) -> Result<Fabric, FabricError> {
    // Without an option, `failures` names a broken part, or a degraded part if it contains a rate.
    let named = match (failures.contains('='), failures.contains('@')) {
        (true, _) => failures.to_owned(),
        (false, true) => format!("{}={failures}", DEGRADED.name),
        (false, false) => format!("{}={failures}", WITHOUT.name),
    };
    if let Some(left) = fabric.after_failures(&named) {
        return Ok(left?);
    }
    let failures: Spec = format!("{}:{named}", fabric.family()).parse()?;
    let options = fabric.record().all_options();
    let options = options.iter().map(|option| option.record);
    let options: Vec<_> = options
        .filter(|option| matches!(option.role, Role::Broken | Role::Members))
        .collect();
    failures.only_declared(&options)?;
    let mut spec = fabric.spec();
    for (key, value) in failures.options() {
        let is_left = options
            .iter()
            .any(|option| option.name == key && option.role == Role::Members);
        let merged = match spec.option(key).filter(|_| !is_left) {
            Some(earlier) => format!("{earlier}+{value}"),
            None => value.into(),
        };
        spec = spec.without(key).with(key, merged);
    }
    Fabric::parse(&spec.to_string())
}
