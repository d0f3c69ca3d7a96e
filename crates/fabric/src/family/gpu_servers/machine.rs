//! Servers joined by links as a machine, and the parts of servers that an outside fabric joins.

use super::{GpuServers, Model, RECORD, declared};
use crate::bill::{AT_RANKS, AT_SWITCHES, Bill, Cabling, MovedBytes, PartKind};
use crate::fabric::options;
use crate::fabric::part;
use crate::fabric::{Fabric, FabricError, FamilyRecord, Machine};
use crate::network::{InNetwork, Network};
use opticoll_base::spec::Spec;

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

/// Parts of servers and of the links between them. Cables within a server are of copper, and the
/// cable between a GPU and its NIC is no part. Each other cable joins servers: it has a transceiver
/// at both ends, and a NIC at each end that is no switch.
struct ServerCables {
    /// Number of GPUs of a server.
    per_server: u32,
    ranks: u32,
    /// First vertex that is a NIC. The switches of servers are before it.
    first_nic: u32,
    /// First vertex that is a switch between servers.
    first_switch: u32,
}

impl ServerCables {
    fn of(servers: &GpuServers) -> ServerCables {
        let (ranks, declared) = (Network::ranks(&servers.graph), &servers.declared);
        let first_nic = ranks + declared.model.switch_rate().map_or(0, |_| declared.boxes);
        let has_nics =
            declared.boxes > 1 && declared.model.network().is_some_and(|(_, _, nics)| nics);
        ServerCables {
            per_server: declared.model.ranks(),
            ranks,
            first_nic,
            first_switch: first_nic + if has_nics { ranks } else { 0 },
        }
    }

    /// Returns the server of a vertex, or `None` for switches between servers.
    fn server(&self, vertex: u32) -> Option<u32> {
        match vertex {
            rank if rank < self.ranks => Some(rank / self.per_server),
            switch if switch < self.first_nic => Some(switch - self.ranks),
            nic if nic < self.first_switch => Some((nic - self.first_nic) / self.per_server),
            _ => None,
        }
    }

    fn is_nic(&self, vertex: u32) -> bool {
        (self.first_nic..self.first_switch).contains(&vertex)
    }

    fn within_server(&self, first: u32, second: u32) -> bool {
        self.server(first).is_some() && self.server(first) == self.server(second)
    }
}

impl Cabling for ServerCables {
    fn cable(&self, first: u32, second: u32) -> Option<&'static str> {
        match self.within_server(first, second) {
            true if self.is_nic(first) || self.is_nic(second) => None,
            true => Some("copper_cable"),
            false => Some("fibre_cable"),
        }
    }

    fn parts_at(&self, end: u32, other: u32) -> Vec<PartKind> {
        let transceiver = PartKind::new("transceiver");
        match self.server(end) {
            _ if self.within_server(end, other) => Vec::new(),
            Some(_) => vec![transceiver.at(AT_RANKS), PartKind::new("nic").at(AT_RANKS)],
            None => vec![transceiver.at(AT_SWITCHES)],
        }
    }

    fn switch(&self, vertex: u32) -> Option<&'static str> {
        match vertex {
            vertex if vertex >= self.first_switch => Some("packet_switch"),
            vertex if (self.ranks..self.first_nic).contains(&vertex) => Some("server_switch"),
            _ => None,
        }
    }
}

impl GpuServers {
    /// Returns the parts that messages between two GPUs of a server pass, in halves of bytes.
    pub(super) fn bill_of_server_bytes(&self, bytes: u128) -> Bill {
        let mut route = Vec::new();
        self.graph.route(0, 1, &mut route);
        let mut links = vec![0; self.graph.links().len()];
        route.iter().for_each(|link| links[*link as usize] = 1);
        let of_a_byte = Bill::default().with_bytes(&self.graph, &ServerCables::of(self), &links);
        Bill::default().with_copies(bytes, &of_a_byte)
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

    /// Returns the name of the accelerator of a rank among the devices of training. The GPUs of a
    /// GB200 NVL72 are B200.
    fn accelerator(self) -> Option<&'static str> {
        match self {
            Model::DgxH100 => Some("h100"),
            Model::DgxB200 | Model::Nvl72 => Some("b200"),
            Model::DgxA100 => Some("a100"),
            Model::Dgx1 | Model::Ndv2 | Model::Dgx2 => Some("v100"),
            Model::Mi250 | Model::L40s => None,
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

    fn accelerator(&self) -> Option<&'static str> {
        self.declared.model.accelerator()
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(self)
    }

    /// Returns the parts of the servers, and those of all copies of the outside.
    fn bill(&self) -> Bill {
        let gpu = PartKind::new(self.declared.model.gpu());
        let gpus = Bill::default().with(Network::ranks(&self.graph), gpu);
        let bill = gpus.with_cables(&self.graph, &ServerCables::of(self));
        self.declared.outside.iter().fold(bill, |bill, outside| {
            bill.with_copies(outside.copies(), &outside.fabric.bill())
        })
    }

    fn bill_of_bytes(&self, moved: &MovedBytes<'_>) -> Bill {
        let bill = Bill::default().with_bytes(&self.graph, &ServerCables::of(self), moved.links);
        let (Some(outside), Some(copies)) = (&self.declared.outside, &self.copies) else {
            return bill;
        };
        let per_copy = outside
            .fabric
            .network()
            .map_or(0, |copy| copy.links().len());
        let links = copies.links_of_copies(moved.links).chunks(per_copy.max(1));
        links.fold(bill, |bill, links| {
            let of_copy = outside
                .fabric
                .bill_of_bytes(&MovedBytes { links, ..*moved });
            bill.with_copies(1u32, &of_copy)
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
