//! How fast a rank can send into its fabric, however well or badly a plan uses it.
//!
//! | fabric | the sum of |
//! |---|---|
//! | `wdm_ring` | rates of the wavelengths of all fibres both ways that are not dead or cut off at the rank; of as many as the rank has `ports`, where it has fewer |
//! | `wss_grid` | rates of the transceivers that work and whose switch joins another rank's place |
//! | `light_path_grid` | rates of the ports |
//! | electrical | rates of the links that leave the rank; a half-duplex cable counts once |
//!
//! Results of fabrics in which this number differs compare machines of different capacity.

use super::{Direction, Fabric, Plane, WdmRing, WssGrid};
use crate::network::Network;

impl Fabric {
    /// The bits per second that a rank can send, if nothing else sends: of ranks that differ, the least.
    ///
    /// ```
    /// use opticoll::fabric::Fabric;
    /// let ring = Fabric::parse("wdm_ring:ranks=16,wavelengths=2,rate=40Gb/s")?;
    /// assert_eq!(ring.injection_bandwidth(), 160_000_000_000);
    /// # Ok::<(), opticoll::fabric::FabricError>(())
    /// ```
    pub fn injection_bandwidth(&self) -> u128 {
        match (self, self.network()) {
            (Fabric::WdmRing(ring), _) => of_ring(ring),
            (Fabric::WssGrid(grid), _) => of_grid(grid),
            (Fabric::LightPathGrid(grid), _) => {
                u128::from(grid.ports) * u128::from(grid.rate.bits_per_second())
            }
            (_, Some(network)) => of_network(network),
            (_, None) => 0,
        }
    }
}

fn of_ring(ring: &WdmRing) -> u128 {
    let cut = |rank: u32| {
        // The clockwise link of a position leaves its lower rank, the other one the rank behind.
        let leaves = ring.broken.iter().filter(|link| match link.direction {
            Direction::Clockwise => link.position == rank,
            Direction::CounterClockwise => (link.position + 1) % ring.ranks == rank,
        });
        leaves.count() as u32
    };
    let whole = 2 - (0..ring.ranks).map(cut).max().unwrap_or(0).min(2);
    let channels = ring.channels() * whole;
    let sent = ring.ports.map_or(channels, |ports| ports.min(channels));
    u128::from(sent) * u128::from(ring.rate.bits_per_second())
}

fn of_grid(grid: &WssGrid) -> u128 {
    let transceivers = |rank: u32| {
        let planes = Plane::BOTH.into_iter();
        let leads = planes.filter(|&plane| grid.side(plane) > 1 && grid.works(rank, plane));
        leads.count() as u128
    };
    let least = (0..grid.ranks()).map(transceivers).min().unwrap_or(0);
    least * u128::from(grid.rate.bits_per_second())
}

fn of_network(network: &dyn Network) -> u128 {
    let mut leaving = vec![0u128; network.ranks() as usize];
    for (index, link) in network.links().iter().enumerate() {
        let Some((from, to)) = network.ends(index as u32) else {
            continue;
        };
        let both = network.leads_both_ways(index as u32).then_some(to);
        for rank in [Some(from), both].into_iter().flatten() {
            if let Some(rate) = leaving.get_mut(rank as usize) {
                *rate += u128::from(link.rate.bits_per_second());
            }
        }
    }
    leaving.into_iter().min().unwrap_or(0)
}
