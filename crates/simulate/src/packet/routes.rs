//! Routing of chunks: the next link and virtual channel, and the ports that a routing uses.

use super::channel::{Chunk, VirtualChannels};
use super::partition::Partition;
use super::port::PacketPort;

/// Routing of chunks.
pub(super) trait Routes {
    /// Announces a message. The message keeps its number until its last chunk has arrived.
    fn begin(&mut self, _message: u32, _source: u32, _destination: u32) {}

    /// Returns the next link of a chunk at `router`, and the chunk's channel on that link.
    fn next(
        &self,
        chunk: &mut Chunk,
        router: u32,
        channels: &mut VirtualChannels,
        now: u64,
    ) -> (u32, u32);

    /// Returns the link that `next` will probably choose for a chunk on its way to a router. A
    /// wrong guess costs only computing time.
    fn predicted_link(&self, chunk: &Chunk) -> u32;

    /// Returns the links whose loads `next` will compare for a chunk; `None` if it compares none.
    fn compares(&self, _chunk: &Chunk) -> Option<[u32; 2]> {
        None
    }

    /// Returns the number of virtual channels that the routing uses on a link.
    fn channels(&self) -> u32;
}

/// Ports of a network with their routes, the injection port of each terminal, the rate of each port
/// in bits per second, and the partition.
pub(super) struct PacketMachine<R> {
    pub(super) routes: R,
    pub(super) ports: Vec<PacketPort>,
    pub(super) injection: Vec<u32>,
    pub(super) rates: Vec<u64>,
    pub(super) partition: Partition,
}
