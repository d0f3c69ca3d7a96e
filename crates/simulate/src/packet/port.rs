//! Ports: the sending side of links.

use super::event_queue::LATEST_PS;
use super::{PacketError, PacketOptions};
use crate::outcome::packets::LinkClass;
use opticoll_base::units::Time;
use opticoll_fabric::network::{Network, Sharing};

/// Maximum of a delay, period or latency: 13 days, the limit of simulated time.
const MAX_TIME: Time = Time::from_ps(LATEST_PS);

/// Sending side of a link. Fills one cache line.
#[derive(Clone)]
#[repr(align(64))]
pub(super) struct PacketPort {
    /// Time in picoseconds from which the port can send.
    pub(super) free: u64,
    /// Total time of sending in picoseconds.
    pub(super) busy: u64,
    pub(super) full_wire: u64,
    pub(super) latency: u64,
    /// Router or terminal at the other end, and the part of the network that contains it.
    pub(super) target: u32,
    pub(super) part: u8,
    /// Time of the last arbitration decision, if decisions are made ahead.
    pub(super) decided: u64,
    /// Number of accepted chunks that wait.
    pub(super) queued: u32,
    pub(super) class: LinkClass,
    /// True if the event queue holds a `Send` event of this port.
    pub(super) pending: bool,
    /// Channel after the last one served.
    pub(super) turn: u8,
    /// Number of short delays drawn so far.
    pub(super) draws: u32,
}

impl PacketPort {
    pub(super) fn new(class: LinkClass, target: u32, full_wire: u64, latency: u64) -> PacketPort {
        PacketPort {
            free: 0,
            busy: 0,
            full_wire,
            latency,
            target,
            part: 0,
            decided: 0,
            queued: 0,
            class,
            pending: false,
            turn: 0,
            draws: 0,
        }
    }
}

/// Creates the port of a link of a network.
pub(super) fn port(
    network: &dyn Network,
    link: u32,
    class: LinkClass,
    target: u32,
    options: &PacketOptions,
) -> Result<PacketPort, PacketError> {
    let wire = network.links()[link as usize];
    if wire.sharing != Sharing::Shared {
        return Err(PacketError::Link {
            link: network.link_name(link),
            problem: "packets share links, so a rate per flow does not apply",
        });
    }
    check_time("latency", wire.latency)?;
    let full_wire = wire.rate.transmission(options.chunk)?;
    check_time("the time of a chunk on a link", full_wire)?;
    Ok(PacketPort::new(
        class,
        target,
        full_wire.ps(),
        wire.latency.ps(),
    ))
}

/// Returns an error if `time` exceeds the limit of simulated time.
pub(super) fn check_time(option: &'static str, time: Time) -> Result<(), PacketError> {
    if time > MAX_TIME {
        return Err(PacketError::Option {
            option,
            problem: format!("is {time}; at most 13 days are accepted"),
        });
    }
    Ok(())
}
