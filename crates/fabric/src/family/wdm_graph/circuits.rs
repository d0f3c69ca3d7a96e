//! Circuits of a graph of fibres: the time of a lightpath is the propagation delay of its links
//! plus the time of its bytes at the lowest rate of these links.

use super::{CONVERTED, GraphLight, LIGHT, WdmGraph};
use crate::fabric::circuits::{
    Capacity, Change, Circuit, Circuits, LightSharing, Lines, NoCircuit, Port,
    ReconfigurationCharge, Tuning, wavelength_policies,
};
use crate::fabric::light::{Hop, LightKind};
use crate::fabric::loss::{LossBudget, PassedLoss};
use crate::fabric::noise::Noise;
use crate::fabric::{Light, Transmission};
use crate::network::Network;
use crate::network::named_routes::{FABRIC_ROUTE, NamedRoutes};
use opticoll_base::units::{Time, UnitError};

impl WdmGraph {
    /// Returns the links of a hop's route. The ranks of the hop must exist.
    pub fn route_of(&self, hop: &Hop, routes: &NamedRoutes) -> Vec<u32> {
        let mut links = Vec::new();
        match hop.route {
            FABRIC_ROUTE => self.fibre_links().route(hop.from, hop.to, &mut links),
            route => links.extend_from_slice(routes.links(route)),
        }
        links
    }

    /// Returns the propagation delay of a route, whose links must exist.
    pub fn delay_of(&self, route: &[u32]) -> Result<Time, UnitError> {
        let links = self.fibre_links().links();
        let mut delays = route.iter().map(|&link| links[link as usize].latency);
        delays.try_fold(Time::ZERO, |sum, delay| sum.plus(delay))
    }
}

impl Circuits for WdmGraph {
    fn light(&self) -> &'static LightKind {
        &LIGHT
    }

    fn fibre_links(&self) -> Option<&dyn Network> {
        Some(WdmGraph::fibre_links(self))
    }

    fn carries_one_chunk(&self) -> bool {
        true
    }

    fn policies(&self) -> &'static [(&'static str, ReconfigurationCharge)] {
        wavelength_policies(self.converters)
    }

    fn lines(&self) -> Lines {
        Lines {
            shape: [
                ("link", WdmGraph::fibre_links(self).links().len() as u32),
                ("direction", 1),
            ],
            channels: self.fibres * self.wavelengths,
            capacity: Capacity::Slots(self.channels()),
            held_for_delay: true,
        }
    }

    fn transmission(&self) -> Transmission {
        self.transmission
    }

    fn delay(&self) -> Result<Time, UnitError> {
        let network = WdmGraph::fibre_links(self);
        let reach = self.reach.map_or(usize::MAX, |links| links as usize);
        let (mut longest, mut route) = (Time::ZERO, Vec::new());
        for rank in 1..network.ranks() {
            route.clear();
            network.route(0, rank, &mut route);
            if route.len() <= reach {
                longest = longest.max(self.delay_of(&route)?);
            }
        }
        Ok(longest)
    }

    fn transmission_of(&self, hop: &Hop, routes: &NamedRoutes) -> Transmission {
        let route = self.route_of(hop, routes);
        Transmission {
            rate: self.rate_of(&route, GraphLight::from(hop.light)),
            ..self.transmission
        }
    }

    fn is_degraded(&self) -> bool {
        let links = WdmGraph::fibre_links(self).links();
        !self.slower.is_empty()
            || self.reach_rates.len() > 1
            || links.iter().any(|link| link.rate < self.transmission.rate)
    }

    fn loss_budget(&self) -> Option<LossBudget> {
        self.budget
    }

    fn losses(&self, hop: &Hop, routes: &NamedRoutes, splits: u32) -> Vec<PassedLoss> {
        let Some(budget) = self.budget.as_ref() else {
            return Vec::new();
        };
        let route = self.route_of(hop, routes);
        self.losses_over(budget, &route, splits)
    }

    fn noise(&self, hop: &Hop, routes: &NamedRoutes, splits: u32) -> Option<Noise> {
        let route = self.route_of(hop, routes);
        self.noise_over(&route, splits)
    }

    fn splits(&self, tree: &[Hop], routes: &NamedRoutes) -> Vec<u32> {
        let own = tree.iter().map(|hop| self.route_of(hop, routes));
        let own: Vec<Vec<u32>> = own.collect();
        let own: Vec<&[u32]> = own.iter().map(Vec::as_slice).collect();
        self.splits_before(&own)
    }

    fn sharing(&self) -> LightSharing {
        match self.multicast {
            true => LightSharing::Tree {
                light: u32::MAX,
                branches: true,
            },
            false => LightSharing::SameCircuit,
        }
    }

    fn fibre(&self, light: Light) -> Option<(u32, u32)> {
        let fibre = u32::from(GraphLight::from(light).fibre);
        self.converters.then(|| (fibre, self.wavelengths_of(fibre)))
    }

    fn converters_per_vertex(&self) -> Option<u32> {
        self.converters_per_vertex
    }

    fn has_channel(&self, light: Light) -> bool {
        GraphLight::from(light).wavelength != CONVERTED
    }

    fn other_policies(&self) -> &'static str {
        match self.converters {
            true => "with converters a lightpath has no wavelength of its own; use on_change",
            false => {
                "two_tier is for the tunable lasers of a wss_grid, setup_teardown for the \
                 ports of a lightpath_grid; on a graph of fibres use per_port or on_change"
            }
        }
    }

    fn change(&self) -> Result<Change, UnitError> {
        Ok(Change {
            setup: self.reconfiguration,
            ..Change::default()
        })
    }

    fn circuit(&self, hop: &Hop, routes: &NamedRoutes) -> Result<Circuit, NoCircuit> {
        let network = WdmGraph::fibre_links(self);
        let absent = |problem| Err(NoCircuit::Absent(problem));
        if hop.from.max(hop.to) >= network.ranks() {
            return absent("an end is not a rank");
        }
        let light = GraphLight::from(hop.light);
        let converted = self.converters && light.wavelength == CONVERTED;
        let has_wavelength = converted || u32::from(light.wavelength) < self.wavelengths;
        if u32::from(light.fibre) >= self.fibres || !has_wavelength {
            return absent("its channel does not exist");
        }
        let route = self.route_of(hop, routes);
        if route.is_empty() {
            return absent("its route has no links");
        }
        let links = network.links().len() as u32;
        if route.iter().any(|&link| link >= links) {
            return absent("a link of its route does not exist");
        }
        Ok(Circuit {
            delay: self.delay_of(&route)?,
            lines: route.iter().copied().collect(),
        })
    }

    /// Assigns the transmitter for the lightpath's channel on its first link and the receiver for
    /// the channel on its last link. If the graph limits the transmitters or receivers of a rank to
    /// fewer than its channels, assigns any of these instead, which can be tuned to any channel of
    /// any link.
    fn tuning(&self, hop: &Hop, routes: &NamedRoutes) -> Tuning {
        let network = WdmGraph::fibre_links(self);
        let channels = u64::from(self.fibres * self.wavelengths);
        let route = self.route_of(hop, routes);
        let light = GraphLight::from(hop.light);
        let channel = match light.wavelength {
            CONVERTED => u32::MAX,
            wavelength => u32::from(light.fibre) * self.wavelengths + u32::from(wavelength),
        };
        let is_converted = light.wavelength == CONVERTED;
        let tuned = match is_converted {
            true => channels + u64::from(light.fibre),
            false => u64::from(channel),
        };
        // Converted light may take any wavelength of its fibre.
        let ports = match is_converted {
            true => self.wavelengths_of(light.fibre.into()),
            false => 1,
        };
        let port = |rank: u32, end: u64, link: Option<&u32>, limit: Option<u32>, other: u32| {
            let per_link = channels + u64::from(self.fibres);
            let link = link.copied().unwrap_or(0);
            let on_link = u64::from(link) * per_link + tuned;
            // A half-duplex link has a transmitter and a receiver at both ends.
            let is_first_end = network.ends(link).is_some_and(|(from, _)| from == rank);
            let end_of_link = u64::from(is_first_end) << 1 | end;
            Port {
                pool: match limit {
                    Some(_) => u64::from(rank) << 1 | end,
                    None => 1 << 63 | on_link << 2 | end_of_link,
                },
                size: limit.unwrap_or(ports),
                // A circuit is a channel of a route. The fabric's route depends on the other
                // rank.
                state: match hop.route {
                    FABRIC_ROUTE => 1 << 63 | u64::from(other) << 24 | tuned,
                    route => u64::from(route) << 24 | tuned,
                },
            }
        };
        let sent = self.channels_from(hop.from);
        let received = self.channels_to(hop.to);
        let transmitters = self.transmitters.filter(|&limit| limit < sent);
        let receivers = self.receivers.filter(|&limit| limit < received);
        Tuning {
            is_fixed: false,
            transmitter: port(hop.from, 0, route.first(), transmitters, hop.to),
            receiver: port(hop.to, 1, route.last(), receivers, hop.from),
            channel,
            plane: 0,
        }
    }
}
