//! Which link and virtual channel a chunk takes next, and the ports that a rule of routing runs over.

use super::channel::{Chunk, VirtualChannels};
use super::division::Division;
use super::port::PacketPort;

/// A rule of routing.
pub(super) trait Routes {
    /// A message begins; it keeps its number until its last chunk has arrived.
    fn begin(&mut self, _message: u32, _source: u32, _destination: u32) {}

    /// The link and the channel on it that a chunk takes which stands at a router.
    fn next(
        &self,
        chunk: &mut Chunk,
        router: u32,
        channels: &mut VirtualChannels,
        now: u64,
    ) -> (u32, u32);

    /// The link that `next` will probably choose for a chunk on its way to a router: what it does not
    /// know costs time only.
    fn probably_next(&self, chunk: &Chunk) -> u32;

    /// The links whose loads `next` will compare for a chunk at its router, if it will.
    fn compares(&self, _chunk: &Chunk) -> Option<[u32; 2]> {
        None
    }

    /// Virtual channels that the rule uses on a link.
    fn channels(&self) -> u32;
}

/// Ports with what goes with them: routes, the port of each terminal, the rate of each port, and the parts
/// that they are in.
pub(super) struct PacketMachine<R> {
    pub(super) routes: R,
    pub(super) ports: Vec<PacketPort>,
    pub(super) injection: Vec<u32>,
    pub(super) rates: Vec<u64>,
    pub(super) division: Division,
}
