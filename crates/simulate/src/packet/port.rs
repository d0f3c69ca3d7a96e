//! Ports: links as their senders see them.

use super::event_queue::LATEST_PS;
use super::{PacketError, PacketOptions};
use crate::outcome::packets::LinkClass;
use opticoll_base::units::Time;
use opticoll_fabric::network::{Network, Sharing};

/// No delay, period or latency may be longer: 13 days, where simulated time ends.
const LONGEST: Time = Time::from_ps(LATEST_PS);

/// A link as its sender sees it. One line of the cache.
#[derive(Clone)]
#[repr(align(64))]
pub(super) struct PacketPort {
    /// When it can send next, in picoseconds.
    pub(super) free: u64,
    /// How long it was sending.
    pub(super) busy: u64,
    pub(super) full_wire: u64,
    pub(super) latency: u64,
    /// The router or terminal that it leads to, and the part of the network which that is in.
    pub(super) target: u32,
    pub(super) part: u8,
    /// When it was decided last which chunk goes, where that is done ahead.
    pub(super) decided: u64,
    /// Accepted chunks that wait.
    pub(super) queued: u32,
    pub(super) class: LinkClass,
    /// Whether a send is on the event_queue.
    pub(super) pending: bool,
    /// The channel after the one served last.
    pub(super) turn: u8,
    /// Small delays drawn so far.
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

/// The port of a link of a network.
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
            problem: "packets share links; a rate per flow has no meaning for them",
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

/// Refuses times so long that simulated time would end.
pub(super) fn check_time(option: &'static str, time: Time) -> Result<(), PacketError> {
    if time > LONGEST {
        return Err(PacketError::Option {
            option,
            problem: format!("is {time}; at most 13 days are accepted"),
        });
    }
    Ok(())
}
