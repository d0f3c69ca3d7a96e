//! Network between servers, as the option `outside` specifies.
//!
//! There are two layouts. With `rails`, GPU r of every server is on rail r, and each rail is a
//! separate copy of the outside fabric that joins the servers. With `flat`, one copy of the outside
//! fabric joins all GPUs.

use crate::fabric::{Fabric, FabricError};
use crate::network::{Link, Network, Sharing, Wiring, vertices};
use opticoll_base::names::same_name;
use opticoll_base::spec::{Spec, SpecError, flat, nested};
use opticoll_base::units::{Rate, Time};

/// Copies of the outside fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// One copy for each GPU of a server. It joins the GPUs with the same number.
    Rails,
    /// One copy, which joins all GPUs.
    Flat,
}

/// Fabric that joins servers, and its copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside {
    /// One copy of the fabric.
    pub fabric: Fabric,
    /// Copies of the fabric.
    pub layout: Layout,
    /// Number of GPUs of a server.
    pub per_box: u32,
}

impl Outside {
    /// Reads the options `outside` and `layout` for `boxes` servers of `per_box` GPUs.
    pub(super) fn read(
        spec: &Spec,
        [boxes, per_box]: [u32; 2],
    ) -> Result<Option<Outside>, FabricError> {
        let layout = match spec.option("layout").unwrap_or("rails") {
            word if same_name(word, "rails") => Layout::Rails,
            word if same_name(word, "flat") => Layout::Flat,
            _ => return Err(spec.refuse("layout", "must be rails or flat").into()),
        };
        let Some(text) = spec.option("outside") else {
            return match spec.option("layout") {
                Some(_) => Err(spec.refuse("layout", "needs outside=...").into()),
                None => Ok(None),
            };
        };
        let ends = match layout {
            Layout::Rails => boxes,
            Layout::Flat => boxes * per_box,
        };
        let refuse = |problem: String| FabricError::from(spec.refuse("outside", problem));
        if text == "yes" || text.contains(':') {
            let problem = "write / in place of : and commas, as in outside=wdm_ring/wavelengths=8";
            return Err(refuse(problem.into()));
        }
        let named = nested(text)?;
        let fabric = match named.option("ranks") {
            Some(_) => Fabric::parse(&named.to_string()),
            None => match Fabric::parse(&named.clone().with("ranks", ends).to_string()) {
                Err(FabricError::Spec(SpecError::UnknownOption { key, .. })) if key == "ranks" => {
                    Fabric::parse(&named.to_string())
                }
                parsed => parsed,
            },
        };
        let fabric = fabric.map_err(|problem| refuse(problem.to_string()))?;
        if boxes < 2 {
            return Err(refuse("needs two servers or more, such as boxes=2".into()));
        }
        if fabric.ranks() != ends {
            let joined = match layout {
                Layout::Rails => "servers",
                Layout::Flat => "GPUs",
            };
            let problem = format!("joins {} ranks, not {ends} {joined}", fabric.ranks());
            return Err(refuse(problem));
        }
        if fabric.has_light()
            && fabric
                .circuits()
                .and_then(|own| own.light().packet())
                .is_none()
        {
            let problem = "use a wdm_ring, a graph of fibres such as wdm_torus, a circuit_switch, \
                           or a fabric with links";
            return Err(refuse(problem.into()));
        }
        if fabric
            .circuits()
            .is_some_and(|own| own.side_network().is_some())
        {
            return Err(refuse(
                "has a packet network of its own: leave out packet_rate".into(),
            ));
        }
        Ok(Some(Outside {
            fabric,
            layout,
            per_box,
        }))
    }

    /// Adds the options `outside` and `layout` to a specification.
    pub(super) fn print(&self, spec: Spec) -> Spec {
        let spec = spec.with("outside", flat(&self.fabric.to_string()));
        match self.layout {
            Layout::Rails => spec,
            Layout::Flat => spec.with("layout", "flat"),
        }
    }

    /// Returns the number of copies.
    pub fn copies(&self) -> u32 {
        match self.layout {
            Layout::Rails => self.per_box,
            Layout::Flat => 1,
        }
    }

    /// Returns the copy that a GPU is on, and its rank on this copy.
    pub fn place(&self, rank: u32) -> (u32, u32) {
        match self.layout {
            Layout::Rails => (rank % self.per_box, rank / self.per_box),
            Layout::Flat => (0, rank),
        }
    }

    /// Returns the GPU with rank `rank` on copy `copy`.
    pub fn rank(&self, copy: u32, rank: u32) -> u32 {
        match self.layout {
            Layout::Rails => rank * self.per_box + copy,
            Layout::Flat => rank,
        }
    }

    /// Returns whether two GPUs are in the same server.
    pub fn same_box(&self, one: u32, other: u32) -> bool {
        one / self.per_box == other / self.per_box
    }
}

/// Links of the servers and of all copies of an outside fabric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Copies {
    wiring: Wiring,
    /// Index of the link from rank 0 to its NIC; the link back follows, then those of other ranks.
    first_cable: u32,
    /// Index of the first link of copy 0.
    first_link: u32,
    /// Number of the first vertex of copy 0. The first vertices of a copy are NICs of ranks.
    first_vertex: u32,
}

impl Copies {
    /// Adds the links of all copies to `servers`, the links within the servers. Vertices of the
    /// servers have numbers below `first_vertex`. The NIC of a rank is the rank's vertex of the
    /// copy. The cable between a rank and its NIC has the greatest total rate of any rank's links,
    /// so it is never slower than the NIC.
    pub(super) fn new(
        outside: &Outside,
        network: &dyn Network,
        servers: &Wiring,
        first_vertex: u32,
    ) -> Copies {
        let mut wiring = servers.clone();
        let per_copy = vertices(network);
        let first_cable = wiring.ends().count() as u32;
        let cable = Link {
            rate: total_rate(network),
            latency: Time::ZERO,
            sharing: Sharing::Shared,
        };
        for rank in 0..outside.copies() * network.ranks() {
            let (copy, own) = outside.place(rank);
            let nic = first_vertex + copy * per_copy + own;
            wiring.add_link(rank, nic, cable, false);
            wiring.add_link(nic, rank, cable, false);
        }
        let first_link = wiring.ends().count() as u32;
        for copy in 0..outside.copies() {
            let first = first_vertex + copy * per_copy;
            for ((from, to, both), link) in network.wiring().ends().zip(network.links()) {
                wiring.add_link(first + from, first + to, *link, both);
            }
        }
        Copies {
            wiring,
            first_cable,
            first_link,
            first_vertex,
        }
    }

    pub(super) fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    /// Returns the values of the links of all copies, copy by copy, of the values of all links.
    pub(super) fn links_of_copies<'a>(&self, values: &'a [u64]) -> &'a [u64] {
        values.get(self.first_link as usize..).unwrap_or_default()
    }

    /// Appends the route between two ranks of one copy: cable, links of the copy, cable.
    pub(super) fn route(
        &self,
        outside: &Outside,
        network: &dyn Network,
        [source, destination]: [u32; 2],
        links: &mut Vec<u32>,
    ) {
        let [from, to] = [source, destination].map(|rank| outside.place(rank).1);
        let mut own = Vec::new();
        network.route(from, to, &mut own);
        links.extend(self.route_over(outside, network, [source, destination], &own));
    }

    /// Returns the route between two ranks of one copy over `own`, which are links of a copy.
    pub(super) fn route_over(
        &self,
        outside: &Outside,
        network: &dyn Network,
        [source, destination]: [u32; 2],
        own: &[u32],
    ) -> Vec<u32> {
        let (copy, _) = outside.place(source);
        let first = self.first_link + copy * network.links().len() as u32;
        let cables = [2 * source, 2 * destination + 1].map(|cable| self.first_cable + cable);
        let own = own.iter().map(|link| first + link);
        cables[..1]
            .iter()
            .copied()
            .chain(own)
            .chain([cables[1]])
            .collect()
    }

    /// Returns the name of a vertex of a copy, or `None` for a vertex of the servers.
    pub(super) fn vertex_name(
        &self,
        outside: &Outside,
        network: &dyn Network,
        vertex: u32,
    ) -> Option<String> {
        let own = vertex.checked_sub(self.first_vertex)?;
        let per_copy = vertices(network);
        let (copy, own) = (own / per_copy, own % per_copy);
        if own < network.ranks() {
            return Some(format!("NIC of rank {}", outside.rank(copy, own)));
        }
        let name = network.vertex_name(own);
        Some(match outside.layout {
            Layout::Rails => format!("{name} of rail {copy}"),
            Layout::Flat => name,
        })
    }
}

/// Returns the greatest total rate of the links that leave, or enter, a rank.
fn total_rate(network: &dyn Network) -> Rate {
    let mut rates = vec![[0u64; 2]; network.ranks() as usize];
    for ((from, to, both), link) in network.wiring().ends().zip(network.links()) {
        let ways = [(from, 0), (to, 1), (to, 0), (from, 1)];
        for (rank, way) in ways.into_iter().take(if both { 4 } else { 2 }) {
            if let Some(rates) = rates.get_mut(rank as usize) {
                rates[way] = rates[way].saturating_add(link.rate.bits_per_second());
            }
        }
    }
    let most = rates.into_iter().flatten().max().unwrap_or(0).max(1);
    Rate::from_bits_per_second(most).expect("at least 1 b/s")
}
