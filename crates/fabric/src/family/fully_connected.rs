//! A cable between every two ranks. Each route is one link.

use std::sync::Arc;

use crate::drawing;
use crate::drawing::Drawing;
use crate::fabric::options;
use crate::fabric::options::{Options, machine_over_links};
use crate::fabric::wiring;
use crate::fabric::wiring::{Wire, pair_number};
use crate::fabric::{Fabric, FabricError, FamilyRecord};
use crate::network::{Network, Wiring};
use opticoll_base::spec::Spec;

/// Ranks with a cable between every two ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullyConnected {
    ranks: u32,
    wire: Wire,
    wiring: Arc<Wiring>,
}

/// Record of the family.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "fully_connected",
    summary: "A cable between every two ranks",
    citation: "Dally and Towles, Principles and Practices of Interconnection Networks, 2004",
    example: "fully_connected:ranks=8,rate=25GB/s",
    options: || options::list(&RECORD, declared),
    build: |spec| FullyConnected::parse(spec).map(Fabric::new),
    presets: &[],
};

fn declared(options: &mut Options<'_, FullyConnected>) -> Result<(u32, Wire), FabricError> {
    wiring::ranks_and_wire(options, |machine| (machine.ranks, machine.wire))
}

impl FullyConnected {
    /// Builds the machine of a specification such as `fully_connected:ranks=8,rate=25GB/s`.
    pub fn parse(spec: &Spec) -> Result<FullyConnected, FabricError> {
        let (ranks, wire) = options::read(spec, &RECORD, declared)?;
        let cables = u128::from(ranks) * u128::from(ranks - 1) / 2;
        wiring::check_size(&RECORD, ranks.into(), cables)?;
        let mut wiring = Wiring::new(wire.duplex);
        for (low, high) in wiring::pairs(ranks) {
            wiring.add(low, high, wire.link);
        }
        Ok(FullyConnected {
            ranks,
            wire,
            wiring: Arc::new(wiring),
        })
    }
}

machine_over_links!(FullyConnected, RECORD, declared);

impl Network for FullyConnected {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        let wiring = &self.wiring;
        links.push(if source < destination {
            wiring.forth(pair_number(source, destination, self.ranks))
        } else {
            wiring.back(pair_number(destination, source, self.ranks))
        });
    }

    fn drawing(&self) -> Drawing {
        Drawing::new(drawing::circle(self.ranks))
    }
}
