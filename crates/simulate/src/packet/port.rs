//! Ports, which are the sending ends of links.

use super::event_queue::LATEST_PS;
use super::{PacketError, PacketOptions};
use crate::outcome::packets::LinkClass;
use opticoll_base::units::Time;
use opticoll_fabric::network::{Network, Sharing};

/// Maximum of each delay, period and latency: 13 days, the limit of simulated time.
const MAX_TIME: Time = Time::from_ps(LATEST_PS);

/// Sending end of a link. The struct fills one cache line.
#[derive(Clone)]
#[repr(align(64))]
pub(super) struct PacketPort {
    /// Time (ps) from which the port can send.
    pub(super) free: u64,
    /// Total time (ps) for which the port has been sending.
    pub(super) busy: u64,
    pub(super) full_wire: u64,
    pub(super) latency: u64,
    /// Router or terminal at the other end of the link.
    pub(super) target: u32,
    /// Network part to which `target` belongs.
    pub(super) part: u8,
    /// Time (ps) of the last arbitration decision, if decisions are made ahead of time.
    pub(super) decided: u64,
    /// Number of accepted chunks that wait for the link.
    pub(super) queued: u32,
    pub(super) class: LinkClass,
    /// True if the event queue contains a `Send` event of this port.
    pub(super) pending: bool,
    /// Channel at which the round-robin arbitration continues.
    pub(super) turn: u8,
    /// Number of short delays that have been drawn for the port.
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

/// Returns an error if `time`, the value of `option`, exceeds the limit of simulated time.
pub(super) fn check_time(option: &'static str, time: Time) -> Result<(), PacketError> {
    if time > MAX_TIME {
        return Err(PacketError::Option {
            option,
            problem: format!("is {time}; at most 13 days are accepted"),
        });
    }
    Ok(())
}
