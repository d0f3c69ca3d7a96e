//! Messages that are sent while a simulation runs, for programs that compute between messages: replays.

use super::SimulationError;
use super::burst::collective::RequestUse;
use super::on_demand::LightPathUse;
use crate::network::Network;
use crate::units::{Bytes, Time};

/// A network under a simulator whose clock is moved from outside.
pub trait Live {
    /// Sends a message with a number of its own between two ranks. Calls come in the order of `ready`,
    /// which is not before the instant reached last.
    ///
    /// # Errors
    /// A message that cannot be carried; a time that leaves 64 bits.
    fn send(
        &mut self,
        number: u32,
        ends: (u32, u32),
        bytes: Bytes,
        ready: Time,
    ) -> Result<(), SimulationError>;

    /// When something happens next, if nothing is sent before; `None`: never.
    ///
    /// # Errors
    /// A time that leaves 64 bits.
    fn next_time(&mut self) -> Result<Option<Time>, SimulationError>;

    /// Goes to that instant and appends what has become of messages; it may be nothing yet. A message
    /// leaves before it arrives, or with it.
    ///
    /// # Errors
    /// Nothing can happen any more; a time that leaves 64 bits.
    fn advance(&mut self, happened: &mut Vec<Happening>) -> Result<(), SimulationError>;

    /// What was found by a time.
    ///
    /// # Errors
    /// A time that leaves 64 bits.
    fn close(self: Box<Self>, time: Time) -> Result<NetworkUse, SimulationError>;
}

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

impl Happening {
    /// A message that has left when it has arrived, since it holds its links or circuit all along.
    pub(super) fn arrival(message: u32, time: Time) -> Happening {
        Happening {
            message,
            left: true,
            arrived: true,
            time,
        }
    }
}

/// How a network was used.
#[derive(Debug, Clone, PartialEq)]
pub enum NetworkUse {
    /// How links were used.
    Links {
        /// The link used most: its name and the share of its rate that was used over the whole time.
        busiest: Option<(String, f64)>,
    },
    /// What circuits have cost.
    LightPaths(LightPathUse),
    /// The same in a network of bursts, and what was blocked.
    Requests(RequestUse),
}

impl NetworkUse {
    /// The use of links by the bytes that each carried up to a time.
    pub(super) fn of_links(network: &dyn Network, bytes: &[u64], time: Time) -> NetworkUse {
        let shares =
            (0u32..)
                .zip(bytes.iter().zip(network.links()))
                .map(|(link, (&bytes, wire))| {
                    let carried = wire.rate.bits_per_second() as f64 * time.seconds();
                    (link, bytes as f64 * 8.0 / carried)
                });
        let used = shares.filter(|(_, share)| share.is_finite() && *share > 0.0);
        // The first of the busiest.
        let busiest = used.reduce(|most, one| if one.1 > most.1 { one } else { most });
        let busiest = busiest.map(|(link, share)| (network.link_name(link), share));
        NetworkUse::Links { busiest }
    }
}
