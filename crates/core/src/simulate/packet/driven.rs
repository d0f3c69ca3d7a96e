//! Messages that are sent from outside, event by event: for programs that compute between messages.
//!
//! The clock is here, its hand is turned from outside: [`Driven::next_time`] says when something happens if
//! nothing is sent before, [`Driven::advance`] goes there, and [`Driven::send`] hands a message to its
//! terminal at an instant that is not after the next.
//!
//! ```
//! use opticoll::fabric::Fabric;
//! use opticoll::simulate::packet::{Driven, PacketSettings};
//! use opticoll::units::{Bytes, Time};
//! let fabric = Fabric::parse("crossbar:ranks=2,rate=10GB/s,latency=10ns")?;
//! let mut packets = Driven::new(&fabric, &PacketSettings::default())?;
//! packets.send(7, (0, 1), Bytes::new(4096), Time::ZERO)?;
//! let mut reports = Vec::new();
//! while !reports.iter().any(|report: &opticoll::simulate::packet::Report| report.arrived) {
//!     packets.advance(&mut reports)?;
//! }
//! assert_eq!(reports.iter().map(|report| report.message).collect::<Vec<u32>>(), [7, 7]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::engine::Engine;
use super::engine::terminal::FIRST_STREAM;
use super::event_queue::LATEST_PS;
use super::machine::{Built, build, named, network_of};
use super::routes::Routes;
use super::settings::PacketSettings;
use super::steps::Order;
use super::stuck;
use super::{Options, PacketError, PacketOutcome, Report, Work};
use crate::fabric::Fabric;
use crate::network::Network;
use crate::units::{Bytes, Time};

/// The terminals and routers of a fabric, with messages under way.
pub struct Driven<'a> {
    network: &'a dyn Network,
    built: Built<'a>,
}

impl<'a> Driven<'a> {
    /// A fabric without messages; ranks are placed and traffic beside the messages goes on as the
    /// settings say.
    ///
    /// # Errors
    /// A fabric of light, settings that do not fit, a placement that names no permutation.
    pub fn new(fabric: &'a Fabric, settings: &PacketSettings) -> Result<Driven<'a>, PacketError> {
        let network = network_of(fabric)?;
        let work = Work {
            collective: None,
            traffic: settings.background.clone(),
        };
        // What comes from outside may come at any time, so that there is nothing to do side by side.
        let options = Options {
            cores: 1,
            ..settings.options.clone()
        };
        let mut built = build(fabric, &work, &options)?;
        if let Some(terminals) = settings.placement.terminals(fabric.ranks()) {
            built.place(terminals)?;
        }
        built.engine.begin_driven();
        Ok(Driven { network, built })
    }

    /// Sends a message with a number of its own, below 2^31, from one rank to another; they are sent in
    /// the order of time.
    ///
    /// # Errors
    /// A number that is too large, an end that is no rank, a time beyond 13 days.
    pub fn send(
        &mut self,
        message: u32,
        (source, destination): (u32, u32),
        bytes: Bytes,
        time: Time,
    ) -> Result<(), PacketError> {
        if message >= FIRST_STREAM {
            return Err(PacketError::TooMany);
        }
        if time.ps() >= LATEST_PS {
            return Err(PacketError::TooLong);
        }
        let place = |rank: u32| {
            let terminal = self.built.placement.get(rank as usize).copied();
            terminal.ok_or(PacketError::Unreachable { rank })
        };
        self.built.engine.hand_in(Order {
            source: place(source)?,
            destination: place(destination)?,
            bytes: bytes.get(),
            tag: message,
            time: time.ps(),
        });
        Ok(())
    }

    /// When something happens next, if nothing is sent before; `None`: never.
    pub fn next_time(&mut self) -> Option<Time> {
        self.built.engine.next_time().map(Time::from_ps)
    }

    /// Moves the clock on to that instant and carries out everything that happens then; appends what
    /// has become of messages.
    ///
    /// # Errors
    /// Nothing can happen any more, a time beyond 13 days.
    pub fn advance(&mut self, reports: &mut Vec<Report>) -> Result<(), PacketError> {
        let advanced = self.built.engine.advance(reports);
        advanced.map_err(|error| named(error, self.network))
    }

    /// What has happened up to a time.
    ///
    /// # Errors
    /// More bytes were sent than 64 bits count.
    pub fn close(mut self, time: Time) -> Result<PacketOutcome, PacketError> {
        let links = self.network.links().len();
        let placement = &self.built.placement;
        self.built.engine.outcome(time.ps(), placement, links)
    }
}

impl<R: Routes> Engine<R> {
    /// A message from outside.
    pub(super) fn hand_in(&mut self, order: Order) {
        self.now = self.now.max(order.time);
        self.submit(order);
    }

    /// Carries out the events of the next instant.
    pub(super) fn advance(&mut self, reports: &mut Vec<Report>) -> Result<(), PacketError> {
        let Some(time) = self.event_queue.next_time() else {
            return Err(stuck::error(std::slice::from_mut(self), LATEST_PS));
        };
        if time >= LATEST_PS {
            return Err(PacketError::TooLong);
        }
        self.run(time + 1, false);
        reports.append(self.reports.get_or_insert_default());
        Ok(())
    }
}
