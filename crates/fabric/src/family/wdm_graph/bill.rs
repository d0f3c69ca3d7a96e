//! Parts of a graph of fibres.

use super::WdmGraph;
use crate::bill::{Bill, PartKind, WDM};
use crate::network::vertices;

impl WdmGraph {
    /// Returns the parts of a graph without failed parts, in which all ranks take part.
    ///
    /// * A rank has a transmitter for each wavelength of each fibre that leaves it, and a receiver
    ///   for each that leads to it, or as many as the options `transmitters` and `receivers` allow.
    /// * Each link has `fibres` fibres.
    /// * A vertex with several links switches light. Its ports are the fibres that leave it.
    /// * With `noise_figure`, a fibre has an amplifier after each span. If a vertex that switches
    ///   light has a loss, each fibre that leaves it begins with an amplifier.
    pub(super) fn bill_of_whole(&self) -> Bill {
        let network = self.fibre_links();
        let fibres = u64::from(self.fibres);
        let mut degrees = vec![[0u64; 2]; vertices(network) as usize];
        for (from, to, both_ways) in network.wiring().ends() {
            for (from, to) in [(from, to), (to, from)]
                .into_iter()
                .take(1 + usize::from(both_ways))
            {
                degrees[from as usize][0] += fibres;
                degrees[to as usize][1] += fibres;
            }
        }
        let limited = |side: usize, limit: Option<u32>| -> u64 {
            let ranks = degrees.iter().take(network.ranks() as usize);
            let channels = ranks.map(|degree| degree[side] * u64::from(self.wavelengths));
            let limit = limit.map_or(u64::MAX, u64::from);
            channels.map(|channels| channels.min(limit)).sum()
        };
        let lights = [limited(0, self.transmitters), limited(1, self.receivers)];
        let bill = Bill::default()
            .with_lights(WDM, lights, self.transmission.rate)
            .with(
                fibres * network.links().len() as u64,
                PartKind::new("fibre"),
            )
            .with(self.amplifiers(), PartKind::new("amplifier"));
        let switches = degrees.iter().map(|degree| degree[0] as u32);
        let mut ports: Vec<u32> = switches.filter(|ports| *ports > self.fibres).collect();
        ports.sort_unstable();
        ports.into_iter().fold(bill, |bill, ports| {
            bill.with(1u32, PartKind::new("light_switch").ports(ports))
        })
    }

    /// Returns the number of amplifiers of all fibres.
    fn amplifiers(&self) -> u64 {
        let (Some(budget), Some(noise)) = (&self.budget, &self.noise) else {
            return 0;
        };
        let network = self.fibre_links();
        let mut degrees = vec![0u32; vertices(network) as usize];
        for (from, _, _) in network.wiring().ends() {
            degrees[from as usize] += 1;
        }
        let links = (0..).zip(network.wiring().ends());
        let per_link = links.map(|(link, (from, _, _))| {
            let metres = network.length(link).map_or(0, |length| length.metres());
            noise.amplifiers(budget, metres, degrees[from as usize] > 1)
        });
        u64::from(self.fibres) * per_link.sum::<u64>()
    }
}
