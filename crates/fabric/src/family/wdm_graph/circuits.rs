//! Circuits of a graph of fibres: the time of a lightpath is the propagation delay of its links
//! plus the time of its bytes at the lowest rate of these links.

use super::{CONVERTED, GraphLight, LIGHT, WdmGraph};
use crate::fabric::circuits::{
    Capacity, Change, Circuit, Circuits, LightSharing, Lines, NoCircuit, Port,
    ReconfigurationCharge, Tuning,
};
use crate::fabric::light::{Hop, LightKind};
use crate::fabric::{Light, Transmission};
use crate::network::Network;
use crate::network::named_routes::{FABRIC_ROUTE, NamedRoutes};
use opticoll_base::units::{Rate, Time, UnitError};

impl WdmGraph {
    /// Stores the links of a hop's route in `links`. The ranks of the hop must exist.
    pub fn route_of(&self, hop: &Hop, routes: &NamedRoutes, links: &mut Vec<u32>) {
        links.clear();
        match hop.route {
            FABRIC_ROUTE => self.fibre_links().route(hop.from, hop.to, links),
            route => links.extend_from_slice(routes.links(route)),
        }
    }

    fn rates(&self) -> impl Iterator<Item = Rate> {
        self.fibre_links().links().iter().map(|link| link.rate)
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
        let policies = &[
            ("every_step", ReconfigurationCharge::EverySlot),
            ("on_change", ReconfigurationCharge::NewConfiguration),
            ("free", ReconfigurationCharge::Never),
            ("per_port", ReconfigurationCharge::ChangedPort),
        ];
        // With converters, a lightpath has no single wavelength to which a port could be tuned.
        match self.converters {
            true => &policies[..3],
            false => policies,
        }
    }

    fn lines(&self) -> Lines {
        Lines {
            shape: [
                ("link", WdmGraph::fibre_links(self).links().len() as u32),
                ("direction", 1),
            ],
            channels: self.channels(),
            capacity: Capacity::Slots(self.channels()),
            held_for_delay: true,
        }
    }

    fn transmission(&self) -> Transmission {
        let rate = self.rates().max().unwrap_or(Rate::gigabits(1));
        Transmission {
            rate,
            conversion: Time::ZERO,
            flit: None,
            packet: None,
        }
    }

    fn delay(&self) -> Result<Time, UnitError> {
        Ok(crate::network::latency(WdmGraph::fibre_links(self)))
    }

    fn transmission_of(&self, hop: &Hop, routes: &NamedRoutes) -> Transmission {
        let mut route = Vec::new();
        self.route_of(hop, routes, &mut route);
        let links = WdmGraph::fibre_links(self).links();
        let rates = route.iter().map(|&link| links[link as usize].rate);
        let whole = self.transmission();
        Transmission {
            rate: rates.min().unwrap_or(whole.rate),
            ..whole
        }
    }

    fn is_degraded(&self) -> bool {
        let mut rates = self.rates();
        let first = rates.next();
        rates.any(|rate| Some(rate) != first)
    }

    fn sharing(&self) -> LightSharing {
        LightSharing::SameCircuit
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

    fn measure(
        &self,
        hops: &[Hop],
        routes: &NamedRoutes,
        circuits: &mut Vec<Circuit>,
    ) -> Result<(), NoCircuit> {
        let network = WdmGraph::fibre_links(self);
        let mut route = Vec::new();
        for (place, hop) in hops.iter().enumerate() {
            let absent = |problem| {
                Err(NoCircuit::Absent {
                    hop: place,
                    problem,
                })
            };
            if hop.from.max(hop.to) >= network.ranks() {
                return absent("an end is not a rank");
            }
            let light = GraphLight::from(hop.light);
            let converted = self.converters && light.wavelength == CONVERTED;
            let has_wavelength = converted || u32::from(light.wavelength) < self.wavelengths;
            if u32::from(light.fibre) >= self.fibres || !has_wavelength {
                return absent("its channel does not exist");
            }
            self.route_of(hop, routes, &mut route);
            let links = network.links();
            let mut delay = Time::ZERO;
            for &link in &route {
                let Some(link) = links.get(link as usize) else {
                    return absent("a link of its route does not exist");
                };
                delay = delay.plus(link.latency)?;
            }
            circuits.push(Circuit {
                delay,
                lines: route.iter().copied().collect(),
            });
        }
        Ok(())
    }

    /// Assigns the transmitter for the lightpath's channel on its first link and the receiver for
    /// the channel on its last link. If the graph limits the transmitters or receivers of a rank,
    /// assigns any of these instead, which can be tuned to any channel of any link.
    fn tune(&self, hops: &[Hop], routes: &NamedRoutes, tunings: &mut Vec<Tuning>) {
        let channels = u64::from(self.channels());
        let mut route = Vec::new();
        for hop in hops {
            self.route_of(hop, routes, &mut route);
            let light = GraphLight::from(hop.light);
            let channel = u32::from(light.fibre) * self.wavelengths + u32::from(light.wavelength);
            let port = |rank: u32, end: u64, link: Option<&u32>, limit: Option<u32>, other: u32| {
                let tuned = u64::from(link.copied().unwrap_or(0)) * channels + u64::from(channel);
                let pool = match limit {
                    Some(_) => u64::from(rank) << 1 | end,
                    None => 1 << 63 | tuned << 1 | end,
                };
                Port {
                    pool,
                    size: limit.unwrap_or(1),
                    state: u64::from(other) << 40 ^ tuned,
                }
            };
            tunings.push(Tuning {
                is_fixed: false,
                transmitter: port(hop.from, 0, route.first(), self.transmitters, hop.to),
                receiver: port(hop.to, 1, route.last(), self.receivers, hop.from),
                channel,
                plane: 0,
            });
        }
    }
}
