//! Star: one switch with a cable to each rank.
//!
//! The switch never limits traffic. Cable r joins rank r to the switch, which is vertex N. A flow
//! uses the cable of its source towards the switch, and the cable of its destination from the
//! switch.

use std::sync::Arc;

use crate::drawing;
use crate::drawing::Drawing;
use crate::fabric::options;
use crate::fabric::options::{Options, machine_over_links};
use crate::fabric::wiring;
use crate::fabric::wiring::Wire;
use crate::fabric::{Fabric, FabricError, FamilyRecord, PresetRecord};
use crate::network::{Duplex, InNetwork, Network, Wiring};
use opticoll_base::spec::Spec;

/// Ranks around one switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crossbar {
    ranks: u32,
    wire: Wire,
    in_network: InNetwork,
    wiring: Arc<Wiring>,
}

/// Presets: machines in which only the ports of the ranks limit traffic.
pub const PRESETS: &[PresetRecord] = &[PresetRecord {
    name: "cloudmatrix384",
    summary: "CloudMatrix384: 384 NPUs (Ascend 910C), 392 GB/s each to a non-blocking network",
    citation: "Zuo et al., Serving Large Language Models on Huawei CloudMatrix384, arXiv \
        2506.12708",
    spec: "crossbar:ranks=384,rate=392GB/s",
    unconfirmed: "392 GB/s one way is from reports on the paper; other reports print 196 GB/s per \
        NPU; no latency is stated",
}];

/// Record of the family.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "crossbar",
    summary: "One non-blocking switch with a cable to each rank (star)",
    citation: "Clos, A Study of Non-Blocking Switching Networks, 1953",
    example: "crossbar:ranks=64,rate=12.5GB/s",
    options: || options::list(&RECORD, declared),
    build: |spec| Crossbar::parse(spec).map(Fabric::new),
    presets: PRESETS,
};

fn declared(options: &mut Options<'_, Crossbar>) -> Result<(u32, Wire, InNetwork), FabricError> {
    let (ranks, wire) =
        wiring::ranks_and_wire(options, |machine: &Crossbar| (machine.ranks, machine.wire))?;
    let is_half = wire.duplex == Duplex::Half;
    let in_network = wiring::switch_work(options, is_half, |machine| machine.in_network)?;
    Ok((ranks, wire, in_network))
}

impl Crossbar {
    /// Builds the machine of a specification such as `crossbar:ranks=64,rate=12.5GB/s`.
    pub fn parse(spec: &Spec) -> Result<Crossbar, FabricError> {
        let (ranks, wire, in_network) = options::read(spec, &RECORD, declared)?;
        let mut wiring = Wiring::new(wire.duplex);
        for rank in 0..ranks {
            wiring.add(rank, ranks, wire.link);
        }
        Ok(Crossbar {
            ranks,
            wire,
            in_network,
            wiring: Arc::new(wiring),
        })
    }
}

machine_over_links!(Crossbar, RECORD, declared);

impl Network for Crossbar {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        links.push(self.wiring.forth(source));
        links.push(self.wiring.back(destination));
    }

    fn switch_work(&self, vertex: u32) -> InNetwork {
        match vertex < self.ranks {
            true => InNetwork::None,
            false => self.in_network,
        }
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
