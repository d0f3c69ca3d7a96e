//! Use of each link over time, recorded on request.
//!
//! Rates are constant between instants, so the bytes of a link in a bin are the sum of rate times
//! duration over the periods of constant rate. A link is updated only when its rate changes.

use super::FluidError;
use super::conversion::to_time;
use crate::outcome::LinkUse;
use opticoll_base::units::Time;

/// Maximum number of bins of all links together (128 MiB).
const MAX_BINS: usize = 1 << 24;

/// Maximum number of bins per link if their length is fitted to the run; enough for a figure.
const MAX_FITTED_BINS: usize = 400;

/// Length of the time bins in which the use of each link is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkBin {
    /// This length, multiplied by a power of two if the bins would take over 128 MiB.
    Length(Time),
    /// A power of two of picoseconds, chosen at the end of the run, that gives 200 to 400 bins.
    Fitted,
}

#[derive(Clone, Default)]
struct Metered {
    /// Present rate in bytes per ps.
    rate: f64,
    /// Instant up to which `bytes` is filled (ps).
    since: f64,
    bytes: Vec<f64>,
}

/// Bytes of each link in each bin.
pub(super) struct LinkMeter {
    links: Vec<Metered>,
    bin_ps: f64,
    /// Maximum number of bins per link. If the run needs more bins, pairs of bins are merged.
    max_bins: usize,
}

impl LinkMeter {
    pub(super) fn new(links: usize, bin: LinkBin) -> Result<LinkMeter, FluidError> {
        let max_bins = (MAX_BINS / links.max(1)).max(2);
        let (bin_ps, max_bins) = match bin {
            LinkBin::Length(Time::ZERO) => return Err(FluidError::Bin),
            LinkBin::Length(bin) => (bin.ps() as f64, max_bins),
            LinkBin::Fitted => (1.0, max_bins.min(MAX_FITTED_BINS)),
        };
        Ok(LinkMeter {
            links: vec![Metered::default(); links],
            bin_ps,
            max_bins,
        })
    }

    /// Adds `change` to the rate at which a link is used (bytes per ps).
    pub(super) fn change(&mut self, link: u32, change: f64, now: f64) {
        self.fill(link as usize, now);
        self.links[link as usize].rate += change;
    }

    /// Sets the rate of a link to 0, which removes rounding errors.
    pub(super) fn clear(&mut self, link: u32, now: f64) {
        self.fill(link as usize, now);
        self.links[link as usize].rate = 0.0;
    }

    /// Fills the bins of a link up to the instant `now`.
    fn fill(&mut self, link: usize, now: f64) {
        while now > self.bin_ps * self.max_bins as f64 {
            self.double_bins();
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

    fn double_bins(&mut self) {
        self.bin_ps *= 2.0;
        for link in &mut self.links {
            link.bytes = link.bytes.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }

    /// Returns the use of all links in a run that ended at `end`.
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
