//! A network in parts, of which only links between routers cross from one to another.

use super::PacketOptions;
use super::delays::Delays;
use super::port::PacketPort;

/// Which part of a network things are in.
#[derive(Clone)]
pub(super) struct Division {
    pub(super) parts: u32,
    /// Per terminal; per link, the part it leads from.
    pub(super) of_terminal: Vec<u8>,
    pub(super) of_link: Vec<u8>,
    /// The least time from what causes a chunk or a credit to cross to its coming, in picoseconds.
    pub(super) chunk: u64,
    pub(super) credit: u64,
}

impl Division {
    /// The parts of terminals and links as given.
    pub(super) fn new(parts: u32, of_terminal: Vec<u8>, of_link: Vec<u8>) -> Division {
        Division {
            parts,
            of_terminal,
            of_link,
            chunk: 0,
            credit: 0,
        }
    }

    /// Everything in one part.
    pub(super) fn whole(terminals: usize, links: usize) -> Division {
        Division::new(1, vec![0; terminals], vec![0; links])
    }

    /// Finds how soon parts can touch one another, where no chunk is shorter than so many bytes; unites them
    /// where that is at once.
    pub(super) fn measure(
        &mut self,
        ports: &mut [PacketPort],
        bits_per_second: &[u64],
        shortest: u64,
        options: &PacketOptions,
    ) {
        let (send, credit) = Delays::least(options.overheads, options.jitter);
        let crossing = ports
            .iter()
            .zip(bits_per_second)
            .zip(&self.of_link)
            .filter(|((port, _), from)| port.part != **from)
            .map(|(crossing, _)| crossing);
        let [mut chunk_least, mut credit_least] = [u64::MAX; 2];
        for (port, bits_per_second) in crossing {
            let wire = shortest * 8_000_000_000_000 / bits_per_second;
            let chunk = wire + send + options.router_delay.ps() + port.latency;
            chunk_least = chunk_least.min(chunk);
            credit_least = credit_least.min(credit + options.credit_delay.ps() + port.latency);
        }
        // Who waits for credits waits for chunks too, so that the sooner of both counts.
        (self.chunk, self.credit) = (chunk_least, credit_least.min(chunk_least));
        if self.parts == 1 || chunk_least == 0 || credit_least == 0 {
            *self = Division::whole(self.of_terminal.len(), self.of_link.len());
            ports.iter_mut().for_each(|port| port.part = 0);
        }
    }
}
