//! Example of the documentation's page on adding a fabric: one switch with several cables to each
//! rank.
//!
//! The family is compiled for tests only and is not in the list of families. The switch is vertex
//! N. Each rank has C cables to the switch. Cable c of rank r has the index r * C + c.

use std::sync::Arc;

use crate::drawing;
use crate::drawing::Drawing;
use crate::fabric::options;
use crate::fabric::options::DefaultRule::Printed;
use crate::fabric::options::{Options, declare, machine_over_links};
use crate::fabric::wiring;
use crate::fabric::wiring::Wire;
use crate::fabric::{Fabric, FabricError, FamilyRecord, Machine};
use crate::network::{Network, Wiring};
use opticoll_base::spec::{OptionRecord, Spec};

/// Ranks around one switch, with several cables each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    ranks: u32,
    cables: u32,
    wire: Wire,
    wiring: Arc<Wiring>,
}

/// Record of the family.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "example",
    summary: "One switch with several cables to each rank",
    citation: "opticoll",
    example: "example:ranks=8,cables=2,rate=100Gb/s",
    options: || options::list(&RECORD, declared),
    build: |spec| Example::parse(spec).map(Fabric::new),
    presets: &[],
};

/// Declares the options of every electrical fabric, and one option of this family: the number of
/// cables per rank, up to 64 and by default 1.
fn declared(options: &mut Options<'_, Example>) -> Result<(u32, u32, Wire), FabricError> {
    let (ranks, wire) = wiring::ranks_and_wire(options, |machine| (machine.ranks, machine.wire))?;
    declare! { options of Example;
        cables "cables" count(64, Printed(1)) "cables between a rank and the switch";
    }
    Ok((ranks, cables, wire))
}

impl Example {
    fn parse(spec: &Spec) -> Result<Example, FabricError> {
        let (ranks, cables, wire) = options::read(spec, &RECORD, declared)?;
        let mut wiring = Wiring::new(wire.duplex);
        for cable in 0..ranks * cables {
            wiring.add(cable / cables, ranks, wire.link);
        }
        Ok(Example {
            ranks,
            cables,
            wire,
            wiring: Arc::new(wiring),
        })
    }

    /// Returns the cable of `rank` for messages to and from `partner`.
    fn cable(&self, rank: u32, partner: u32) -> u32 {
        rank * self.cables + partner % self.cables
    }
}

machine_over_links!(Example, RECORD, declared);

impl Network for Example {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    /// Appends the source's cable towards the switch and the destination's cable from the switch.
    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        links.push(self.wiring.forth(self.cable(source, destination)));
        links.push(self.wiring.back(self.cable(destination, source)));
    }

    fn vertex_name(&self, vertex: u32) -> String {
        match vertex {
            rank if rank < self.ranks => format!("rank {rank}"),
            _ => "switch".into(),
        }
    }

    fn drawing(&self) -> Drawing {
        let mut places = drawing::circle(self.ranks);
        places.push([0.0, 0.0]);
        Drawing::new(places)
    }
}

#[test]
fn messages_to_even_and_odd_ranks_take_different_cables() {
    let spec: Spec = "example:ranks=4,cables=2,rate=100Gb/s".parse().unwrap();
    let machine = Example::parse(&spec).unwrap();
    assert_eq!(
        Machine::spec(&machine).to_string(),
        "example:ranks=4,rate=100Gb/s,latency=0s,cables=2"
    );
    let ends = |source, destination| {
        let mut links = Vec::new();
        machine.route(source, destination, &mut links);
        let named = |&link| machine.ends(link).unwrap();
        (links.clone(), links.iter().map(named).collect::<Vec<_>>())
    };
    assert_eq!(ends(0, 1).1, [(0, 4), (4, 1)]);
    assert_eq!(ends(0, 2).1, [(0, 4), (4, 2)]);
    assert_ne!(ends(0, 1).0[0], ends(0, 2).0[0]);
    assert_eq!(ends(0, 1).0[0], ends(0, 3).0[0]);
}
