//! What pipelines on a ring of wavelengths cannot go below, by the schedule of their first pieces.
//!
//! A record says that g pieces of the vector that follow one another go as the first g do, each group g steps later than
//! the one before ([`Algorithm::group_of_pieces`](opticoll_core::algorithm::Algorithm)). So the schedule of g pieces alone tells those of all K. Let it have s
//! steps, k lightpaths over some link in all, and m over some link in all steps that are equal modulo g. Backwards everything is the
//! same.
//!
//! **Slots.** With q = floor(K / g) groups the pipeline takes S = s + g (q - 1) steps, one slot each at least. Where q g >= s, some step
//! of each residue modulo g has all lightpaths of its residue at once, so that m of them share a link (otherwise take m = 1). A piece
//! of b bytes is cut into stripes over floor(c / m) channels at most, which leaves a stripe of b / floor(c / m) bytes in every
//! slot; and over the link with k lightpaths go q k b bytes. Where slots follow one another (a and 1 / B as in
//! [`opticoll_core::fabric::transmission`]; R once under `on_change`, never under `free`):
//!
//! ```text
//! T >= S (R + a + delta) + max(S b / (floor(c / m) B), q k b / (c B))
//! ```
//!
//! **Ports.** Under `per_port` slots may overlap. With the first g pieces, let r lightpaths leave the root in one direction, and let what
//! each of them carries go on over h lightpaths at least, this one among them, one after the other. Then q r b bytes leave the root in
//! that direction, and the last of them go over h - 1 more lightpaths:
//!
//! ```text
//! T >= R + h (a + delta) + q r b / (c B) + (h - 1) b / (floor(c / m) B)
//! ```
//!
//! Which stripes the last are is not said, so that they count as the smaller ones here, of whole bytes; the longest stripe of a piece
//! alone goes over h lightpaths. And q k b bytes go over the link with k lightpaths: T >= R + a + delta + q k b / (c B).
//!
//! Lightpaths half around the ring, whose direction depends on others, are not counted. The steps of the other pipelines
//! are no all-to-alls, so that their lightpaths go the shorter way around.

use rustc_hash::FxHashMap;

use crate::{PlannerError, Question};
use opticoll_core::algorithm::{self, Algorithm};
use opticoll_core::collective::CollectiveKind;
use opticoll_core::fabric::Circuits;
use opticoll_core::family::wdm_ring::route::shorter_way;
use opticoll_core::family::wdm_ring::{Direction, WdmRing};
use opticoll_core::interrupt;
use opticoll_core::schedule::Schedule;
use opticoll_core::simulate::Policy;
use opticoll_core::spec::{Role, Spec};
use opticoll_core::units::Time;

/// The schedule of the first pieces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirstPieces {
    /// g.
    group: u64,
    /// s.
    steps: u64,
    /// m.
    most_together: u64,
    /// k.
    most_in_all: u64,
    /// r, and h for these pieces: at the root where there is one.
    from_root: u64,
    depth: u64,
    /// The transfers of a group.
    transfers: u64,
}

impl FirstPieces {
    /// Those of a record on the question's ring; none where nothing is known of them.
    ///
    /// # Errors
    /// What the algorithm refuses.
    pub(crate) fn of(
        record: &Algorithm,
        question: &Question<'_>,
    ) -> Result<Option<FirstPieces>, PlannerError> {
        let Some(ring) = question.fabric.downcast::<WdmRing>() else {
            return Ok(None);
        };
        let option = record.options.iter().find(|one| one.role == Role::Pieces);
        let (Some(group), Some(option)) = (record.group_of_pieces, option) else {
            return Ok(None);
        };
        if ring.multicast || !ring.broken.is_empty() || ring.ranks < 2 {
            return Ok(None);
        }
        let spec = Spec::new(record.name).with(option.name, group);
        let schedule = algorithm::build(&spec, question.collective, question.fabric)?;
        Ok(Some(FirstPieces::of_schedule(&schedule, ring, group)))
    }

    fn of_schedule(schedule: &Schedule, ring: &WdmRing, group: u32) -> FirstPieces {
        let links = 2 * ring.ranks as usize;
        let mut in_all = vec![0u64; links];
        // By step modulo g: what steps load that coincide when groups follow one another.
        let mut together = vec![vec![0u64; links]; group as usize];
        for step in 0..schedule.steps() {
            for index in schedule.step(step) {
                interrupt::check();
                let (source, destination) = schedule.ends(index);
                let Some(direction) = shorter_way(source, destination, ring.ranks) else {
                    continue;
                };
                let first = match direction {
                    Direction::Clockwise => source,
                    Direction::CounterClockwise => destination,
                };
                for hop in 0..ring.hops(source, destination, direction) {
                    let link = (first + hop) % ring.ranks + direction as u32 * ring.ranks;
                    in_all[link as usize] += 1;
                    together[step % group as usize][link as usize] += 1;
                }
            }
        }
        let together = together.into_iter().flatten();
        let (from_root, depth) = at_root(schedule, ring);
        FirstPieces {
            group: group.into(),
            steps: schedule.steps() as u64,
            most_together: together.max().unwrap_or(0),
            most_in_all: in_all.into_iter().max().unwrap_or(0),
            from_root,
            depth,
            transfers: schedule.len() as u64,
        }
    }

    /// The time that so many pieces take at least.
    ///
    /// # Errors
    /// A time beyond 64 bits.
    pub(crate) fn least(&self, pieces: u64, question: &Question<'_>) -> Result<Time, PlannerError> {
        self.least_under(question.policy(), pieces, question)
    }

    /// What they may take: ports that do not wait for one another save little of the time of slots that follow one another.
    ///
    /// # Errors
    /// A time beyond 64 bits.
    pub(crate) fn estimate(
        &self,
        pieces: u64,
        question: &Question<'_>,
    ) -> Result<Time, PlannerError> {
        let policy = match question.policy() {
            Policy::PerPort => Policy::OnChange,
            policy => policy,
        };
        self.least_under(policy, pieces, question)
    }

    fn least_under(
        &self,
        policy: Policy,
        pieces: u64,
        question: &Question<'_>,
    ) -> Result<Time, PlannerError> {
        let groups = pieces / self.group;
        let Some(ring) = question.fabric.downcast::<WdmRing>().filter(|_| groups > 0) else {
            return Ok(Time::ZERO);
        };
        let transmission = ring.transmission();
        let hop = transmission.latency().plus(ring.least_propagation()?)?;
        let channels = u64::from(ring.channels());
        let piece = question.size.get() / pieces;
        let stripes = self.stripes(groups, channels, question);
        let (smallest, longest) = (piece / stripes, piece.div_ceil(stripes));
        let within = |ps: Option<u128>| {
            let ps = ps.and_then(|ps| u64::try_from(ps).ok());
            Time::from_ps(ps.unwrap_or(u64::MAX))
        };
        let over_link = |lightpaths: u64| {
            let bytes = u128::from(groups * lightpaths) * u128::from(piece);
            within(transmission.least(bytes, channels.into()))
        };
        let of_stripes = |count: u64, stripe: u64| {
            let bytes = u128::from(count) * u128::from(stripe);
            within(transmission.least(bytes, 1))
        };
        if policy == Policy::PerPort {
            let leaving = match self.from_root {
                0 => over_link(self.most_in_all),
                lightpaths => over_link(lightpaths).plus(of_stripes(self.depth - 1, smallest))?,
            };
            let leaving = leaving.max(of_stripes(self.depth.max(1), longest));
            let leaving = hop.times(self.depth.max(1))?.plus(leaving)?;
            let busiest = hop.plus(over_link(self.most_in_all))?;
            return Ok(ring.reconfiguration.plus(leaving.max(busiest))?);
        }
        let slots = self.steps + self.group * (groups - 1);
        let sending = of_stripes(slots, longest).max(over_link(self.most_in_all));
        let set_up = match policy {
            Policy::EveryStep => ring.reconfiguration.times(slots)?,
            Policy::OnChange => ring.reconfiguration,
            _ => Time::ZERO,
        };
        Ok(set_up.plus(hop.times(slots)?)?.plus(sending)?)
    }

    /// The slots that so many pieces take at least.
    pub(crate) fn slots(&self, pieces: u64) -> u64 {
        match pieces / self.group {
            0 => 0,
            groups => self.steps + self.group * (groups - 1),
        }
    }

    /// The most stripes of a piece: as many as the channels have room for, and none where a plan with a root, which is never
    /// folded, would have too many transfers.
    fn stripes(&self, groups: u64, channels: u64, question: &Question<'_>) -> u64 {
        use CollectiveKind::{Broadcast, Reduce};
        let follow = groups * self.group >= self.steps;
        let loaded = if follow { self.most_together } else { 1 };
        let most = (channels / loaded.max(1)).max(1);
        if !matches!(question.collective.kind(), Broadcast | Reduce) {
            return most;
        }
        // A plan takes as many as it has room for, or one; a lightpath may take more channels than are counted here.
        let transfers = groups * self.transfers;
        let room = question.most_transfers / transfers.max(1);
        most.min(room).max(1)
    }
}

/// The most lightpaths that leave the root (or come to it) in one direction, and the fewest over which something goes on from one of
/// them, itself among them; none where there is no root.
fn at_root(schedule: &Schedule, ring: &WdmRing) -> (u64, u64) {
    let root = schedule.collective.root();
    let mut steps: Vec<usize> = (0..schedule.steps()).collect();
    let outwards = match schedule.collective.kind() {
        CollectiveKind::Broadcast => true,
        CollectiveKind::Reduce => false,
        _ => return (0, 1),
    };
    if outwards {
        steps.reverse();
    }
    // From the leaves inwards: over how many lightpaths each piece goes on from a rank.
    let mut onwards: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    let mut leaving = [(0, u64::MAX); 2];
    for index in steps.into_iter().flat_map(|step| schedule.step(step)) {
        let piece = schedule.transfer(index).chunk;
        let (source, destination) = schedule.ends(index);
        let (from, to) = match outwards {
            true => (source, destination),
            false => (destination, source),
        };
        let lightpaths = onwards.get(&(to, piece)).map_or(1, |after| after + 1);
        let before = onwards.entry((from, piece)).or_default();
        *before = lightpaths.max(*before);
        let direction = shorter_way(source, destination, ring.ranks);
        if let (true, Some(direction)) = (from == root, direction) {
            let (count, fewest) = &mut leaving[direction as usize];
            *count += 1;
            *fewest = lightpaths.min(*fewest);
        }
    }
    let [one, other] = leaving.map(|(count, fewest)| match count {
        0 => (0, 1),
        _ => (count, fewest),
    });
    one.max(other)
}
