//! A cable between every two ranks; each route is one link.

use std::sync::Arc;

use super::wiring::{self, MOST_RANKS, Wire, Wiring, pair_number};
use super::{Fabric, FabricError, FamilyRecord};
use crate::drawing::{self, Drawing};
use crate::network::{Link, Network};
use crate::spec::Spec;

/// Ranks with a cable between every two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullyConnected {
    ranks: u32,
    wire: Wire,
    wiring: Arc<Wiring>,
}

/// The family's record.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "fully_connected",
    summary: "A cable between every two ranks",
    citation: "Dally and Towles, Principles and Practices of Interconnection Networks, 2004",
    options: wiring::RANKS_AND_WIRE,
    build,
};

fn build(spec: &Spec) -> Result<Fabric, FabricError> {
    FullyConnected::parse(spec).map(Fabric::FullyConnected)
}

impl FullyConnected {
    /// Reads a spelling such as `fully_connected:ranks=8,rate=25GB/s`.
    pub fn parse(spec: &Spec) -> Result<FullyConnected, FabricError> {
        wiring::only(spec, &RECORD)?;
        let ranks = spec
            .count("ranks", 1, MOST_RANKS)?
            .ok_or(FabricError::Missing {
                family: RECORD.name,
                key: "ranks",
                example: "fully_connected:ranks=8,rate=25GB/s",
            })?;
        let cables = u128::from(ranks) * u128::from(ranks - 1) / 2;
        wiring::check_size(&RECORD, ranks.into(), cables)?;
        let wire = Wire::parse(spec)?;
        let mut wiring = Wiring::new(wire.duplex);
        for (one, other) in wiring::pairs(ranks) {
            wiring.add(one, other, wire.link);
        }
        Ok(FullyConnected {
            ranks,
            wire,
            wiring: Arc::new(wiring),
        })
    }

    /// The complete spelling.
    pub fn spec(&self) -> Spec {
        self.wire
            .spell(Spec::new(RECORD.name).with("ranks", self.ranks))
    }
}

impl Network for FullyConnected {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn links(&self) -> &[Link] {
        self.wiring.links()
    }

    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        let wiring = &self.wiring;
        links.push(if source < destination {
            wiring.forth(pair_number(source, destination, self.ranks))
        } else {
            wiring.back(pair_number(destination, source, self.ranks))
        });
    }

    fn link_name(&self, link: u32) -> String {
        self.wiring.name(link, |rank| format!("rank {rank}"))
    }

    fn ends(&self, link: u32) -> Option<(u32, u32)> {
        self.wiring.ends(link)
    }

    fn drawing(&self) -> Drawing {
        Drawing::of(drawing::circle(self.ranks))
    }

    fn leads_both_ways(&self, _link: u32) -> bool {
        self.wiring.is_half_duplex()
    }
}
