//! Routing of chunks: the next link and virtual channel, and the ports that a routing uses.

use super::channel::{Chunk, VirtualChannels};
use super::partition::Partition;
use super::port::PacketPort;

/// Rule that routes chunks.
pub(super) trait Routes {
    /// Announces the message with the index `_message`. The index is reused after the message's
    /// last chunk has arrived.
    fn begin(&mut self, _message: u32, _source: u32, _destination: u32) {}

    /// Returns the next link of a chunk at `router`, and the chunk's channel on that link.
    fn next(
        &self,
        chunk: &mut Chunk,
        router: u32,
        channels: &mut VirtualChannels,
        now: u64,
    ) -> (u32, u32);

    /// Returns the link that `next` will probably return for a chunk that is on the way to a
    /// router. A wrong prediction costs only computing time.
    fn predicted_link(&self, chunk: &Chunk) -> u32;

    /// Returns the links whose loads `next` will compare for a chunk, or `None` if there are none.
    fn compares(&self, _chunk: &Chunk) -> Option<[u32; 2]> {
        None
    }

    /// Returns the number of virtual channels that the routing uses on a link.
    fn channels(&self) -> u32;
}

/// Ports of a network, indexed by link, with their routes. `injection` is the injection port of
/// each terminal, and `rates` the rate of each port in bits per second.
pub(super) struct PacketMachine<R> {
    pub(super) routes: R,
    pub(super) ports: Vec<PacketPort>,
    pub(super) injection: Vec<u32>,
    pub(super) rates: Vec<u64>,
    pub(super) partition: Partition,
}
