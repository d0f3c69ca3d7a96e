//! Packet simulation that the caller drives, for programs that compute between messages.
//!
//! ```
//! use opticoll_fabric::fabric::Fabric;
//! use opticoll_simulate::live::{Live, MessageEvent, ReadyMessage};
//! use opticoll_simulate::packet::{DrivenPackets, PacketSettings};
//! use opticoll_base::units::{Bytes, Time};
//! let fabric = Fabric::parse("crossbar:ranks=2,rate=10GB/s,latency=10ns")?;
//! let mut packets = DrivenPackets::new(&fabric, &PacketSettings::default())?;
//! packets.send(7, ReadyMessage::new((0, 1), Bytes::new(4096), Time::ZERO))?;
//! let mut events = Vec::new();
//! while !events.iter().any(|event: &MessageEvent| event.arrived) {
//!     packets.advance(&mut events)?;
//! }
//! assert_eq!(events.iter().map(|event| event.message).collect::<Vec<u32>>(), [7, 7]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::deadlock;
use super::engine::PacketEngine;
use super::engine::terminal::FIRST_STREAM;
use super::event_queue::LATEST_PS;
use super::machine::{BuiltEngine, build, network_of, with_channel_names};
use super::routes::Routes;
use super::settings::PacketSettings;
use super::steps::IssuedMessage;
use super::{PacketError, PacketOptions, PacketWork};
use crate::SimulationError;
use crate::live::{BusiestLink, Live, MessageEvent, MessageTimes, ReadyMessage};
use crate::table::Details;
use opticoll_base::units::Time;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::network::Network;

/// Packet simulation of a fabric, to which the caller submits messages.
pub struct DrivenPackets<'a> {
    network: &'a dyn Network,
    built: BuiltEngine<'a>,
}

impl<'a> DrivenPackets<'a> {
    /// Creates a simulation without messages, with the placement and background traffic of
    /// `settings`.
    ///
    /// # Errors
    /// Returns an error if the fabric has no electrical links, a setting does not apply to the
    /// fabric, or the placement of ranks is not a permutation.
    pub fn new(
        fabric: &'a Fabric,
        settings: &PacketSettings,
    ) -> Result<DrivenPackets<'a>, PacketError> {
        let network = network_of(fabric)?;
        let work = PacketWork {
            collective: None,
            traffic: settings.background.clone(),
        };
        // The caller may submit messages at any time, so network parts cannot run in parallel.
        let options = PacketOptions {
            cores: 1,
            ..settings.options.clone()
        };
        let mut built = build(fabric, &work, &options)?;
        if let Some(terminals) = settings.placement.terminals(fabric.ranks()) {
            built.place(terminals)?;
        }
        built.engine.begin_driven();
        Ok(DrivenPackets { network, built })
    }
}

impl Live for DrivenPackets<'_> {
    fn ranks(&self) -> Option<u32> {
        Some(self.network.ranks())
    }

    /// Submits a message. `number` is the caller's index of the message and must be below 2^31. The
    /// message must be ready before 13 days.
    fn send(
        &mut self,
        number: u32,
        message: ReadyMessage,
    ) -> Result<Option<MessageTimes>, SimulationError> {
        if let Some(own) = message.local_delivery() {
            return Ok(Some(own));
        }
        if number >= FIRST_STREAM {
            return Err(PacketError::TooMany.into());
        }
        if message.ready.ps() >= LATEST_PS {
            return Err(PacketError::TooLong.into());
        }
        let place = |rank: u32| {
            let terminal = self.built.placement.get(rank as usize).copied();
            terminal.ok_or(PacketError::Unreachable { rank })
        };
        self.built.engine.submit_from_caller(IssuedMessage {
            source: place(message.source)?,
            destination: place(message.destination)?,
            bytes: message.bytes.get(),
            tag: number,
            time: message.ready.ps(),
        });
        Ok(None)
    }

    fn next_time(&mut self) -> Result<Option<Time>, SimulationError> {
        Ok(self.built.engine.next_time().map(Time::from_ps))
    }

    fn advance(&mut self, happened: &mut Vec<MessageEvent>) -> Result<(), SimulationError> {
        let advanced = self.built.engine.advance(happened);
        Ok(advanced.map_err(|error| with_channel_names(error, self.network))?)
    }

    fn close(mut self: Box<Self>, time: Time) -> Result<Details, SimulationError> {
        let links = self.network.links().len();
        let placement = &self.built.placement;
        let found = self.built.engine.outcome(time.ps(), placement, links)?;
        Ok(BusiestLink::details(self.network, &found.links.bytes, time))
    }
}

impl<R: Routes> PacketEngine<R> {
    pub(super) fn submit_from_caller(&mut self, order: IssuedMessage) {
        self.now = self.now.max(order.time);
        self.submit(order);
    }

    /// Processes all events of the next instant, and appends departures and arrivals to `happened`.
    pub(super) fn advance(&mut self, happened: &mut Vec<MessageEvent>) -> Result<(), PacketError> {
        let Some(time) = self.event_queue.next_time() else {
            return Err(deadlock::error(std::slice::from_mut(self), LATEST_PS));
        };
        if time >= LATEST_PS {
            return Err(PacketError::TooLong);
        }
        self.run(time + 1, false);
        happened.append(self.message_events.get_or_insert_default());
        Ok(())
    }
}
