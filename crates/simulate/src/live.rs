//! Messages that are sent while a simulation runs, for programs that compute between messages: replays.
//!
//! **Coupling.** A network and the program that sends over it share one time. A message is given to the network at the
//! instant at which the program sends it; the network then competes with all that is under way at that
//! instant, whoever sent it. Before the program moves its clock it asks the network when something happens
//! there next; if that is not later than the program's own next event, the network goes there, and what
//! it says has left or arrived lets the program go on.
//! So a late message delays exactly what waits for it, and a burst of collectives meets in the network.

use super::{SimulationError, link_shares};
use crate::table::Details;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::network::Network;
use opticoll_plan::plan::NamedRoutes;
use opticoll_plan::plan::routes::OF_FABRIC;

/// A message that is ready to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyMessage {
    /// The sending rank.
    pub source: u32,
    /// The receiving rank.
    pub destination: u32,
    /// The route that the program names for it; [`OF_FABRIC`] otherwise.
    pub route: u32,
    /// Its size.
    pub bytes: Bytes,
    /// When it is ready.
    pub ready: Time,
}

impl ReadyMessage {
    /// A message by the fabric's route.
    pub fn new((source, destination): (u32, u32), bytes: Bytes, ready: Time) -> ReadyMessage {
        ReadyMessage {
            source,
            destination,
            route: OF_FABRIC,
            bytes,
            ready,
        }
    }

    /// Returns its delivery, if its rank sends it to itself: at once, since it needs no network.
    pub(super) fn to_itself(self) -> Option<MessageTimes> {
        (self.source == self.destination).then_some(MessageTimes {
            leaves: self.ready,
            arrives: self.ready,
        })
    }
}

/// When a message has left and when it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageTimes {
    /// When its last byte has left the sender.
    pub leaves: Time,
    /// When its last byte has arrived.
    pub arrives: Time,
}

/// A network whose clock is moved from outside: a simulator, or a cost of each message alone.
pub trait Live {
    /// Returns the number of ranks; `None`: any number.
    fn ranks(&self) -> Option<u32> {
        None
    }

    /// Sends a message with a number of its own. Calls come in the order of `ready`, which is not before the instant
    /// reached last. Returns when it arrives, or `None` where only time will tell.
    ///
    /// # Errors
    /// A message that cannot be carried; a time that leaves 64 bits.
    fn send(
        &mut self,
        number: u32,
        message: ReadyMessage,
    ) -> Result<Option<MessageTimes>, SimulationError>;

    /// Takes over the routes that a program names for its messages, before any is sent.
    ///
    /// # Errors
    /// A network without links that messages share one by one.
    fn take_routes(&mut self, _routes: &NamedRoutes) -> Result<(), SimulationError> {
        let problem = "this network has routes of its own only";
        Err(SimulationError::refused("named_routes", problem))
    }

    /// Carries out a planned collective, under a number that no message has, when its circuits are free.
    ///
    /// # Errors
    /// A network whose collectives are messages; a time that leaves 64 bits.
    fn carry_out(
        &mut self,
        _number: u32,
        _planned: PlannedCollective,
        _ready: Time,
    ) -> Result<(), SimulationError> {
        let problem = "this network carries messages, not plans";
        Err(SimulationError::refused("live", problem))
    }

    /// When something happens next, if nothing is sent before; `None`: never.
    ///
    /// # Errors
    /// A time that leaves 64 bits.
    fn next_time(&mut self) -> Result<Option<Time>, SimulationError> {
        Ok(None)
    }

    /// Goes to that instant and appends what has become of messages; it may be nothing yet. A message
    /// leaves before it arrives, or with it.
    ///
    /// # Errors
    /// Nothing can happen any more; a time that leaves 64 bits.
    fn advance(&mut self, _happened: &mut Vec<MessageEvent>) -> Result<(), SimulationError> {
        Ok(())
    }

    /// What was found by a time.
    ///
    /// # Errors
    /// A time that leaves 64 bits.
    fn close(self: Box<Self>, _time: Time) -> Result<Details, SimulationError> {
        Ok(Details::default())
    }
}

/// A collective that is carried out by its plan: with the plan's circuits, in the plan's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedCollective {
    /// The time of the plan, from its first circuit to its last delivery.
    pub time: Time,
    /// The ranks of the network between which its circuits lie: the first, and how many follow one
    /// another. Its circuits may use any link between two of them.
    pub span: (u32, u32),
}

/// What has become of a message, or of a planned collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageEvent {
    /// Its number.
    pub message: u32,
    /// Whether its last byte has left its sender.
    pub left: bool,
    /// Whether it has arrived.
    pub arrived: bool,
    /// When: now or a little later.
    pub time: Time,
}

impl MessageEvent {
    /// A message that has left when it has arrived, since it holds its links or circuit all along.
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
    /// How links that messages share were used.
    #[derive(Debug, Clone, PartialEq)]
    pub struct BusiestLink {
        /// Name of the link used most; none where nothing was sent.
        pub busiest_link: Option<String>,
        /// Share of its rate that was used over the whole time.
        pub busiest_link_utilisation: Option<f64>,
    }
}

impl BusiestLink {
    /// The use of links by the bytes that each carried up to a time.
    pub(super) fn of_links(network: &dyn Network, bytes: &[u64], time: Time) -> Details {
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
