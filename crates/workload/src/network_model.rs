//! What carries the messages of a replay: cost models, and simulated networks on a clock that the replay
//! drives.
//!
//! **Coupling.** A simulated network and the replay share one time. A message is given to the network at
//! the instant at which the program sends it; the network then competes with all that is under way at that
//! instant, whoever sent it. Before the replay moves its clock it asks the network when something happens
//! there next; if that is not later than the replay's own next event, the network goes there, and what
//! it says has left or arrived lets sends and receives of the program end, which lets the program go on.
//! So a late message delays exactly what waits for it, and a burst of collectives meets in the network.
//!
//! **What is modelled**, by [`SimulatedNetwork`]:
//!
//! * an electrical fabric under `fluid`: each message is a flow over its route; flows share links max-min
//!   fairly; a message has left when it has arrived, since it holds the links all along;
//! * under `packet`: each message is handed to its rank's terminal, which cuts it into chunks; it has left
//!   when the last chunk is on the terminal's link;
//! * a ring of wavelengths: collectives are carried out by their plans, and wait until the links that they use are
//!   free; each other message asks for a lightpath ([`opticoll_simulate::on_demand`]) and waits for one if there is none;
//!   it has left when it has arrived.
//!
//! A message to the rank itself costs nothing. What messages cost at their ends is the replay's matter
//! ([`EndCosts`](super::replay::EndCosts)).

use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Fabric;
use opticoll_simulate::live::{Live, MessageEvent, PlannedCollective};
use opticoll_simulate::{Method, SimulationError, Simulator};

/// A message that is ready to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyMessage {
    /// The sending rank.
    pub source: u32,
    /// The receiving rank.
    pub destination: u32,
    /// The route that the program names for it; [`OF_FABRIC`](opticoll_plan::plan::routes::OF_FABRIC)
    /// otherwise.
    pub route: u32,
    /// Its size.
    pub bytes: Bytes,
    /// When it is ready.
    pub ready: Time,
}

impl ReadyMessage {
    /// Its delivery, if its rank sends it to itself: at once.
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

/// Carries messages between ranks.
pub trait NetworkModel {
    /// How many ranks there are; `None`: any number.
    fn ranks(&self) -> Option<u32> {
        None
    }

    /// Takes a message with a number of its own. Calls come in the order of `ready`, which is not
    /// before the instant reached last. Says when it arrives, or `None` where only time will tell.
    ///
    /// # Errors
    /// A message that cannot be carried; a time that leaves 64 bits.
    fn send(
        &mut self,
        number: u32,
        message: ReadyMessage,
    ) -> Result<Option<MessageTimes>, SimulationError>;

    /// Carries out a planned collective; only time will tell when it ends.
    ///
    /// # Errors
    /// A network that carries messages alone; a time that leaves 64 bits.
    fn carry_out(
        &mut self,
        _number: u32,
        _planned: PlannedCollective,
        _ready: Time,
    ) -> Result<(), SimulationError> {
        let problem = "a cost of messages carries out no plans";
        Err(SimulationError::refused("replay", problem))
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
}

/// A simulated network.
pub struct SimulatedNetwork<'a> {
    /// The network.
    pub live: Box<dyn Live + 'a>,
    /// How many ranks it has.
    pub ranks: u32,
}

/// The settings of simulators that have no place in a replay, which has ends, calls and steps of its own.
const OF_PLANS: [&str; 4] = ["start", "endpoint", "issue", "overhead"];

/// A fabric without messages under the simulator of a method, and the simulator's name.
///
/// # Errors
/// A fabric or simulator that knows no single messages, a setting that does not fit.
pub fn on_fabric<'a>(
    fabric: &'a Fabric,
    method: &'a Method,
) -> Result<(SimulatedNetwork<'a>, &'static str), SimulationError> {
    let of = "plans; the ends of a replay have an overhead and an eager limit of their own";
    let simulator = Simulator::of(fabric, method)?;
    let live = simulator.live.ok_or_else(|| {
        let hint = "replays run message by message: fluid and packet on electrical fabrics, circuit on a \
                    wdm_ring";
        simulator.not_on(fabric, hint)
    })?;
    method.lacks(&OF_PLANS, simulator.name, of)?;
    let live = live(fabric, method)?;
    let ranks = fabric.ranks();
    Ok((SimulatedNetwork { live, ranks }, simulator.name))
}

impl NetworkModel for SimulatedNetwork<'_> {
    fn ranks(&self) -> Option<u32> {
        Some(self.ranks)
    }

    fn send(
        &mut self,
        number: u32,
        message: ReadyMessage,
    ) -> Result<Option<MessageTimes>, SimulationError> {
        if let Some(delivery) = message.to_itself() {
            return Ok(Some(delivery));
        }
        let ends = (message.source, message.destination);
        self.live
            .send(number, ends, message.route, message.bytes, message.ready)?;
        Ok(None)
    }

    fn carry_out(
        &mut self,
        number: u32,
        planned: PlannedCollective,
        ready: Time,
    ) -> Result<(), SimulationError> {
        self.live.carry_out(number, planned, ready)
    }

    fn next_time(&mut self) -> Result<Option<Time>, SimulationError> {
        self.live.next_time()
    }

    fn advance(&mut self, happened: &mut Vec<MessageEvent>) -> Result<(), SimulationError> {
        self.live.advance(happened)
    }
}
