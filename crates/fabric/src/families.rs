//! All families of fabrics, and the one way from a specification to a fabric.
//!
//! A new family with links is a file in [`family`] and a line here; one with circuits is also a
//! [`CircuitMachine`], and the compiler then names each `match` that lacks it.

pub mod medium;

use crate::fabric::part::{DEGRADED, WITHOUT};
use crate::fabric::{Fabric, FabricError, FamilyRecord, PresetRecord};
use crate::family;
use crate::family::circuit_switch::CircuitSwitch;
use crate::family::light_path_grid::LightPathGrid;
use crate::family::passive_star::PassiveStar;
use crate::family::wdm_ring::WdmRing;
use crate::family::wss_grid::WssGrid;
pub use medium::{Bursts, Medium};
use opticoll_base::spec::{Role, Spec};

/// All families.
pub const FAMILIES: &[&FamilyRecord] = &[
    &family::wdm_ring::RECORD,
    &family::crossbar::RECORD,
    &family::fat_tree::RECORD,
    &family::dragonfly::RECORD,
    &family::torus::TORUS,
    &family::torus::MESH,
    &family::torus::LADDER,
    &family::torus::RING,
    &family::ocs_torus::RECORD,
    &family::fully_connected::RECORD,
    &family::custom::RECORD,
    &family::gpu_servers::RECORD,
    &family::wss_grid::RECORD,
    &family::light_path_grid::RECORD,
    &family::passive_star::RECORD,
    &family::circuit_switch::RECORD,
    &family::message_cost::ZERO,
    &family::message_cost::HOCKNEY,
    &family::message_cost::LOGGP,
];

/// All presets.
pub fn presets() -> impl Iterator<Item = &'static PresetRecord> {
    FAMILIES.iter().flat_map(|family| family.presets)
}

/// A machine whose plans have light, by its type: code for one family takes it from here.
#[derive(Debug, Clone, Copy)]
pub enum CircuitMachine<'a> {
    /// A ring of wavelengths.
    WdmRing(&'a WdmRing),
    /// A grid of tunable circuits.
    WssGrid(&'a WssGrid),
    /// A grid of lightpaths.
    LightPathGrid(&'a LightPathGrid),
    /// A passive star.
    PassiveStar(&'a PassiveStar),
    /// A circuit switch.
    CircuitSwitch(&'a CircuitSwitch),
}

impl Fabric {
    /// Returns the machine, if its plans have light.
    pub fn circuit_machine(&self) -> Option<CircuitMachine<'_>> {
        let ring = self.downcast().map(CircuitMachine::WdmRing);
        ring.or_else(|| self.downcast().map(CircuitMachine::WssGrid))
            .or_else(|| self.downcast().map(CircuitMachine::LightPathGrid))
            .or_else(|| self.downcast().map(CircuitMachine::PassiveStar))
            .or_else(|| self.downcast().map(CircuitMachine::CircuitSwitch))
    }

    /// Reads a specification such as `wdm_ring:ranks=16,wavelengths=2` or `optree_paper:ranks=512`;
    /// options given to a preset replace its own.
    ///
    /// # Errors
    /// An unknown name, an option that is wrong or missing.
    pub fn parse(text: &str) -> Result<Fabric, FabricError> {
        Medium::parse(text)?.fabric()
    }
}

/// What is left of a fabric after failures: options that say what is broken, such as `without=0>1`, in addition to what
/// was broken before. On a grid of tunable circuits also `leaving`, for nodes.
///
/// # Errors
/// Options that do not say what is broken, or places that the fabric does not have.
pub fn after(fabric: &Fabric, failures: &str) -> Result<Fabric, FabricError> {
    // A name alone is that of a part which is broken, or slower where it has a rate.
    let named = match (failures.contains('='), failures.contains('@')) {
        (true, _) => failures.to_owned(),
        (false, true) => format!("{}={failures}", DEGRADED.name),
        (false, false) => format!("{}={failures}", WITHOUT.name),
    };
    if let Some(left) = fabric.after(&named) {
        return Ok(left?);
    }
    let failures: Spec = format!("{}:{named}", fabric.family()).parse()?;
    let options = fabric.record().all_options();
    let options = options.iter().map(|option| option.record);
    let options: Vec<_> = options
        .filter(|one| matches!(one.role, Role::Broken | Role::Left))
        .collect();
    failures.only_declared(&options)?;
    let mut spec = fabric.spec();
    for (key, value) in failures.options() {
        let is_left = options
            .iter()
            .any(|one| one.name == key && one.role == Role::Left);
        let together = match spec.option(key).filter(|_| !is_left) {
            Some(earlier) => format!("{earlier}+{value}"),
            None => value.into(),
        };
        spec = spec.without(key).with(key, together);
    }
    Fabric::parse(&spec.to_string())
}
