//! Short delays of terminals and routers, fixed or drawn at random. Each link has its own sequence
//! of random numbers, so events at other links do not change its delays.

use super::port::PacketPort;
use super::{DelayRange, Overheads};
use opticoll_base::hash::hash;

/// Short delays of terminals and routers. If `jitter` contains a seed, the delays are drawn at
/// random.
#[derive(Clone)]
pub(super) struct Delays {
    overheads: Overheads,
    /// Delays (ps) without a seed: hand-over, send, notice and credit.
    fixed: [u64; 4],
    jitter: Option<u64>,
}

impl Delays {
    pub(super) fn new(overheads: Overheads, jitter: Option<u64>) -> Delays {
        let middle = |range: DelayRange| range.min.ps() + range.width.ps() / 2;
        let Overheads {
            handover,
            send,
            notice,
            credit,
            ..
        } = overheads;
        Delays {
            overheads,
            fixed: [handover, send, notice, credit].map(middle),
            jitter,
        }
    }

    /// Returns the minimum delay (ps) of sending a chunk, and the minimum delay (ps) of a credit.
    pub(super) fn minimum(overheads: Overheads, jitter: Option<u64>) -> (u64, u64) {
        let delays = Delays::new(overheads, jitter);
        match jitter {
            None => (delays.fixed[1], delays.fixed[3]),
            Some(_) => (overheads.send.min.ps(), overheads.credit.min.ps()),
        }
    }

    pub(super) fn sequencing(&self) -> u64 {
        self.overheads.sequencing.ps()
    }

    #[inline]
    pub(super) fn handover(&self, ports: &mut [PacketPort], link: u32) -> u64 {
        self.delay(0, self.overheads.handover, ports, link)
    }

    #[inline]
    pub(super) fn send(&self, ports: &mut [PacketPort], link: u32) -> u64 {
        self.delay(1, self.overheads.send, ports, link)
    }

    #[inline]
    pub(super) fn notice(&self, ports: &mut [PacketPort], link: u32) -> u64 {
        self.delay(2, self.overheads.notice, ports, link)
    }

    #[inline]
    pub(super) fn credit(&self, ports: &mut [PacketPort], link: u32) -> u64 {
        self.delay(3, self.overheads.credit, ports, link)
    }

    #[inline]
    fn delay(&self, which: usize, range: DelayRange, ports: &mut [PacketPort], link: u32) -> u64 {
        match self.jitter {
            None => self.fixed[which],
            Some(seed) => draw(seed, range, &mut ports[link as usize].draws, link),
        }
    }
}

/// Returns the next random delay (ps) of a link, for which `draws` delays have been drawn so far.
#[cold]
fn draw(seed: u64, range: DelayRange, draws: &mut u32, link: u32) -> u64 {
    *draws = draws.wrapping_add(1);
    let number = (u64::from(link) << 32) + u64::from(*draws);
    let draw = u128::from(hash(seed.wrapping_add(hash(number))));
    range.min.ps() + ((draw * u128::from(range.width.ps())) >> 64) as u64
}
