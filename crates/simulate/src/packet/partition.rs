//! Partition of a network into parts. Only links between routers cross from one part to another.

use super::PacketOptions;
use super::delays::Delays;
use super::port::PacketPort;

/// Division of a network into parts: the part of each terminal and link.
#[derive(Clone)]
pub(super) struct Partition {
    pub(super) parts: u32,
    /// Network part of each terminal, indexed by terminal.
    pub(super) part_of_terminal: Vec<u8>,
    /// Network part at the sending end of each link, indexed by link.
    pub(super) part_of_link: Vec<u8>,
    /// Minimum time (ps) from an event in one network part until a chunk that is sent at this event
    /// arrives in another part.
    pub(super) min_chunk_ps: u64,
    /// Minimum time (ps) from an event in one network part until a credit that is sent at this
    /// event arrives in another part; at most `min_chunk_ps`.
    pub(super) min_credit_ps: u64,
}

impl Partition {
    /// Creates a partition. [`Partition::measure`] computes the minimum times afterwards.
    pub(super) fn new(parts: u32, part_of_terminal: Vec<u8>, part_of_link: Vec<u8>) -> Partition {
        Partition {
            parts,
            part_of_terminal,
            part_of_link,
            min_chunk_ps: 0,
            min_credit_ps: 0,
        }
    }

    pub(super) fn whole(terminals: usize, links: usize) -> Partition {
        Partition::new(1, vec![0; terminals], vec![0; links])
    }

    /// Computes the minimum times in which one network part can affect another. `shortest` is the
    /// size in bytes of the shortest chunk. If a minimum time is 0, all parts are merged into one.
    pub(super) fn measure(
        &mut self,
        ports: &mut [PacketPort],
        bits_per_second: &[u64],
        shortest: u64,
        options: &PacketOptions,
    ) {
        let (send, credit) = Delays::minimum(options.overheads, options.jitter);
        let crossing = ports
            .iter()
            .zip(bits_per_second)
            .zip(&self.part_of_link)
            .filter(|((port, _), from)| port.part != **from)
            .map(|(crossing, _)| crossing);
        let [mut chunk_least, mut credit_least] = [u64::MAX; 2];
        for (port, bits_per_second) in crossing {
            let wire = shortest * 8_000_000_000_000 / bits_per_second;
            let chunk = wire + send + options.router_delay.ps() + port.latency;
            chunk_least = chunk_least.min(chunk);
            credit_least = credit_least.min(credit + options.credit_delay.ps() + port.latency);
        }
        // A network part that waits for credits waits for chunks too, so the smaller minimum
        // applies.
        (self.min_chunk_ps, self.min_credit_ps) = (chunk_least, credit_least.min(chunk_least));
        if self.parts == 1 || chunk_least == 0 || credit_least == 0 {
            *self = Partition::whole(self.part_of_terminal.len(), self.part_of_link.len());
            ports.iter_mut().for_each(|port| port.part = 0);
        }
    }
}
