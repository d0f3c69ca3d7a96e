//! Counters and results of a burst simulation.

use opticoll_base::units::Time;

/// Number of bursts, and number of lost bursts among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// Number of bursts that arrived or were lost.
    pub offered: u64,
    /// Number of lost bursts.
    pub lost: u64,
}

crate::rows! {
    /// A row per number of links of a route.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct HopShare {
        /// Number of links of the route, from 0.
        pub links: usize,
        /// Number of bursts that arrived or were lost.
        pub offered: u64,
        /// Number of lost bursts.
        pub lost: u64,
    }
}

crate::rows! {
    /// A row per ordered pair of nodes, including each node with itself.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct PairShare {
        /// Node whose hosts sent the bursts.
        pub source: usize,
        /// Node whose hosts were the destinations of the bursts.
        pub destination: usize,
        /// Number of bursts that arrived or were lost.
        pub offered: u64,
        /// Number of lost bursts.
        pub lost: u64,
    }
}

crate::rows! {
    /// A row per link.
    #[derive(Debug, Clone, PartialEq)]
    pub struct BurstLinkUse {
        /// Name of the link.
        pub link: String,
        /// Share of the link's wavelength time that was reserved, from 0 to 1.
        pub utilisation: f64,
        /// Share of the link's wavelength time that was reserved for bursts lost on a later link.
        pub wasted: f64,
        /// Number of bursts blocked on the link. A setup that is blocked because no wavelength is
        /// free on the whole route counts on no link.
        pub blocked: u64,
    }
}

crate::rows! {
    /// A row per round of the measurement, summed over all replications.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Moment {
        /// Time from the start of the measurement to the end of the round, averaged over the
        /// replications.
        pub end: Time,
        /// Number of bursts in the round.
        pub offered: u64,
        /// Number of lost bursts.
        pub lost: u64,
    }
}

/// Reservation of a wavelength of a link for a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelReservation {
    /// Index of the link.
    pub link: u32,
    /// Index of the wavelength.
    pub wavelength: u32,
    /// Start of the reservation.
    pub from: Time,
    /// End of the reservation, exclusive.
    pub until: Time,
}

/// History of a burst.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BurstRecord {
    /// Time at which the burst was ready.
    pub ready: Time,
    /// Time at which the control message was sent.
    pub sent: Time,
    /// Host that sends the burst.
    pub source: u32,
    /// Host that receives the burst.
    pub destination: u32,
    /// Duration of the burst on a wavelength.
    pub length: Time,
    /// Indices of the links of the burst's route.
    pub route: Vec<u32>,
    /// Reservations of wavelengths, in the order of the links of the route.
    pub reservations: Vec<ChannelReservation>,
    /// True if the burst arrived, false if it was lost; `None` while it is on its way.
    pub arrived: Option<bool>,
}

crate::totals! {
    /// Result of a burst simulation.
    #[derive(Debug, Clone, PartialEq)]
    pub struct BurstOutcome {
        /// Specification of the network.
        pub network: String,
        /// Number of measured bursts.
        pub bursts: u64,
        /// Number of lost bursts.
        pub lost: u64,
        /// Share of bursts that were lost.
        pub loss: f64,
        /// Lower end of the 95 % confidence interval of the loss, which includes the interval of
        /// batch means and the exact binomial interval.
        pub loss_low: f64,
        /// Upper end of the 95 % confidence interval of the loss.
        pub loss_high: f64,
        /// Number of bursts lost because no wavelength was free.
        pub lost_at_links: u64,
        /// Number of bursts lost because their wavelength was in use and no converter was free.
        pub lost_at_converters: u64,
        /// Number of bursts lost because all receivers were busy.
        pub lost_at_receivers: u64,
        /// Mean time that a burst waits for its transmitter.
        pub mean_wait: Time,
        /// Simulated time of the measurement in seconds, summed over replications.
        pub simulated_seconds: f64 as "s",
        /// Loss by the number of links of the route, from 0.
        pub by_hops: Vec<HopShare>,
        /// Loss by pair of nodes, sorted by source and then by destination.
        pub by_pair: Vec<PairShare>,
        /// Results per link.
        pub links: Vec<BurstLinkUse>,
        /// Loss by round of the measurement.
        pub moments: Vec<Moment>,
        ;
        /// All bursts of the first replication, in the order of their control messages; empty
        /// unless the bursts were recorded.
        pub records: Vec<BurstRecord>,
    }
}

/// Resource that was not free for a lost burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LossCause {
    Link,
    Converter,
    Receiver,
}

/// Counters of one replication. `by_hops` is indexed by the number of links of the route, `by_pair`
/// by `source * nodes + destination`, and `causes` by [`LossCause`].
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) total: Share,
    pub(super) by_hops: Vec<Share>,
    pub(super) by_pair: Vec<Share>,
    pub(super) causes: [u64; 3],
    /// Use of each link, indexed by link: picoseconds reserved, picoseconds reserved for bursts
    /// that were lost on a later link, and number of bursts blocked on the link.
    pub(super) links: Vec<(u128, u128, u64)>,
    pub(super) waited_ps: u128,
    pub(super) sent: u64,
}

impl Tally {
    pub(super) fn new(links: usize, nodes: u32, max_hops: usize) -> Tally {
        Tally {
            by_hops: vec![Share::default(); max_hops + 1],
            by_pair: vec![Share::default(); (nodes * nodes) as usize],
            links: vec![(0, 0, 0); links],
            ..Tally::default()
        }
    }

    #[inline]
    pub(super) fn count(&mut self, pair: u32, hops: usize, lost: Option<LossCause>) {
        let add = |share: &mut Share| {
            share.offered += 1;
            share.lost += u64::from(lost.is_some());
        };
        add(&mut self.total);
        add(&mut self.by_hops[hops]);
        add(&mut self.by_pair[pair as usize]);
        if let Some(cause) = lost {
            self.causes[cause as usize] += 1;
        }
    }

    pub(super) fn clear(&mut self) {
        let max_hops = self.by_hops.len() - 1;
        let nodes = self.by_pair.len().isqrt() as u32;
        *self = Tally::new(self.links.len(), nodes, max_hops);
    }

    pub(super) fn add(&mut self, other: &Tally) {
        let add = |sum: &mut Share, other: &Share| {
            sum.offered += other.offered;
            sum.lost += other.lost;
        };
        add(&mut self.total, &other.total);
        for (sum, other) in self.by_hops.iter_mut().zip(&other.by_hops) {
            add(sum, other);
        }
        for (sum, other) in self.by_pair.iter_mut().zip(&other.by_pair) {
            add(sum, other);
        }
        for (sum, other) in self.causes.iter_mut().zip(&other.causes) {
            *sum += other;
        }
        for (sum, other) in self.links.iter_mut().zip(&other.links) {
            *sum = (sum.0 + other.0, sum.1 + other.1, sum.2 + other.2);
        }
        self.waited_ps += other.waited_ps;
        self.sent += other.sent;
    }
}
