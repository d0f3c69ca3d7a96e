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
//! **What is modelled**, by [`OnFabric`]:
//!
//! * an electrical fabric under `fluid`: each message is a flow over its route; flows share links max-min
//!   fairly; a message has left when it has arrived, since it holds the links all along;
//! * under `packet`: each message is handed to its rank's terminal, which cuts it into chunks; it has left
//!   when the last chunk is on the terminal's link;
//! * a ring of wavelengths: each message asks for a light path ([`simulate::on_demand`]) and waits for one if
//!   there is none; it has left when it has arrived.
//!
//! At the ends: a rank spends `overhead` on each message sent and received, messages up to `eager` leave
//! at once, larger ones when the receive has begun, and a message to the rank itself costs nothing.

use super::cost::{CostModel, Delivery, Message};
use crate::fabric::Fabric;
use crate::simulate::burst::collective::RequestUse;
use crate::simulate::fluid;
use crate::simulate::on_demand::{LightPathUse, OnDemand};
use crate::simulate::{self, Method, SimulationError, default_policy, default_simulator, packet};
use crate::units::{Bytes, Time, UnitError};

/// What has become of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Happening {
    /// Its number.
    pub message: u32,
    /// Whether its last byte has left its sender.
    pub left: bool,
    /// Whether it has arrived.
    pub arrived: bool,
    /// When: now or a little later.
    pub time: Time,
}

/// Carries messages between ranks.
pub trait Carrier {
    /// How many ranks there are; `None`: any number.
    fn ranks(&self) -> Option<u32> {
        None
    }

    /// See [`CostModel::overhead`].
    fn overhead(&self) -> Time {
        Time::ZERO
    }

    /// See [`CostModel::is_eager`].
    fn is_eager(&self, _bytes: Bytes) -> bool {
        true
    }

    /// Takes a message with a number of its own. Calls come in the order of `ready`, which is not
    /// before the instant reached last. Says when it arrives, or `None` where only time will tell.
    ///
    /// # Errors
    /// A message that cannot be carried; a time that leaves 64 bits.
    fn send(&mut self, number: u32, message: Message) -> Result<Option<Delivery>, SimulationError>;

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
    fn advance(&mut self, _happened: &mut Vec<Happening>) -> Result<(), SimulationError> {
        Ok(())
    }
}

/// A cost model carries messages without a clock, with costs at the ends of its own.
pub struct Costs<'a, M>(
    /// The model.
    pub &'a mut M,
);

impl<M: CostModel> Carrier for Costs<'_, M> {
    fn overhead(&self) -> Time {
        self.0.overhead()
    }

    fn is_eager(&self, bytes: Bytes) -> bool {
        self.0.is_eager(bytes)
    }

    fn send(
        &mut self,
        _number: u32,
        message: Message,
    ) -> Result<Option<Delivery>, SimulationError> {
        Ok(Some(self.0.send(message)?))
    }
}

/// What a message costs at its ends, whatever carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ends {
    /// The time that a rank spends on each message sent and each received.
    pub overhead: Time,
    /// Which messages leave at once.
    pub eager: Eager,
}

/// Which messages leave at once; the others leave when their receive has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Eager {
    /// All.
    #[default]
    All,
    /// Those of at most so many bytes.
    UpTo(Bytes),
    /// None, not even those without bytes.
    Never,
}

/// A cost model with other ends than its own.
pub struct WithEnds<M> {
    /// The model, whose overhead and eager limit are not used.
    pub model: M,
    /// The ends.
    pub ends: Ends,
}

impl<M: CostModel> CostModel for WithEnds<M> {
    fn overhead(&self) -> Time {
        self.ends.overhead
    }

    fn is_eager(&self, bytes: Bytes) -> bool {
        self.ends.is_eager(bytes)
    }

    fn send(&mut self, message: Message) -> Result<Delivery, UnitError> {
        self.model.send(message)
    }
}

impl Ends {
    pub(super) fn is_eager(&self, bytes: Bytes) -> bool {
        match self.eager {
            Eager::All => true,
            Eager::UpTo(limit) => bytes <= limit,
            Eager::Never => false,
        }
    }
}

enum Simulated<'a> {
    Fluid(Box<fluid::Driven<'a>>),
    Packet(Box<packet::Driven<'a>>),
    Ring(Box<OnDemand<'a>>),
}

/// A fabric with the simulator that moves its messages.
pub struct OnFabric<'a> {
    simulated: Simulated<'a>,
    simulator: &'static str,
    ranks: u32,
    ends: Ends,
    ended: Vec<u32>,
    reports: Vec<packet::Report>,
}

/// What a simulated network has found beside the times of the messages.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// How links were used.
    Links {
        /// The link used most: its name and the share of its rate that was used over the whole time.
        busiest: Option<(String, f64)>,
    },
    /// What light paths have cost.
    LightPaths(LightPathUse),
    /// The same in a network of bursts, and what was refused.
    Requests(RequestUse),
}

/// The settings of simulators that have no place in a replay, which has ends, calls and steps of its own.
const OF_PLANS: [&str; 4] = ["start", "endpoint", "issue", "overhead"];

impl<'a> OnFabric<'a> {
    /// A fabric without messages, under the simulator of `method`, which [`complete`] has completed, or
    /// the fabric's own.
    ///
    /// # Errors
    /// A fabric or simulator that knows no single messages, a setting that does not fit.
    pub fn new(
        fabric: &'a Fabric,
        method: &'a Method,
        ends: Ends,
    ) -> Result<OnFabric<'a>, SimulationError> {
        let ring = fabric.ring().is_some();
        let simulator = match method.simulator {
            None if ring => "circuit",
            None => default_simulator(fabric),
            Some(simulator) => simulator,
        };
        let simulated = match (simulator, fabric.network(), fabric.ring()) {
            ("fluid", Some(network), _) => {
                let flows = fluid::Driven::new(network, &method.fluid)?;
                Simulated::Fluid(Box::new(flows))
            }
            ("packet", Some(_), _) => {
                Simulated::Packet(Box::new(packet::Driven::new(fabric, &method.packet)?))
            }
            ("circuit", _, Some(ring)) => {
                let policy = method.policy.unwrap_or(default_policy(fabric));
                Simulated::Ring(Box::new(OnDemand::new(ring, policy)?))
            }
            _ => {
                return Err(SimulationError::WrongFabric {
                    simulator,
                    family: fabric.family(),
                    hint: "replays run message by message: fluid and packet on electrical fabrics, \
                           circuit on a wdm_ring",
                });
            }
        };
        method.known_to(simulator)?;
        let of = "plans; the ends of a replay have an overhead and an eager limit of their own";
        method.lacks(&OF_PLANS, simulator, of)?;
        Ok(OnFabric {
            simulated,
            simulator,
            ranks: fabric.ranks(),
            ends,
            ended: Vec::new(),
            reports: Vec::new(),
        })
    }

    /// The simulator's name.
    pub fn simulator(&self) -> &'static str {
        self.simulator
    }

    /// What was found by a time.
    ///
    /// # Errors
    /// A time that leaves 64 bits.
    pub fn close(self, fabric: &Fabric, time: Time) -> Result<Found, SimulationError> {
        let links = match self.simulated {
            Simulated::Ring(ring) => return Ok(Found::LightPaths(ring.used())),
            Simulated::Fluid(flows) => flows.close()?.links.bytes,
            Simulated::Packet(packets) => packets.close(time)?.links.bytes,
        };
        let network = fabric.network().into_iter();
        let rates = network.flat_map(|network| network.links());
        let shares = (0u32..)
            .zip(links.iter().zip(rates))
            .map(|(link, (&bytes, wire))| {
                let carried = wire.rate.bits_per_second() as f64 * time.seconds();
                (link, bytes as f64 * 8.0 / carried)
            });
        let used = shares.filter(|(_, share)| share.is_finite() && *share > 0.0);
        // The first of the busiest.
        let busiest = used.reduce(|most, one| if one.1 > most.1 { one } else { most });
        let named = busiest.zip(fabric.network());
        let busiest = named.map(|((link, share), network)| (network.link_name(link), share));
        Ok(Found::Links { busiest })
    }
}

/// The method as a replay needs it: with the traffic beside the messages among the options of the
/// simulator that will run.
///
/// # Errors
/// Traffic that the fabric or the simulator cannot have.
pub fn complete(fabric: &Fabric, method: &Method) -> Result<Method, SimulationError> {
    let mut completed = method.clone();
    match method.simulator.unwrap_or(default_simulator(fabric)) {
        "fluid" => completed.fluid = simulate::fluid_options(fabric, method)?,
        "packet" => completed.packet = simulate::packet_settings(fabric, method)?,
        _ => {}
    }
    Ok(completed)
}

impl Carrier for OnFabric<'_> {
    fn ranks(&self) -> Option<u32> {
        Some(self.ranks)
    }

    fn overhead(&self) -> Time {
        self.ends.overhead
    }

    fn is_eager(&self, bytes: Bytes) -> bool {
        self.ends.is_eager(bytes)
    }

    fn send(&mut self, number: u32, message: Message) -> Result<Option<Delivery>, SimulationError> {
        if let Some(delivery) = message.to_itself() {
            return Ok(Some(delivery));
        }
        let Message { bytes, ready, .. } = message;
        let ends = (message.source, message.destination);
        match &mut self.simulated {
            Simulated::Fluid(flows) => flows.start(number, ends, bytes, ready)?,
            Simulated::Packet(packets) => packets.send(number, ends, bytes, ready)?,
            Simulated::Ring(ring) => ring.send(number, ends, bytes, ready)?,
        }
        Ok(None)
    }

    fn next_time(&mut self) -> Result<Option<Time>, SimulationError> {
        Ok(match &mut self.simulated {
            Simulated::Fluid(flows) => flows.next_time()?,
            Simulated::Packet(packets) => packets.next_time(),
            Simulated::Ring(ring) => ring.next_time(),
        })
    }

    fn advance(&mut self, happened: &mut Vec<Happening>) -> Result<(), SimulationError> {
        let now = self.next_time()?.unwrap_or(Time::ZERO);
        match &mut self.simulated {
            Simulated::Fluid(flows) => flows.advance(&mut self.ended)?,
            Simulated::Ring(ring) => ring.advance(&mut self.ended)?,
            Simulated::Packet(packets) => {
                packets.advance(&mut self.reports)?;
                happened.extend(self.reports.drain(..).map(|report| Happening {
                    message: report.message,
                    left: !report.arrived,
                    arrived: report.arrived,
                    time: report.time,
                }));
            }
        }
        happened.extend(self.ended.drain(..).map(|message| Happening {
            message,
            left: true,
            arrived: true,
            time: now,
        }));
        Ok(())
    }
}
