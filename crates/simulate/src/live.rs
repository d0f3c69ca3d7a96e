//! Networks that carry messages one by one for a program that computes between messages, such as a
//! replay.
//!
//! **Coupling.** The network and the program share one simulated time. The program hands a message
//! to the network at the instant at which the program sends the message; from then on the message
//! competes with all traffic of that instant. Before the program advances its clock, it asks the
//! network for the time of its next event. If that is not later than the program's next event, the
//! network advances first, and the departures and arrivals that the network reports let the program
//! continue. A late message therefore delays exactly the operations that wait for it, and
//! concurrent collectives share the network.

use super::{SimulationError, link_shares};
use crate::table::Details;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::network::Network;
use opticoll_plan::plan::NamedRoutes;
use opticoll_plan::plan::routes::FABRIC_ROUTE;

/// Message that is ready to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyMessage {
    /// Sending rank.
    pub source: u32,
    /// Receiving rank.
    pub destination: u32,
    /// Route that the program names, or [`FABRIC_ROUTE`].
    pub route: u32,
    /// Size.
    pub bytes: Bytes,
    /// Time at which the message is ready.
    pub ready: Time,
}

impl ReadyMessage {
    /// Creates a message that takes the fabric's route.
    pub fn new((source, destination): (u32, u32), bytes: Bytes, ready: Time) -> ReadyMessage {
        ReadyMessage {
            source,
            destination,
            route: FABRIC_ROUTE,
            bytes,
            ready,
        }
    }

    /// Returns the delivery of a message from a rank to itself, which takes no time and no network;
    /// `None` for other messages.
    pub(super) fn local_delivery(self) -> Option<MessageTimes> {
        (self.source == self.destination).then_some(MessageTimes {
            leaves: self.ready,
            arrives: self.ready,
        })
    }
}

/// Times at which a message has left its sender and has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageTimes {
    /// Time at which the last byte has left the sender.
    pub leaves: Time,
    /// Time at which the last byte has arrived.
    pub arrives: Time,
}

/// Network whose clock is advanced by its caller: a simulator, or a cost model of single messages.
pub trait Live {
    /// Returns the number of ranks; `None` if any rank may send.
    fn ranks(&self) -> Option<u32> {
        None
    }

    /// Sends a message with a unique number. Calls are in the order of `ready`, which is not before
    /// the current time of the network. Returns the message's times, or `None` if they depend on
    /// later messages.
    ///
    /// # Errors
    /// A message that the network cannot carry; a time that exceeds 64 bits.
    fn send(
        &mut self,
        number: u32,
        message: ReadyMessage,
    ) -> Result<Option<MessageTimes>, SimulationError>;

    /// Adopts the routes that a program names for its messages. Called before the first message.
    ///
    /// # Errors
    /// A network without links that messages share.
    fn take_routes(&mut self, _routes: &NamedRoutes) -> Result<(), SimulationError> {
        let problem = "this network has routes of its own only";
        Err(SimulationError::refused("named_routes", problem))
    }

    /// Carries out a planned collective as soon as its circuits are free. No message has the same
    /// number.
    ///
    /// # Errors
    /// A network that carries collectives as messages; a time that exceeds 64 bits.
    fn carry_out(
        &mut self,
        _number: u32,
        _planned: PlannedCollective,
        _ready: Time,
    ) -> Result<(), SimulationError> {
        let problem = "this network carries messages, not plans";
        Err(SimulationError::refused("live", problem))
    }

    /// Returns the time of the next event if no message is sent before; `None` if there is no
    /// event.
    ///
    /// # Errors
    /// A time that exceeds 64 bits.
    fn next_time(&mut self) -> Result<Option<Time>, SimulationError> {
        Ok(None)
    }

    /// Advances to the time of the next event and appends the departures and arrivals of messages,
    /// possibly none. A message departs before it arrives, or at the same time.
    ///
    /// # Errors
    /// A network in which nothing can happen any more; a time that exceeds 64 bits.
    fn advance(&mut self, _happened: &mut Vec<MessageEvent>) -> Result<(), SimulationError> {
        Ok(())
    }

    /// Ends the run at a time and returns the network's results.
    ///
    /// # Errors
    /// A time that exceeds 64 bits.
    fn close(self: Box<Self>, _time: Time) -> Result<Details, SimulationError> {
        Ok(Details::default())
    }
}

/// Collective that uses the circuits of its plan and takes the time of its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedCollective {
    /// Time of the plan, from its first circuit to its last delivery.
    pub time: Time,
    /// Ranks that the plan's circuits lie between: the first rank, and the number of consecutive
    /// ranks. The circuits may use any link between two of these ranks.
    pub span: (u32, u32),
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
    /// Time of the event: the current time of the network, or a little later.
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
    /// Use of the links that messages share.
    #[derive(Debug, Clone, PartialEq)]
    pub struct BusiestLink {
        /// Name of the busiest link; empty if nothing was sent.
        pub busiest_link: Option<String>,
        /// Share of the busiest link's rate that was used over the whole time.
        pub busiest_link_utilisation: Option<f64>,
    }
}

impl BusiestLink {
    /// Returns the busiest link and its utilisation up to a time, given the bytes that each link
    /// carried.
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
