//! Quotient network: its flows, links and ranks are the colours that [`super::quotient`] defines.

use super::program::{StepFlow, Steps};
use opticoll_base::units::UnitError;
use opticoll_fabric::network::{Network, Wiring};

/// Steps and network with one flow for each colour of flows, one link for each colour of links and
/// one rank for each colour of ranks.
pub(super) struct Quotient {
    pub(super) ranks: u32,
    pub(super) wiring: Wiring,
    /// Index of the first colour of flows of each step; the last entry is the number of colours.
    pub(super) firsts: Vec<usize>,
    pub(super) colours: Vec<Colour>,
    /// Routes of all colours of flows, one after the other. An entry is a colour of links.
    pub(super) hops: Vec<u32>,
    /// Links on the route of each colour of flows, one route after the other, as pairs (colour of
    /// the link, number of flows of this colour on one such link). A route has one pair per colour
    /// of links.
    pub(super) loads: Vec<(u32, u32)>,
}

/// Colour of flows: flows that start, move and end alike and are simulated as one flow.
pub(super) struct Colour {
    /// Flow of the quotient. Its source and destination are colours of ranks.
    pub(super) flow: StepFlow,
    pub(super) flows: u32,
    pub(super) first_hop: usize,
    pub(super) first_load: usize,
}

impl Quotient {
    /// Returns the number of flows that have the colour `colour`.
    pub(super) fn flow_count(&self, colour: u32) -> u32 {
        self.colours[colour as usize].flows
    }

    /// Removes repeated links from `route`, the route of a colour of flows. Sets `times` to the
    /// number of flows of the colour on each remaining link.
    pub(super) fn find_times(&self, colour: u32, route: &mut Vec<u32>, times: &mut Vec<f64>) {
        let on = std::mem::take(route);
        times.clear();
        for &(link, flows) in self.loads(colour as usize) {
            if on.contains(&link) {
                route.push(link);
                times.push(f64::from(flows));
            }
        }
    }

    fn loads(&self, colour: usize) -> &[(u32, u32)] {
        let end = self.colours.get(colour + 1);
        let end = end.map_or(self.loads.len(), |next| next.first_load);
        &self.loads[self.colours[colour].first_load..end]
    }

    fn route_of(&self, colour: usize) -> &[u32] {
        let end = self.colours.get(colour + 1);
        let end = end.map_or(self.hops.len(), |next| next.first_hop);
        &self.hops[self.colours[colour].first_hop..end]
    }

    /// Returns the number of bytes on one link of each colour of links, or `None` if a number
    /// exceeds 64 bits.
    pub(super) fn link_bytes(&self) -> Option<Vec<u64>> {
        let mut bytes = vec![0u64; self.links().len()];
        for (index, colour) in self.colours.iter().enumerate() {
            for &(link, flows) in self.loads(index) {
                let carried = colour.flow.bytes.checked_mul(u64::from(flows))?;
                let sum = &mut bytes[link as usize];
                *sum = sum.checked_add(carried)?;
            }
        }
        Some(bytes)
    }
}

impl Steps for Quotient {
    fn steps(&self) -> usize {
        self.firsts.len() - 1
    }

    fn step(&self, step: usize, flows: &mut Vec<StepFlow>) -> Result<(), UnitError> {
        let colours = &self.colours[self.firsts[step]..self.firsts[step + 1]];
        flows.extend(colours.iter().map(|colour| colour.flow));
        Ok(())
    }
}

/// Looks up routes by a colour of flows, which is passed for both arguments of [`Network::route`].
impl Network for Quotient {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    fn route(&self, colour: u32, _same: u32, links: &mut Vec<u32>) {
        links.extend_from_slice(self.route_of(colour as usize));
    }

    fn link_name(&self, link: u32) -> String {
        format!("links of colour {link}")
    }
}
