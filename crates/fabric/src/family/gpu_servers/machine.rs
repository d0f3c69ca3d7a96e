//! Servers joined by links as a machine, and the parts of servers that an outside fabric joins.

use super::{GpuServers, RECORD, declared};
use crate::fabric::options;
use crate::fabric::part;
use crate::fabric::{Fabric, FabricError, FamilyRecord, Machine};
use crate::network::{InNetwork, Network};
use opticoll_base::spec::Spec;

impl GpuServers {
    /// Returns the part for `members` of one server, which is this server, or of one copy of the
    /// outside, which is this copy. Returns `None` for other members, and without an outside.
    pub(super) fn part_outside(&self, members: &[u32]) -> Option<Result<Fabric, FabricError>> {
        let outside = self.outside.as_ref()?;
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

    /// Returns the server or the copy of the outside that `members` share. Other members may use
    /// all links.
    fn part(&self, members: &[u32]) -> Result<Fabric, FabricError> {
        let members_part = || {
            let members = members.iter().copied();
            part::part_of_machine(&RECORD, &self.spec(), true, members)
        };
        self.part_outside(members).unwrap_or_else(members_part)
    }
}
