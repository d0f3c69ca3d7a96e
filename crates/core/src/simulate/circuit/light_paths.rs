//! A plan on a grid of light paths, slot by slot.
//!
//! A slot starts when the one before has ended and its paths are there, and takes as long as its slowest
//! message: alpha + bytes / rate, where all transfers over one path in one direction are one message.
//! Setting up any number of paths takes E, releasing them R, and the slots in between take what they take:
//!
//! - `establish_release`: slots form *groups*. A group is as long a run of slots as no port changes its path,
//!   hence one in which no rank holds paths to more than k others. By the setting `paths`, they are
//!   - `released`: set up before their group and released after it, E + R for each group;
//!   - `kept` until a port is needed for another: before a group, E if a path of it is missing, and R before
//!     that if one must go for it. Ports are given to paths by their last use, so that each rank keeps
//!     the k paths that it used last;
//!   - `warm`: kept, and there are at first those that an earlier run of the same plan has left;
//! - `every_step`: every slot with messages is a group of its own;
//! - `free`: all paths are there.

use rustc_hash::FxHashMap;

use super::grid::{Burst, bursts};
use crate::fabric::{Hop, LightPathGrid, PortsLight};
use crate::interrupt;
use crate::outcome::{Critical, LinkColumns, Outcome, RankColumns, SlotColumns};
use crate::plan::Plan;
use crate::simulate::{Paths, Policy, SimulationError};
use crate::units::{Bytes, Time};

/// A port of a rank: the rank and the number.
type Port = (u32, u32);

/// The time of a plan under a policy.
///
/// # Errors
/// Another fabric, a policy or transfers that do not fit it, or a time beyond 64 bits.
pub(in crate::simulate) fn simulate(
    plan: &Plan,
    size: Bytes,
    policy: Policy,
    paths: Paths,
) -> Result<Outcome, SimulationError> {
    let grid = crate::simulate::needed_light_paths(&plan.fabric, "circuit")?;
    refuse(policy, paths)?;
    check(plan, grid)?;
    let slots = bursts(plan, size)?;
    let mut changes = Changes::new(grid, &slots, policy, paths);
    if paths == Paths::Warm {
        (0..slots.len()).for_each(|slot| _ = changes.of_slot(slot));
        changes.set_ups = 0;
    }
    let mut ledger = Ledger::new(grid);
    let mut now = Time::ZERO;
    for (slot, messages) in slots.iter().enumerate() {
        interrupt::check();
        let (before, after) = changes.of_slot(slot);
        let before = grid
            .release
            .times(before.releases)?
            .plus(grid.establish.times(before.set_ups)?)?;
        let after = grid.release.times(after)?;
        now = ledger.slot(grid, messages, now, before, after)?;
    }
    let Ledger {
        links,
        ranks,
        slots,
        critical_path,
    } = ledger;
    let busy: u128 = links.busy.iter().map(|time| u128::from(time.ps())).sum();
    let capacity = u128::from(now.ps()) * links.busy.len() as u128;
    Ok(Outcome {
        simulator: "circuit",
        policy: Some(policy.name()),
        time: now,
        reconfigurations: changes.set_ups,
        utilisation: busy as f64 / capacity.max(1) as f64,
        slots,
        links,
        ranks,
        critical_path,
        ..Outcome::default()
    })
}

/// Refuses policies of other fabrics, and paths that stay up where none does.
fn refuse(policy: Policy, paths: Paths) -> Result<(), SimulationError> {
    let reason = match policy {
        Policy::EstablishRelease => return Ok(()),
        Policy::EveryStep | Policy::Free if paths == Paths::Released => return Ok(()),
        Policy::EveryStep | Policy::Free => {
            "no path stays up under it for later; leave the setting paths out"
        }
        _ => "on a light_path_grid use establish_release (by groups of slots), every_step or free",
    };
    Err(SimulationError::policy("circuit", policy, reason))
}

/// Refuses what has no place on the grid, so that ports and ranks may be indexed freely.
fn check(plan: &Plan, grid: &LightPathGrid) -> Result<(), SimulationError> {
    let chunks = u64::from(plan.schedule.collective.chunks());
    // By slot and port: the other end. Looked up only.
    let mut ends: FxHashMap<(u32, Port), Port> = FxHashMap::default();
    for transfer in 0..plan.len() {
        interrupt::check();
        let moved = plan.schedule.transfer(transfer);
        let slot = plan.slot[transfer];
        let light = PortsLight::from(plan.light[transfer]);
        let source = (moved.source, u32::from(light.source_port));
        let destination = (moved.destination, u32::from(light.destination_port));
        let exists = |(rank, port): Port| rank < grid.ranks && port < grid.ports;
        let mut holds = |end, other| *ends.entry((slot, end)).or_insert(other) == other;
        let problem = if u64::from(moved.chunk) + u64::from(moved.count) > chunks {
            "it carries chunks that do not exist"
        } else if slot >= plan.slots() {
            "its slot is beyond the last"
        } else if !(exists(source) && exists(destination)) {
            "a rank or one of its ports does not exist"
        } else if !(holds(source, destination) & holds(destination, source)) {
            "a port of it holds another path in its slot"
        } else if !plan.relays_of(transfer).is_empty() {
            "ranks relay it, which light paths between two ranks do without"
        } else {
            continue;
        };
        return Err(SimulationError::Transfer { transfer, problem });
    }
    Ok(())
}

/// What is done about paths before a slot: how often some are released, and how often set up.
#[derive(Clone, Copy, Default)]
struct Before {
    releases: u64,
    set_ups: u64,
}

/// Which paths are there, slot by slot.
struct Changes<'a> {
    slots: &'a [Vec<Burst>],
    policy: Policy,
    paths: Paths,
    /// For each slot with messages, whether it is the first of its group, and the last.
    bounds: Vec<(bool, bool)>,
    /// The slots of the group that begins at each slot; that slot itself elsewhere.
    group_end: Vec<usize>,
    /// The other end of the path that each port holds. Looked up only.
    held: FxHashMap<Port, Port>,
    /// How often paths were set up.
    set_ups: u64,
}

/// Both ends of the path that carries a message.
fn ends(hop: &Hop) -> (Port, Port) {
    let light = PortsLight::from(hop.light);
    (
        (hop.from, light.source_port.into()),
        (hop.to, light.destination_port.into()),
    )
}

impl<'a> Changes<'a> {
    fn new(
        grid: &LightPathGrid,
        slots: &'a [Vec<Burst>],
        policy: Policy,
        paths: Paths,
    ) -> Changes<'a> {
        let mut changes = Changes {
            slots,
            policy,
            paths,
            bounds: vec![(false, false); slots.len()],
            group_end: (1..=slots.len()).collect(),
            held: FxHashMap::default(),
            set_ups: 0,
        };
        changes.held.reserve(grid.ranks as usize);
        changes.find_groups();
        changes
    }

    /// Forms groups: each goes on until a port would change its path.
    fn find_groups(&mut self) {
        let mut used: FxHashMap<Port, Port> = FxHashMap::default();
        let (mut first, mut last) = (None::<usize>, 0);
        for (slot, messages) in self.slots.iter().enumerate() {
            interrupt::check();
            if messages.is_empty() {
                continue;
            }
            let fits = messages.iter().all(|(hop, _, _)| {
                let (one, other) = ends(hop);
                used.get(&one).is_none_or(|&end| end == other)
                    && used.get(&other).is_none_or(|&end| end == one)
            });
            if !fits || self.policy == Policy::EveryStep || first.is_none() {
                self.close(first, last);
                used.clear();
                first = Some(slot);
            }
            for (hop, _, _) in messages {
                let (one, other) = ends(hop);
                used.insert(one, other);
                used.insert(other, one);
            }
            last = slot;
        }
        self.close(first, last);
    }

    fn close(&mut self, first: Option<usize>, last: usize) {
        if let Some(first) = first {
            self.bounds[first].0 = true;
            self.bounds[last].1 = true;
            self.group_end[first] = last + 1;
        }
    }

    /// What is done before a slot, and how often paths are released after it.
    fn of_slot(&mut self, slot: usize) -> (Before, u64) {
        let (first, last) = self.bounds[slot];
        if self.policy == Policy::Free || !(first || last) {
            return (Before::default(), 0);
        }
        let before = match (first, self.paths) {
            (false, _) => Before::default(),
            (true, Paths::Released) => Before {
                releases: 0,
                set_ups: 1,
            },
            (true, Paths::Kept | Paths::Warm) => self.replace(slot),
        };
        self.set_ups += before.set_ups;
        let released = last && self.paths == Paths::Released;
        (before, u64::from(released))
    }

    /// Holds the paths of the group that begins at a slot, and lets go those whose ports they need.
    fn replace(&mut self, first: usize) -> Before {
        let mut before = Before::default();
        for (hop, _, _) in self.slots[first..self.group_end[first]].iter().flatten() {
            let (one, other) = ends(hop);
            if self.held.get(&one) == Some(&other) {
                continue;
            }
            before.set_ups = 1;
            for (end, opposite) in [(one, other), (other, one)] {
                if let Some(gone) = self.held.insert(end, opposite) {
                    before.releases = 1;
                    if gone != opposite {
                        self.held.remove(&gone);
                    }
                }
            }
        }
        before
    }
}

/// Sums per port and rank, and the columns of slots.
struct Ledger {
    links: LinkColumns,
    ranks: RankColumns,
    slots: SlotColumns,
    critical_path: Vec<Critical>,
}

impl Ledger {
    fn new(grid: &LightPathGrid) -> Ledger {
        let ranks = grid.ranks as usize;
        let ports = ranks * grid.ports as usize;
        Ledger {
            links: LinkColumns {
                shape: vec![("port", grid.ports as usize), ("rank", ranks)],
                busy: vec![Time::ZERO; ports],
                bytes: vec![0; ports],
            },
            ranks: RankColumns {
                sent: vec![0; ranks],
                received: vec![0; ranks],
                finish: vec![Time::ZERO; ranks],
            },
            slots: SlotColumns::default(),
            critical_path: Vec::new(),
        }
    }

    /// Enters a slot that starts at a time and has so long to wait before and after its messages; the time
    /// of its end.
    fn slot(
        &mut self,
        grid: &LightPathGrid,
        messages: &[Burst],
        start: Time,
        before: Time,
        after: Time,
    ) -> Result<Time, SimulationError> {
        let sending = start.plus(before)?;
        let mut slowest = None;
        for (hop, bytes, transfer) in messages {
            interrupt::check();
            let stream = grid.rate.transmission(*bytes)?;
            let end = sending.plus(grid.latency)?.plus(stream)?;
            if slowest.is_none_or(|(latest, _)| end > latest) {
                slowest = Some((end, *transfer));
            }
            let port = ends(hop).0.1 as usize * grid.ranks as usize + hop.from as usize;
            let busy = &mut self.links.busy[port];
            *busy = busy.plus(stream)?;
            for (column, at) in [
                (&mut self.links.bytes, port),
                (&mut self.ranks.sent, hop.from as usize),
                (&mut self.ranks.received, hop.to as usize),
            ] {
                column[at] = Bytes::new(column[at]).plus(*bytes)?.get();
            }
            for rank in [hop.from, hop.to] {
                let finish = &mut self.ranks.finish[rank as usize];
                *finish = (*finish).max(end);
            }
        }
        let sent = slowest.map_or(sending, |(end, _)| end);
        let end = sent.plus(after)?;
        self.critical_path
            .extend(slowest.map(|(_, transfer)| Critical {
                transfer,
                start,
                end,
            }));
        self.slots.start.push(start);
        self.slots.end.push(end);
        self.slots.reconfiguration.push(before.plus(after)?);
        self.slots.lightpaths.push(messages.len() as u64);
        Ok(end)
    }
}
