//! Loss budget of a ring: the maximum number of links over which light is strong enough to be
//! received.
//!
//! Light passes all R ring resonators of each rank between its source and its destination, by
//! default one for every wavelength (TeraRack's interfaces have 64 micro-ring resonators for 64
//! wavelengths: Dai et al., OpTree, section IV.A). At the destination, one more resonator drops the
//! light. A lightpath of h links is received if
//!
//! ```text
//! launch - fixed - h * link - (h - 1) * R * through - drops * split - drop >= sensitivity
//! ```
//!
//! Here `drops` is the number of ranks before the destination that receive a share of the light
//! (drop-and-continue), and `split` is the loss of the remaining light at each of these ranks. The
//! user must provide the values, because the papers state none.

use super::{Direction, WdmLight, WdmRing};
use crate::fabric::loss::{FIXED, LossBudget, LossOption, LossOptions, PassedLoss, Place};
use crate::fabric::{FabricError, Hop};
use opticoll_base::spec::{OptionRecord, Spec};

/// Options of a loss budget. If any option is given, the first three are required.
pub(super) const OPTIONS: LossOptions = LossOptions {
    example: "launch_power=5dBm,sensitivity=-20dBm,through_loss=0.01dB",
    launch_power: "power of a wavelength; with sensitivity and through_loss it limits the reach",
    losses: &[
        LossOption {
            place: Place::Through,
            name: "through_loss",
            meaning: "loss at each ring resonator passed",
            is_required: true,
        },
        LossOption {
            place: Place::Drop,
            name: "drop_loss",
            meaning: "loss where light is received",
            is_required: false,
        },
        LossOption {
            place: Place::Split,
            name: "split_loss",
            meaning: "loss of light that continues where a rank takes a share",
            is_required: false,
        },
        LossOption {
            place: Place::Link,
            name: "link_loss",
            meaning: "loss of each link between neighbours: fibre, connectors, splices",
            is_required: false,
        },
        FIXED,
    ],
    others: &[
        OptionRecord::new("resonators", "ring resonators of a rank on each fibre")
            .range("1 to 65536")
            .default("one per wavelength")
            .source("Dai et al., OpTree, section IV.A: as many as wavelengths"),
    ],
};

const MAX_RESONATORS: u32 = 1 << 16;

/// Parses the number of ring resonators, and checks that light reaches the next rank.
pub(super) fn read_resonators(
    spec: &Spec,
    budget: Option<&LossBudget>,
    wavelengths: u32,
) -> Result<u32, FabricError> {
    let resonators = spec.count("resonators", 1, MAX_RESONATORS)?;
    match budget {
        Some(budget) if budget.farthest(0, 0) == 0 => Err(spec
            .refuse("sensitivity", "the light does not reach the next rank")
            .into()),
        _ => Ok(resonators.unwrap_or(wavelengths)),
    }
}

impl WdmRing {
    /// Returns the loss at the ring resonators of a rank that light passes, in millionths of a
    /// decibel.
    pub(super) fn through_loss_of_rank(&self, budget: &LossBudget) -> i64 {
        let through = budget.losses[Place::Through as usize];
        through.millionths() * i64::from(self.resonators)
    }

    /// Returns the losses of a lightpath of which `splits` ranks before its end take a share.
    pub(super) fn losses_of(&self, budget: &LossBudget, hop: &Hop, splits: u32) -> Vec<PassedLoss> {
        let light = WdmLight::from(hop.light);
        let links = u64::from(self.span(hop.from, hop.to, light.direction));
        let passed = links.saturating_sub(1) * u64::from(self.resonators);
        vec![
            budget.fixed(),
            budget.at(Place::Link, "link", links),
            budget.at(Place::Through, "ring resonator passed", passed),
            budget.at(Place::Split, "rank that takes a share", splits.into()),
            budget.at(Place::Drop, "drop", 1),
        ]
    }

    /// Returns the number of ranks that take a share of the light before each destination of a
    /// light tree.
    pub(super) fn splits_before(&self, tree: &[Hop]) -> Vec<u32> {
        let length = |hop: &Hop| -> u32 {
            let direction: Direction = WdmLight::from(hop.light).direction;
            self.span(hop.from, hop.to, direction)
        };
        let mut lengths: Vec<u32> = tree.iter().map(length).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let nearer = |hop: &Hop| lengths.partition_point(|&nearer| nearer < length(hop)) as u32;
        tree.iter().map(nearer).collect()
    }
}
