//! Ring as a machine. The number of a link is `direction * ranks + rank`, where the link starts at
//! `rank`.

use std::rc::Rc;

use super::machine::{Converters, Machine, Resources, Route};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::{Circuits, Transmission};
use opticoll_fabric::family::wdm_ring::{Direction, WdmLight, WdmRing};

pub(super) struct RingMachine<'a>(pub(super) &'a WdmRing);

impl Machine for RingMachine<'_> {
    fn resources(&self) -> Resources {
        Resources {
            ranks: self.0.ranks,
            links: 2 * self.0.ranks,
            channels: self.0.channels(),
            transmitters: self.0.ports,
            receivers: self.0.ports,
            converters: match self.0.converters {
                true => Converters::Full,
                false => Converters::None,
            },
            reconfiguration: self.0.reconfiguration,
        }
    }

    /// Returns the shortest routes without broken links and within reach, the clockwise route
    /// first.
    fn routes(&mut self, source: u32, destination: u32) -> Rc<[Route]> {
        let ring = self.0;
        let possible = |direction: &Direction| {
            ring.reaches(ring.span(source, destination, *direction))
                && ring.is_whole(source, destination, *direction)
        };
        let directions = Direction::BOTH.into_iter().filter(possible);
        let hops = |direction| ring.hops(source, destination, direction);
        let least = directions.clone().map(hops).min();
        let shortest = directions.filter(|&direction| Some(hops(direction)) == least);
        let routes = shortest.map(|direction| -> Route {
            let first = match direction {
                Direction::Clockwise => source,
                Direction::CounterClockwise => destination + 1,
            };
            let start = direction as u32 * ring.ranks;
            let links = first..first + hops(direction);
            links.map(|link| start + link % ring.ranks).collect()
        });
        routes.collect()
    }

    fn time(
        &self,
        (source, destination): (u32, u32),
        route: &[u32],
        channels: &[u32],
        bytes: Bytes,
    ) -> Result<Time, UnitError> {
        let ring = self.0;
        let direction = Direction::BOTH[(route[0] / ring.ranks) as usize];
        // With converters, the lightpath may use any fibre.
        let lights = match channels.first() {
            Some(&channel) => vec![WdmLight::from(ring.light(direction, channel))],
            None => ring.converted(direction).collect(),
        };
        let rates = lights
            .into_iter()
            .map(|light| ring.rate_of(source, destination, light));
        let transmission = Transmission {
            rate: rates.min().unwrap_or(ring.rate),
            ..ring.transmission()
        };
        let span = ring.span(source, destination, direction);
        let delay = ring.propagation.times(span.into())?;
        delay.plus(transmission.time(bytes)?)
    }

    fn ends(&self, link: u32) -> [u32; 2] {
        let ranks = self.0.ranks;
        let direction = Direction::BOTH[(link / ranks) as usize];
        let rank = link % ranks;
        [rank, self.0.rank_after(rank, direction, 1)]
    }

    fn spanned_links(&self, (first, count): (u32, u32)) -> Vec<u32> {
        let ranks = self.0.ranks;
        let joints = if count < ranks {
            count.saturating_sub(1)
        } else {
            count
        };
        let links =
            (first..first + joints).flat_map(|rank| [rank % ranks, ranks + (rank + 1) % ranks]);
        links.collect()
    }
}
