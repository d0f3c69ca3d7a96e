//! The use of each link over time, where it is asked for.
//!
//! Rates are constant between instants, so what a link carries in a bin is a sum of rate times time
//! over the stretches in it. A link is looked at only when its rate changes.

use super::FluidError;
use super::instant::to_time;
use crate::outcome::LinkUse;
use opticoll_base::units::Time;

/// Bins of all links together, at most: 128 MiB.
const MOST_BINS: usize = 1 << 24;

/// Bins per link, at most, where they are fitted to the time: enough for a figure.
const FITTED_BINS: usize = 400;

/// How long the bins of time are in which the use of each link is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkBin {
    /// As long as this, or a power of two times that where they would take more than 128 MiB.
    Length(Time),
    /// A power of two of picoseconds, so that there are 200 to 400 bins: known when all has ended.
    Fitted,
}

#[derive(Clone, Default)]
struct Metered {
    /// Bytes per ps, now.
    rate: f64,
    /// Up to where `bytes` has been filled (ps).
    since: f64,
    /// Per bin.
    bytes: Vec<f64>,
}

/// Bytes per link and bin.
pub(super) struct LinkMeter {
    links: Vec<Metered>,
    bin_ps: f64,
    /// Bins per link, at most. Beyond it two neighbours become one.
    most: usize,
}

impl LinkMeter {
    /// # Errors
    /// A bin without length.
    pub(super) fn new(links: usize, bin: LinkBin) -> Result<LinkMeter, FluidError> {
        let most = (MOST_BINS / links.max(1)).max(2);
        let (bin_ps, most) = match bin {
            LinkBin::Length(Time::ZERO) => return Err(FluidError::Bin),
            LinkBin::Length(bin) => (bin.ps() as f64, most),
            LinkBin::Fitted => (1.0, most.min(FITTED_BINS)),
        };
        Ok(LinkMeter {
            links: vec![Metered::default(); links],
            bin_ps,
            most,
        })
    }

    /// So much more of a link's rate (bytes per ps) is used from now on.
    pub(super) fn change(&mut self, link: u32, change: f64, now: f64) {
        self.fill(link as usize, now);
        self.links[link as usize].rate += change;
    }

    /// Nothing flows over a link from now on, whatever rounding has left of its rate.
    pub(super) fn clear(&mut self, link: u32, now: f64) {
        self.fill(link as usize, now);
        self.links[link as usize].rate = 0.0;
    }

    fn fill(&mut self, link: usize, now: f64) {
        while now > self.bin_ps * self.most as f64 {
            self.halve();
        }
        let link = &mut self.links[link];
        let from = std::mem::replace(&mut link.since, now);
        if link.rate <= 0.0 || now <= from {
            return;
        }
        let (first, last) = (from / self.bin_ps, now / self.bin_ps);
        let bins = last.ceil() as usize;
        if link.bytes.len() < bins {
            link.bytes.resize(bins, 0.0);
        }
        for bin in first as usize..bins {
            let begin = first.max(bin as f64);
            let end = last.min(bin as f64 + 1.0);
            link.bytes[bin] += (end - begin).max(0.0) * self.bin_ps * link.rate;
        }
    }

    /// Bins twice as long.
    fn halve(&mut self) {
        self.bin_ps *= 2.0;
        for link in &mut self.links {
            link.bytes = link.bytes.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }

    /// The columns of a run that ended at `end`.
    pub(super) fn close(mut self, end: f64) -> Result<LinkUse, FluidError> {
        for link in 0..self.links.len() {
            self.fill(link, end);
        }
        let bins = (end / self.bin_ps).ceil() as usize;
        let longest = self.links.iter().map(|link| link.bytes.len()).max();
        let bins = bins.max(longest.unwrap_or(0));
        let mut bytes = Vec::with_capacity(bins * self.links.len());
        for mut link in self.links {
            link.bytes.resize(bins, 0.0);
            bytes.append(&mut link.bytes);
        }
        Ok(LinkUse {
            bin: to_time(self.bin_ps)?,
            bins,
            bytes,
        })
    }
}
