//! Servers joined by light: the circuits of all copies of the outside fabric, and a packet network
//! within each server.
//!
//! Light leads between the ranks of a copy. Links, lines and ports of copy c follow those of copy
//! c - 1. The packet network of a server stands for its switch: each GPU sends and receives at the
//! rate of its link to the switch, shared by all its messages, and a message takes the latency of
//! both links.

use super::outside::{Layout, Outside};
use super::{GpuServers, RECORD, declared};
use crate::bill::{Bill, MovedBytes};
use crate::fabric::circuits::{
    Change, Circuit, Circuits, LightSharing, LineRanges, Lines, NoCircuit, Port,
    ReconfigurationCharge, Tuning,
};
use crate::fabric::light::{Hop, Light, LightKind};
use crate::fabric::loss::{LossBudget, PassedLoss};
use crate::fabric::noise::Noise;
use crate::fabric::options;
use crate::fabric::{Fabric, FabricError, FamilyRecord, Machine, Transmission};
use crate::network::named_routes::{FABRIC_ROUTE, NamedRoutes};
use crate::network::{Duplex, Network, Wiring, vertices};
use opticoll_base::names::plural;
use opticoll_base::spec::{Spec, flat};
use opticoll_base::units::{Rate, Time, UnitError};

/// Servers, and the circuits that join them.
#[derive(Debug, Clone, PartialEq)]
pub struct ServersOnLight {
    servers: GpuServers,
    outside: Outside,
    /// Fibres of all copies, if the outside is a graph of fibres.
    fibres: Option<Fibres>,
    rate: Rate,
    /// Delay of a message within a server.
    latency: Time,
}

/// Fibres of all copies of a graph of fibres.
#[derive(Debug, Clone, PartialEq)]
struct Fibres {
    wiring: Wiring,
    outside: Outside,
    links_per_copy: u32,
}

impl ServersOnLight {
    /// Returns the machine if light joins the servers.
    pub(super) fn new(servers: &GpuServers) -> Option<ServersOnLight> {
        let outside = servers
            .declared
            .outside
            .clone()
            .filter(|outside| outside.fabric.has_light())?;
        let rate = servers.declared.model.switch_rate()?.parse().ok()?;
        let latency = servers.inside_latency();
        let fibres = outside.fabric.circuits()?.fibre_links();
        let fibres = fibres.map(|network| Fibres::new(network, &outside));
        Some(ServersOnLight {
            servers: servers.clone(),
            fibres,
            outside,
            rate,
            latency,
        })
    }

    /// Returns the fabric between the servers, and its copies.
    pub fn outside(&self) -> &Outside {
        &self.outside
    }

    /// Returns the delay of a message within a server.
    pub fn inside_latency(&self) -> Time {
        self.latency
    }

    /// Returns the light of messages within a server.
    pub fn packet(&self) -> Light {
        let kind = self.light_circuits().light();
        kind.packet().expect("checked when the options were read")
    }

    fn light_circuits(&self) -> &dyn Circuits {
        self.outside
            .fabric
            .circuits()
            .expect("light joins the servers")
    }

    /// Returns the hop on its copy, and the number of the copy. Returns `None` if the two ranks
    /// are not on the same copy.
    pub fn hop_on_copy(&self, hop: &Hop) -> Option<(u32, Hop)> {
        let [(copy, from), (other, to)] = [hop.from, hop.to].map(|rank| self.outside.place(rank));
        (copy == other).then_some((copy, Hop { from, to, ..*hop }))
    }

    /// Returns the hops on their copies, each with its copy, and their routes as links of a copy.
    /// Messages within a server are `None`.
    fn on_copies(
        &self,
        hops: &[Hop],
        routes: &NamedRoutes,
    ) -> (Vec<Option<(u32, Hop)>>, NamedRoutes) {
        let mut own_routes = NamedRoutes::default();
        let on_copy = |(place, hop): (usize, &Hop)| {
            let (copy, own) = self
                .hop_on_copy(hop)
                .filter(|_| hop.light != self.packet())?;
            let (Some(fibres), true) = (&self.fibres, hop.route != FABRIC_ROUTE) else {
                return Some((copy, own));
            };
            let links = routes.links(hop.route).iter();
            let links: Vec<u32> = links.map(|link| link % fibres.links_per_copy).collect();
            own_routes.assign(place, &links);
            let route = own_routes.number(place);
            Some((copy, Hop { route, ..own }))
        };
        let hops = hops.iter().enumerate().map(on_copy).collect();
        (hops, own_routes)
    }

    /// Returns the number of the copy of a hop, the hop on this copy, and its route as links of a
    /// copy; `None` for a message within a server.
    fn on_copy(&self, hop: &Hop, routes: &NamedRoutes) -> Option<(u32, Hop, NamedRoutes)> {
        let (hops, routes) = self.on_copies(std::slice::from_ref(hop), routes);
        let (copy, own) = hops.first().copied().flatten()?;
        Some((copy, own, routes))
    }
}

impl Fibres {
    fn new(network: &dyn Network, outside: &Outside) -> Fibres {
        let (ranks, per_copy) = (network.ranks(), vertices(network));
        let mut wiring = Wiring::new(Duplex::Half);
        for copy in 0..outside.copies() {
            // The ranks are the first vertices; vertices without a rank follow, copy by copy.
            let place = |vertex: u32| match vertex < ranks {
                true => outside.rank(copy, vertex),
                false => {
                    let all_ranks = outside.copies() * ranks;
                    all_ranks + copy * (per_copy - ranks) + vertex - ranks
                }
            };
            for ((from, to, both), link) in network.wiring().ends().zip(network.links()) {
                wiring.add_link(place(from), place(to), *link, both);
            }
        }
        Fibres {
            wiring,
            outside: outside.clone(),
            links_per_copy: network.links().len() as u32,
        }
    }

    fn copy(&self) -> &dyn Network {
        let circuits = self.outside.fabric.circuits();
        circuits
            .and_then(Circuits::fibre_links)
            .expect("a graph of fibres")
    }
}

impl Network for Fibres {
    fn ranks(&self) -> u32 {
        self.outside.copies() * self.copy().ranks()
    }

    fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    /// Appends the route of light. There is none between two copies.
    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        let [(copy, from), (other, to)] =
            [source, destination].map(|rank| self.outside.place(rank));
        if copy != other {
            return;
        }
        let before = links.len();
        self.copy().route(from, to, links);
        links[before..]
            .iter_mut()
            .for_each(|link| *link += copy * self.links_per_copy);
    }
}

impl Machine for ServersOnLight {
    fn record(&self) -> &'static FamilyRecord {
        &RECORD
    }

    fn spec(&self) -> Spec {
        options::print(&self.servers, &RECORD, declared)
    }

    fn nature(&self) -> &'static str {
        "servers joined by light"
    }

    fn accelerator(&self) -> Option<&'static str> {
        Machine::accelerator(&self.servers)
    }

    fn bill(&self) -> Bill {
        Machine::bill(&self.servers)
    }

    fn bill_of_bytes(&self, moved: &MovedBytes<'_>) -> Bill {
        let packets = 0;
        let outside = self
            .outside
            .fabric
            .bill_of_bytes(&MovedBytes { packets, ..*moved });
        self.servers
            .bill_of_server_bytes(moved.packets)
            .with_copies(1u32, &outside)
    }

    fn ranks(&self) -> u32 {
        Network::ranks(&self.servers)
    }

    /// Returns the part of a server for members of one server, the part of the outside for members
    /// of one copy, or fewer servers for whole servers on rails. Refuses other members.
    fn part(&self, members: &[u32]) -> Result<Fabric, FabricError> {
        if let Some(part) = self.servers.part_outside(members) {
            return part;
        }
        let (spec, per_box) = (self.spec(), self.outside.per_box);
        let servers = members.iter().step_by(per_box as usize);
        let servers: Vec<u32> = servers.map(|rank| rank / per_box).collect();
        let gpus = |server: &u32| server * per_box..(server + 1) * per_box;
        let is_whole = servers.iter().flat_map(gpus).eq(members.iter().copied());
        if !is_whole || self.outside.layout == Layout::Flat {
            let problem = "a group of ranks needs GPUs of one server or of one rail, or whole \
                           servers on rails";
            return Err(spec.refuse("outside", problem).into());
        }
        let part = self.outside.fabric.part(&servers)?;
        let spec = spec.without("boxes").without("outside");
        let spec = spec.with("boxes", servers.len());
        Fabric::parse(&spec.with("outside", flat(&part.to_string())).to_string())
    }

    fn description(&self) -> String {
        let layout = match self.outside.copies() {
            1 => "joined by".to_owned(),
            rails => format!("{rails} rails, each"),
        };
        format!(
            "{}, {} each within a server; {layout} {}: {}",
            plural(self.ranks() as usize, "rank"),
            self.rate.words(),
            self.outside.fabric.family(),
            self.outside.fabric.description()
        )
    }

    fn injection_bandwidth(&self) -> u128 {
        u128::from(self.rate.bits_per_second()) + self.outside.fabric.injection_bandwidth()
    }

    fn latency(&self) -> Time {
        self.outside.fabric.latency().max(self.latency)
    }

    fn group_size(&self) -> Option<u32> {
        Some(self.outside.per_box)
    }

    fn circuits(&self) -> Option<&dyn Circuits> {
        Some(self)
    }
}

impl Circuits for ServersOnLight {
    fn light(&self) -> &'static LightKind {
        self.light_circuits().light()
    }

    fn carries_one_chunk(&self) -> bool {
        self.light_circuits().carries_one_chunk()
    }

    fn policies(&self) -> &'static [(&'static str, ReconfigurationCharge)] {
        self.light_circuits().policies()
    }

    /// Returns the lines of all copies. Messages within servers occupy no line.
    fn lines(&self) -> Lines {
        let lines = self.light_circuits().lines();
        let [(row, rows), column] = lines.shape;
        Lines {
            shape: [(row, rows * self.outside.copies()), column],
            ..lines
        }
    }

    fn transmission(&self) -> Transmission {
        self.light_circuits().transmission()
    }

    fn transmission_of(&self, hop: &Hop, routes: &NamedRoutes) -> Transmission {
        match self.on_copy(hop, routes) {
            Some((_, hop, routes)) => self.light_circuits().transmission_of(&hop, &routes),
            None => Transmission::at(self.rate),
        }
    }

    fn is_degraded(&self) -> bool {
        self.light_circuits().is_degraded()
    }

    fn delay(&self) -> Result<Time, UnitError> {
        self.light_circuits().delay()
    }

    fn fibre_links(&self) -> Option<&dyn Network> {
        self.fibres.as_ref().map(|fibres| fibres as &dyn Network)
    }

    fn startup(&self) -> Time {
        self.light_circuits().startup()
    }

    fn cuts_through(&self) -> bool {
        self.light_circuits().cuts_through()
    }

    fn side_network(&self) -> Option<(Light, Transmission)> {
        Some((self.packet(), Transmission::at(self.rate)))
    }

    fn loss_budget(&self) -> Option<LossBudget> {
        self.light_circuits().loss_budget()
    }

    fn losses(&self, hop: &Hop, routes: &NamedRoutes, splits: u32) -> Vec<PassedLoss> {
        let own = self.on_copy(hop, routes);
        own.map_or_else(Vec::new, |(_, hop, routes)| {
            self.light_circuits().losses(&hop, &routes, splits)
        })
    }

    fn noise(&self, hop: &Hop, routes: &NamedRoutes, splits: u32) -> Option<Noise> {
        let (_, hop, routes) = self.on_copy(hop, routes)?;
        self.light_circuits().noise(&hop, &routes, splits)
    }

    fn splits(&self, tree: &[Hop], routes: &NamedRoutes) -> Vec<u32> {
        let (hops, routes) = self.on_copies(tree, routes);
        let hops: Option<Vec<Hop>> = hops.iter().map(|own| own.map(|(_, hop)| hop)).collect();
        match hops {
            Some(hops) => self.light_circuits().splits(&hops, &routes),
            None => vec![0; tree.len()],
        }
    }

    fn sharing(&self) -> LightSharing {
        self.light_circuits().sharing()
    }

    fn has_channel(&self, light: Light) -> bool {
        light == self.packet() || self.light_circuits().has_channel(light)
    }

    fn fibre(&self, light: Light) -> Option<(u32, u32)> {
        self.light_circuits()
            .fibre(light)
            .filter(|_| light != self.packet())
    }

    fn converters_per_vertex(&self) -> Option<u32> {
        self.light_circuits().converters_per_vertex()
    }

    fn other_policies(&self) -> &'static str {
        self.light_circuits().other_policies()
    }

    fn change(&self) -> Result<Change, UnitError> {
        self.light_circuits().change()
    }

    fn circuit(&self, hop: &Hop, routes: &NamedRoutes) -> Result<Circuit, NoCircuit> {
        let absent = |problem| Err(NoCircuit::Absent(problem));
        if hop.from.max(hop.to) >= self.ranks() {
            return absent("a rank does not exist");
        }
        if let Some((copy, hop, routes)) = self.on_copy(hop, routes) {
            let circuit = self.light_circuits().circuit(&hop, &routes)?;
            let lines_per_copy = self.light_circuits().lines().count() as u32;
            return Ok(Circuit {
                lines: circuit.lines.moved(copy * lines_per_copy),
                ..circuit
            });
        }
        if hop.light != self.packet() {
            return absent("no light leads between two rails");
        }
        if !self.outside.same_box(hop.from, hop.to) {
            return absent("no packet network joins two servers");
        }
        Ok(Circuit {
            delay: self.latency,
            lines: LineRanges::default(),
        })
    }

    fn tuning(&self, hop: &Hop, routes: &NamedRoutes) -> Tuning {
        let Some((copy, hop, routes)) = self.on_copy(hop, routes) else {
            let end = |rank: u32, end: u64| Port {
                pool: u64::from(rank) << 32 | end,
                size: 1,
                state: 0,
            };
            return Tuning {
                transmitter: end(hop.from, 0),
                receiver: end(hop.to, 1),
                channel: 0,
                plane: u32::MAX,
                is_fixed: true,
            };
        };
        // The copy is in bits 56 to 62, which no family with light uses. These bits are 0 for ports
        // within servers.
        let on_copy = |port: Port| Port {
            pool: port.pool | u64::from(copy + 1) << 56,
            ..port
        };
        let tuning = self.light_circuits().tuning(&hop, &routes);
        Tuning {
            transmitter: on_copy(tuning.transmitter),
            receiver: on_copy(tuning.receiver),
            plane: tuning
                .plane
                .saturating_mul(self.outside.copies())
                .saturating_add(copy),
            ..tuning
        }
    }
}
