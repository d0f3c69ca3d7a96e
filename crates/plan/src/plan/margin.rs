//! Margin of the light of transfers: the power that arrives at the receiver, above the least power
//! that it detects ([`opticoll_fabric::fabric::loss`]).

use super::{Lightpath, Plan, Repetition};
use opticoll_base::{interrupt, memory};
use opticoll_fabric::fabric::Hop;
use opticoll_fabric::fabric::circuits::LightSharing;
use opticoll_fabric::fabric::loss::{Decibels, PassedLoss};

/// Losses of the light of a transfer, and its margin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LightMargin {
    /// Index of the transfer in the expanded plan.
    pub transfer: u64,
    /// Margin in millionths of a decibel.
    pub margin: i64,
    /// Losses of the light.
    pub losses: Vec<PassedLoss>,
    /// Ratio of signal to noise in a band of 0.1 nm; `None` if the fabric states no noise.
    pub osnr: Option<Decibels>,
}

/// Memory in bytes for each transfer: its hops, its circuit and its losses.
const BYTES_PER_TRANSFER: u64 = 400;

impl Plan {
    /// Returns the margin of each transfer in `slot` that has light, in the order of
    /// [`Plan::lightpaths_in_slot`]. The margin of a relayed transfer is the margin of its weakest
    /// hop. Returns an empty list if the fabric has no loss budget or the plan has light that does
    /// not exist.
    pub fn margins_in_slot(&self, slot: u32) -> Vec<LightMargin> {
        let lightpaths = self.lightpaths_in_slot(slot);
        let is_stored = self.repetition == Repetition::NONE;
        let transfers: Vec<(u64, Lightpath, Vec<Hop>)> = lightpaths
            .map(|(index, lightpath)| {
                let hops = match is_stored {
                    true => self.hops_of(index as usize).collect(),
                    false => vec![super::repetition::hop(&lightpath)],
                };
                (index, lightpath, hops)
            })
            .collect();
        self.margins(transfers)
    }

    /// Returns the transfer with the least margin among the rows of the plan; if several have the
    /// least margin, the one with the least ratio of signal to noise. The copies of a row
    /// have the same margin as the row.
    pub fn least_margin(&self) -> Option<LightMargin> {
        self.fabric.circuits()?.loss_budget()?;
        let bytes = self.len() as u64 * BYTES_PER_TRANSFER;
        memory::check_forecast("the margins of all lightpaths", bytes);
        let transfers = (0..self.len()).map(|row| {
            let index = self.number(row, 0, 0);
            (index, self.lightpath(row), self.hops_of(row).collect())
        });
        let margins = self.margins(transfers.collect());
        margins
            .into_iter()
            .min_by_key(|one| (one.margin, one.osnr, one.transfer))
    }

    fn margins(&self, transfers: Vec<(u64, Lightpath, Vec<Hop>)>) -> Vec<LightMargin> {
        let circuits = self.fabric.circuits();
        let Some((circuits, budget)) = circuits.and_then(|one| Some((one, one.loss_budget()?)))
        else {
            return Vec::new();
        };
        let mut hops = transfers.iter().flat_map(|one| &one.2);
        if hops.any(|hop| circuits.circuit(hop, &self.routes).is_err()) {
            return Vec::new();
        }
        let mut splits = vec![0; transfers.len()];
        if let LightSharing::Tree { light, .. } = circuits.sharing() {
            let tree = |&place: &usize| {
                let Lightpath { transfer, slot, .. } = transfers[place].1;
                let light = transfers[place].1.light.0 & light;
                (slot, transfer.source, transfer.chunk, transfer.count, light)
            };
            let mut places: Vec<usize> = (0..transfers.len()).collect();
            places.sort_by_key(tree);
            for places in places.chunk_by(|one, other| tree(one) == tree(other)) {
                interrupt::check();
                let hops: Vec<Hop> = places.iter().map(|&place| transfers[place].2[0]).collect();
                let counts = circuits.splits(&hops, &self.routes);
                for (&place, count) in places.iter().zip(counts) {
                    splits[place] = count;
                }
            }
        }
        let margins = transfers.iter().zip(splits);
        let margins = margins.filter_map(|((transfer, _, hops), splits)| {
            interrupt::check();
            let margins = hops.iter().map(|hop| {
                let losses = circuits.losses(hop, &self.routes, splits);
                let noise = circuits.noise(hop, &self.routes, splits);
                LightMargin {
                    transfer: *transfer,
                    margin: budget.margin(&losses),
                    losses,
                    osnr: noise.and_then(|noise| noise.osnr()),
                }
            });
            let margins = margins.filter(|one| !one.losses.is_empty());
            margins.min_by_key(|one| one.margin)
        });
        margins.collect()
    }
}
