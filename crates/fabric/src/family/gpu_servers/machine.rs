//! Servers joined by links as a machine, and the parts of servers that an outside fabric joins.

use std::collections::BTreeMap;

use super::{GpuServers, Model, RECORD, declared};
use crate::bill;
use crate::bill::{AT_RANKS, AT_SWITCHES, Bill, PartKind};
use crate::fabric::options;
use crate::fabric::part;
use crate::fabric::{Fabric, FabricError, FamilyRecord, Machine};
use crate::network::{InNetwork, Network};
use opticoll_base::spec::Spec;
use opticoll_base::units::Rate;

impl GpuServers {
    /// Returns the part of a server for members that are all in this server, or the part of the
    /// outside for members that are all on one copy. Returns `None` for other members, and without
    /// an outside.
    pub(super) fn part_outside(&self, members: &[u32]) -> Option<Result<Fabric, FabricError>> {
        let outside = self.declared.outside.as_ref()?;
        let first = *members.first()?;
        if members.iter().all(|&rank| outside.same_box(first, rank)) {
            let mut spec = self.spec();
            for option in ["boxes", "outside", "layout"] {
                spec = spec.without(option);
            }
            if outside.fabric.has_light() {
                spec = spec.with("in_network", InNetwork::None);
                spec = spec.with("library", "none");
            }
            let numbers: Vec<u32> = members.iter().map(|rank| rank % outside.per_box).collect();
            let server = Fabric::parse(&spec.to_string());
            return Some(server.and_then(|server| server.part(&numbers)));
        }
        let places = members.iter().map(|&rank| outside.place(rank));
        let places: Vec<(u32, u32)> = places.collect();
        if places.iter().any(|(copy, _)| *copy != places[0].0) {
            return None;
        }
        let ranks: Vec<u32> = places.into_iter().map(|(_, rank)| rank).collect();
        Some(outside.fabric.part(&ranks))
    }
}

impl GpuServers {
    /// Returns the GPUs, and the parts of the model's cables. Cables within a server are of copper,
    /// and the cable between a GPU and its NIC is no part. Each other cable joins servers: it has a
    /// transceiver at both ends, and a NIC at each end that is no switch.
    fn bill_of_servers(&self) -> Bill {
        let (ranks, per_box) = (Network::ranks(&self.graph), self.declared.model.ranks());
        let gpu = PartKind::new(self.declared.model.gpu());
        let mut bill = Bill::default().with(ranks.into(), gpu);
        let server_switches = match self.declared.model.switch_rate() {
            Some(_) => self.declared.boxes,
            None => 0,
        };
        let first_nic = ranks + server_switches;
        let has_nics = self.declared.boxes > 1
            && self
                .declared
                .model
                .network()
                .is_some_and(|(_, _, nics)| nics);
        let first_switch = first_nic + if has_nics { ranks } else { 0 };
        // The GPU or the server of a vertex, or `None` for switches between servers.
        let server = |vertex: u32| match vertex {
            rank if rank < ranks => Some(rank / per_box),
            switch if switch < first_nic => Some(switch - ranks),
            nic if nic < first_switch => Some((nic - first_nic) / per_box),
            _ => None,
        };
        let is_nic = |vertex: u32| (first_nic..first_switch).contains(&vertex);
        let mut ports: BTreeMap<u32, (u32, Rate)> = BTreeMap::new();
        for ((first, second, rate), count) in bill::cables(&self.graph) {
            for end in [first, second] {
                if end >= first_switch || (ranks..first_nic).contains(&end) {
                    let (ports, fastest) = ports.entry(end).or_insert((0, rate));
                    *ports += count as u32;
                    *fastest = (*fastest).max(rate);
                }
            }
            match (server(first), server(second)) {
                (Some(one), Some(other)) if one == other => {
                    let is_copper = !is_nic(first) && !is_nic(second);
                    let cables = if is_copper { count } else { 0 };
                    bill = bill.with(cables, PartKind::new("copper_cable"));
                }
                ends => {
                    let at_servers = [ends.0, ends.1].into_iter().flatten().count() as u64;
                    let part = |name| PartKind::new(name).rate(rate);
                    bill = bill
                        .with(count * at_servers, part("transceiver").at(AT_RANKS))
                        .with(
                            count * (2 - at_servers),
                            part("transceiver").at(AT_SWITCHES),
                        )
                        .with(count, PartKind::new("fibre_cable"))
                        .with(count * at_servers, part("nic").at(AT_RANKS));
                }
            }
        }
        ports
            .into_iter()
            .fold(bill, |bill, (switch, (ports, rate))| {
                let name = match switch < first_nic {
                    true => "server_switch",
                    false => "packet_switch",
                };
                bill.with(1, PartKind::new(name).ports(ports).rate(rate))
            })
    }
}

impl Model {
    /// Returns the component of a GPU of the servers.
    fn gpu(self) -> &'static str {
        match self {
            Model::DgxH100 => "gpu_h100",
            Model::DgxB200 => "gpu_b200",
            Model::Nvl72 => "gpu_gb200",
            Model::DgxA100 | Model::Dgx1 | Model::Ndv2 | Model::Dgx2 => "gpu",
            Model::Mi250 | Model::L40s => "gpu",
        }
    }
}

impl Machine for GpuServers {
    fn record(&self) -> &'static FamilyRecord {
        &RECORD
    }

    fn spec(&self) -> Spec {
        options::print(self, &RECORD, declared)
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(self)
    }

    /// Returns the parts of the servers, and those of all copies of the outside.
    fn bill(&self) -> Bill {
        let bill = self.bill_of_servers();
        self.declared.outside.iter().fold(bill, |bill, outside| {
            bill.with_copies(outside.copies().into(), &outside.fabric.bill())
        })
    }

    /// Returns the part of a server, or of the outside, if all members are in one server or on one
    /// copy. Otherwise returns a part with all links.
    fn part(&self, members: &[u32]) -> Result<Fabric, FabricError> {
        let members_part = || {
            let members = members.iter().copied();
            part::part_of_machine(&RECORD, &self.spec(), true, members)
        };
        self.part_outside(members).unwrap_or_else(members_part)
    }
}
