//! Networks that send messages one by one for a program that computes between messages, such as a
//! replay.
//!
//! **Coupling.** The network and the program share one simulated time. The program passes a message
//! to the network at the instant at which the program sends the message. From this instant on, the
//! message competes with all other traffic. Before the program advances its clock, the program asks
//! for the time of the network's next event. If this event is not later than the program's next
//! event, the network advances first. The network then reports the departures and arrivals of
//! messages, and the program continues. A late message therefore delays exactly the operations that
//! wait for this message, and concurrent collectives share the network.

use std::sync::Arc;

use super::{SimulationError, link_shares};
use crate::table::Details;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::network::Network;
use opticoll_plan::plan::NamedRoutes;
use opticoll_plan::plan::routes::FABRIC_ROUTE;

/// Message that is ready to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyMessage {
    /// Sending rank.
    pub source: u32,
    /// Receiving rank.
    pub destination: u32,
    /// Index of the route among the program's named routes, or [`FABRIC_ROUTE`].
    pub route: u32,
    /// Network interface of the sending rank, and of the receiving rank.
    pub interfaces: [u8; 2],
    /// Size of the message.
    pub bytes: Bytes,
    /// Time at which the message is ready.
    pub ready: Time,
}

impl ReadyMessage {
    /// Creates a message over the fabric's route from `source` to `destination`.
    pub fn new((source, destination): (u32, u32), bytes: Bytes, ready: Time) -> ReadyMessage {
        ReadyMessage {
            source,
            destination,
            route: FABRIC_ROUTE,
            interfaces: [0, 0],
            bytes,
            ready,
        }
    }

    /// Returns the times of a message from a rank to itself, which takes no time; otherwise `None`.
    pub(super) fn local_delivery(self) -> Option<MessageTimes> {
        (self.source == self.destination).then_some(MessageTimes {
            leaves: self.ready,
            arrives: self.ready,
        })
    }
}

/// Times at which a message has left its sender and has arrived at its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageTimes {
    /// Time at which the last byte leaves the sender.
    pub leaves: Time,
    /// Time at which the last byte arrives.
    pub arrives: Time,
}

/// Network whose clock the caller advances: a simulator, or a cost model of single messages.
pub trait Live {
    /// Returns the number of ranks, or `None` if any rank number is allowed.
    fn ranks(&self) -> Option<u32> {
        None
    }

    /// Sends a message with a unique number and returns the message's times. Returns `None` if the
    /// times depend on later messages. The caller sends messages in the order of
    /// [`ReadyMessage::ready`], and never before the network's current time.
    ///
    /// # Errors
    /// Returns an error for a message that the network cannot send, or a time that exceeds
    /// 64 bits.
    fn send(
        &mut self,
        number: u32,
        message: ReadyMessage,
    ) -> Result<Option<MessageTimes>, SimulationError>;

    /// Sets the routes that a program names for its messages. The caller does so before the first
    /// message.
    ///
    /// # Errors
    /// Returns an error if the network has no links that messages share.
    fn take_routes(&mut self, _routes: &NamedRoutes) -> Result<(), SimulationError> {
        let problem = "this network has routes of its own only";
        Err(SimulationError::refused("named_routes", problem))
    }

    /// Starts a planned collective as soon as the circuits of its plan are free. The collective and
    /// all messages have distinct numbers.
    ///
    /// # Errors
    /// Returns an error if the network sends collectives as messages, or for a time that
    /// exceeds 64 bits.
    fn carry_out(
        &mut self,
        _number: u32,
        _planned: PlannedCollective,
        _ready: Time,
    ) -> Result<(), SimulationError> {
        let problem = "this network carries messages, not plans";
        Err(SimulationError::refused("live", problem))
    }

    /// Returns the time of the network's next event, provided that no message is sent before this
    /// time. Returns `None` if there is no event.
    ///
    /// # Errors
    /// Returns an error for a time that exceeds 64 bits.
    fn next_time(&mut self) -> Result<Option<Time>, SimulationError> {
        Ok(None)
    }

    /// Advances to the time of the next event and appends the departures and arrivals of messages
    /// to `happened`. There may be none. A message departs before it arrives, or at the same time.
    ///
    /// # Errors
    /// Returns an error if no event can happen any more, or for a time that exceeds 64
    /// bits.
    fn advance(&mut self, _happened: &mut Vec<MessageEvent>) -> Result<(), SimulationError> {
        Ok(())
    }

    /// Ends the simulation at a time and returns the network's results.
    ///
    /// # Errors
    /// Returns an error for a time that exceeds 64 bits.
    fn close(self: Box<Self>, _time: Time) -> Result<Details, SimulationError> {
        Ok(Details::default())
    }
}

/// Collective that occupies the circuits of its plan for the duration of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCollective {
    /// Duration of the plan, from the first circuit to the last delivery.
    pub time: Time,
    /// Part of the fabric that the plan occupies.
    pub part: OccupiedPart,
}

/// Part of a fabric that a planned collective occupies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OccupiedPart {
    /// Consecutive ranks, as the first rank and the number of ranks, and all links between two of
    /// them.
    Span(u32, u32),
    /// Ranks, and links of a graph by their numbers.
    Links {
        /// Ranks that take part.
        ranks: Arc<[u32]>,
        /// Links that the plan's light passes.
        links: Arc<[u32]>,
    },
}

/// Departure or arrival of a message, or the end of a planned collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageEvent {
    /// Number of the message or collective.
    pub message: u32,
    /// True if the last byte has left the sender.
    pub left: bool,
    /// True if the last byte has arrived.
    pub arrived: bool,
    /// Time of the event. It is at or shortly after the network's current time.
    pub time: Time,
}

impl MessageEvent {
    /// Creates the event of a message that departs and arrives at the same time, because it
    /// occupies its links (or its circuit) until the last byte arrives.
    pub fn arrival(message: u32, time: Time) -> MessageEvent {
        MessageEvent {
            message,
            left: true,
            arrived: true,
            time,
        }
    }
}

crate::totals! {
    /// Busiest of the links that messages share, and its use.
    #[derive(Debug, Clone, PartialEq)]
    pub struct BusiestLink {
        /// Name of the busiest link; empty if nothing was sent.
        pub busiest_link: Option<String>,
        /// Share of the busiest link's capacity that was used over the whole time, from 0 to 1.
        pub busiest_link_utilisation: Option<f64>,
    }
}

impl BusiestLink {
    /// Returns the busiest link up to `time`, given the bytes that each link carried.
    pub(super) fn details(network: &dyn Network, bytes: &[u64], time: Time) -> Details {
        let shares = link_shares::shares(network, bytes, time);
        let busiest = link_shares::highest(&shares);
        let busiest = busiest.map(|link| (network.link_name(link), shares[link as usize]));
        let (busiest_link, busiest_link_utilisation) = busiest.unzip();
        Details::default().with(BusiestLink {
            busiest_link,
            busiest_link_utilisation,
        })
    }
}
