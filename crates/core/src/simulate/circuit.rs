//! The plan as it stands, lightpath by lightpath.
//!
//! With barriers (`every_step`, `on_change`, `free`): slot s starts when slot s - 1 has ended and
//! takes R_s + max over its lightpaths of (conversion + propagation * hops + bytes / rate), with
//! R_s the reconfiguration that the policy charges.
//!
//! Without barriers (`per_port`): see [`asynchronous`]. Plans through their symmetry: [`folded`].

mod asynchronous;
mod folded;
mod grid;
pub(super) mod light_paths;
mod settings;
mod trees;

use super::{Paths, Policy, SimulationError};
use crate::fabric::{CONVERTED, Direction, WdmLight, WdmRing};
use crate::interrupt;
use crate::outcome::{Critical, LinkColumns, Outcome, RankColumns, SlotColumns};
use crate::plan::{Plan, PlanRef};
use crate::schedule::Transfer;
use crate::units::{Bytes, Time, UnitError};
use settings::Settings;
use trees::Trees;

/// The time that a plan takes under a policy, with columns per slot, link and rank.
///
/// # Errors
/// A transfer outside the fabric, a policy that does not fit the fabric, or a time beyond 64 bits.
pub fn simulate<'a>(
    plan: impl Into<PlanRef<'a>>,
    size: Bytes,
    policy: Policy,
) -> Result<Outcome, SimulationError> {
    match plan.into() {
        PlanRef::Full(plan) if plan.fabric.wss_grid().is_some() => {
            let grid = super::needed_grid(&plan.fabric, "circuit")?;
            grid::simulate(plan, grid, size, policy)
        }
        PlanRef::Full(plan) if plan.fabric.light_path_grid().is_some() => {
            light_paths::simulate(plan, size, policy, Paths::default())
        }
        _ if policy == Policy::EstablishRelease => Err(SimulationError::policy(
            "circuit",
            policy,
            "it is for the ports of a light_path_grid; on a ring use per_port or on_change",
        )),
        _ if policy == Policy::TwoTier => Err(SimulationError::policy(
            "circuit",
            policy,
            "it is for the tunable lasers of a wss_grid; on a ring use per_port or on_change",
        )),
        PlanRef::Full(plan) => run(plan, plan.fabric.ranks(), Sizes::Own, size, policy),
        PlanRef::Folded(plan) => folded::simulate(plan, size, policy),
    }
}

/// Runs the transfers of a plan; only those that leave the first `period` ranks are given, where the
/// others are their copies (see [`folded`]).
fn run(
    plan: &Plan,
    period: u32,
    sizes: Sizes,
    size: Bytes,
    policy: Policy,
) -> Result<Outcome, SimulationError> {
    let ring = super::needed_ring(&plan.fabric, "circuit")?;
    check(plan, ring)?;
    let slots = Slots::of(plan);
    let trees = Trees::of(plan, ring, &slots);
    let mut ledger = Ledger::new(plan, ring, size, sizes, &trees);
    let timing = match policy {
        Policy::PerPort => asynchronous::run(plan, ring, period, &slots, &mut ledger)?,
        _ => with_barriers(plan, ring, policy, &slots, &mut ledger)?,
    };
    let (links, ranks) = ledger.close()?;
    let charged = |time: &&Time| **time > Time::ZERO;
    Ok(Outcome {
        simulator: "circuit",
        policy: Some(policy.name()),
        time: timing.slots.end.iter().copied().max().unwrap_or(Time::ZERO),
        reconfigurations: timing.slots.reconfiguration.iter().filter(charged).count() as u64,
        utilisation: utilisation(plan),
        slots: timing.slots,
        links,
        ranks,
        critical_path: timing.critical_path,
        ..Outcome::default()
    })
}

/// How many distinct circuit settings the plan goes through: slots that use only circuits of the
/// setting in force do not count as a new one, nor does a setting that was there before.
pub fn configurations<'a>(plan: impl Into<PlanRef<'a>>) -> u64 {
    // An orbit's circuits are those of the lightpath that leaves rank 0, turned.
    let plan = plan.into().kept();
    if !plan.has_light() {
        return 0;
    }
    let slots = Slots::of(plan);
    let mut settings = Settings::new(plan);
    let mut seen = rustc_hash::FxHashSet::default();
    for slot in 0..plan.slots() {
        interrupt::check();
        if settings.enter(slots.of_slot(slot)) {
            seen.insert(settings.fingerprint());
        }
    }
    seen.len() as u64
}

/// The share of link-wavelength-slots in use: the hops of all lightpaths, over both directions'
/// links times channels times slots.
pub fn utilisation<'a>(plan: impl Into<PlanRef<'a>>) -> f64 {
    let plan = plan.into();
    let (copies, plan) = (u64::from(plan.copies()), plan.kept());
    let Some(ring) = plan.fabric.ring() else {
        return 0.0;
    };
    let capacity =
        2.0 * f64::from(ring.ranks) * f64::from(ring.channels()) * f64::from(plan.slots());
    if capacity == 0.0 {
        return 0.0;
    }
    let trees = Trees::of(plan, ring, &Slots::of(plan));
    let lightpaths = plan.schedule.transfers().zip(&plan.light);
    let hops: u64 = (0u32..)
        .zip(lightpaths)
        .filter(|(index, _)| trees.leads(*index))
        .map(|(_, (moved, light))| {
            let direction = WdmLight::from(*light).direction;
            ring.hops(moved.source, moved.destination, direction)
        })
        .map(u64::from)
        .sum();
    (hops * copies) as f64 / capacity
}

/// What the engines hand back.
struct Timing {
    slots: SlotColumns,
    critical_path: Vec<Critical>,
}

/// The transfers of each slot, in the plan's order.
struct Slots {
    starts: Vec<u32>,
    transfers: Vec<u32>,
}

impl Slots {
    fn of(plan: &Plan) -> Slots {
        let mut starts = vec![0u32; plan.slots() as usize + 1];
        for &slot in &plan.slot {
            if let Some(count) = starts.get_mut(slot as usize + 1) {
                *count += 1;
            }
        }
        for slot in 1..starts.len() {
            starts[slot] += starts[slot - 1];
        }
        let mut next = starts.clone();
        let mut transfers = vec![0; starts.last().map_or(0, |&end| end as usize)];
        for (index, &slot) in plan.slot.iter().enumerate() {
            if slot < plan.slots() {
                transfers[next[slot as usize] as usize] = index as u32;
                next[slot as usize] += 1;
            }
        }
        Slots { starts, transfers }
    }

    fn of_slot(&self, slot: u32) -> &[u32] {
        let slot = slot as usize;
        &self.transfers[self.starts[slot] as usize..self.starts[slot + 1] as usize]
    }
}

/// Refuses what has no place on the fabric, so that engines may index freely.
fn check(plan: &Plan, ring: &WdmRing) -> Result<(), SimulationError> {
    let chunks = u64::from(plan.schedule.collective.chunks());
    for (index, transfer) in plan.schedule.transfers().enumerate() {
        interrupt::check();
        let circuit = WdmLight::from(plan.light[index]);
        let fits_wavelength = if ring.converters {
            circuit.wavelength == CONVERTED || u32::from(circuit.wavelength) < ring.wavelengths
        } else {
            u32::from(circuit.wavelength) < ring.wavelengths
        };
        let problem = if transfer.source >= ring.ranks || transfer.destination >= ring.ranks {
            "an end is no rank"
        } else if u64::from(transfer.chunk) + u64::from(transfer.count) > chunks {
            "it carries chunks that do not exist"
        } else if plan.slot[index] >= plan.slots() {
            "its slot is beyond the last"
        } else if u32::from(circuit.fibre) >= ring.fibres || !fits_wavelength {
            "its channel does not exist"
        } else {
            continue;
        };
        return Err(SimulationError::Transfer {
            transfer: index,
            problem,
        });
    }
    Ok(())
}

/// What is taken for the bytes of a transfer.
#[derive(Debug, Clone, Copy)]
enum Sizes {
    /// Its own.
    Own,
    /// The most of any rotation; chunks move by so many per rank.
    MostOfRotations(u32),
}

/// Sums per link and rank, and the duration of each transfer.
struct Ledger<'a> {
    trees: &'a Trees,
    plan: &'a Plan,
    ring: &'a WdmRing,
    size: Bytes,
    sizes: Sizes,
    uniform: Option<Bytes>,
    /// The transmission time computed last: most transfers are of one size.
    latest: Option<(Bytes, Time)>,
    /// Changes from one link to the next along the lower-to-higher circle, per direction.
    busy: [Vec<u128>; 2],
    crossed: [Vec<u128>; 2],
    ranks: RankColumns,
}

impl<'a> Ledger<'a> {
    fn new(
        plan: &'a Plan,
        ring: &'a WdmRing,
        size: Bytes,
        sizes: Sizes,
        trees: &'a Trees,
    ) -> Ledger<'a> {
        let ranks = ring.ranks as usize;
        let circles = || [vec![0; ranks + 1], vec![0; ranks + 1]];
        Ledger {
            trees,
            plan,
            ring,
            size,
            sizes,
            uniform: plan.schedule.collective.uniform_chunk_bytes(size),
            latest: None,
            busy: circles(),
            crossed: circles(),
            ranks: RankColumns {
                sent: vec![0; ranks],
                received: vec![0; ranks],
                finish: vec![Time::ZERO; ranks],
            },
        }
    }

    fn bytes(&self, Transfer { chunk, count, .. }: Transfer) -> Result<Bytes, UnitError> {
        let collective = self.plan.schedule.collective;
        match (self.uniform, self.sizes) {
            (Some(bytes), _) if count == 1 => Ok(bytes),
            (_, Sizes::Own) => collective.range_bytes(self.size, chunk, count),
            (_, Sizes::MostOfRotations(step)) => {
                collective.most_range_bytes(self.size, chunk, count, step)
            }
        }
    }

    /// How long a transfer's lightpath (or light tree, to its farthest drop) is up, and enters its
    /// traffic; that on links and from the source once for a tree.
    fn enter(&mut self, index: usize) -> Result<Time, SimulationError> {
        let moved = self.plan.schedule.transfer(index);
        let bytes = self.bytes(moved)?;
        let transmission = match self.latest {
            Some((same, time)) if same == bytes => time,
            _ => self.ring.rate.transmission(bytes)?,
        };
        self.latest = Some((bytes, transmission));
        let leader = self.trees.leader(index as u32) as usize;
        let source = moved.source;
        let destination = match leader == index {
            true => moved.destination,
            false => self.plan.schedule.ends(leader).1,
        };
        let direction = WdmLight::from(self.plan.light[index]).direction;
        let hops = self.ring.hops(source, destination, direction);
        let flight = self.ring.propagation.times(hops.into())?;
        let duration = self.ring.conversion.plus(flight)?.plus(transmission)?;
        let received = &mut self.ranks.received[moved.destination as usize];
        *received = Bytes::new(*received).plus(bytes)?.get();
        if leader != index {
            return Ok(duration);
        }
        let (from, to) = match direction {
            Direction::Clockwise => (source, destination),
            Direction::CounterClockwise => (destination, source),
        };
        for (column, amount) in [
            (&mut self.busy, u128::from(duration.ps())),
            (&mut self.crossed, u128::from(bytes.get())),
        ] {
            let circle = &mut column[direction as usize];
            circle[from as usize] = circle[from as usize].wrapping_add(amount);
            circle[to as usize] = circle[to as usize].wrapping_sub(amount);
            if from > to {
                circle[0] = circle[0].wrapping_add(amount);
            }
        }
        let sent = &mut self.ranks.sent[source as usize];
        *sent = Bytes::new(*sent).plus(bytes)?.get();
        Ok(duration)
    }

    /// How many lightpaths carry some transfers: a light tree is one.
    fn lightpaths(&self, transfers: &[u32]) -> u64 {
        let leaders = transfers
            .iter()
            .filter(|&&transfer| self.trees.leads(transfer));
        leaders.count() as u64
    }

    fn finish(&mut self, index: usize, end: Time) {
        let (source, destination) = self.plan.schedule.ends(index);
        for rank in [source, destination] {
            let finish = &mut self.ranks.finish[rank as usize];
            *finish = (*finish).max(end);
        }
    }

    /// Sums the changes up. The circle's link i joins ranks i and i + 1: counter-clockwise it
    /// starts at rank i + 1.
    fn close(self) -> Result<(LinkColumns, RankColumns), SimulationError> {
        let ranks = self.ring.ranks as usize;
        let sum = |what: &str, circles: [Vec<u128>; 2]| -> Result<Vec<u64>, UnitError> {
            let [clockwise, mut counter] = circles.map(|changes| {
                let mut level = 0u128;
                let levels = changes[..ranks].iter().map(|change| {
                    level = level.wrapping_add(*change);
                    level
                });
                levels.collect::<Vec<u128>>()
            });
            counter.rotate_right(1);
            let overflow = |_| UnitError::Overflow {
                what: format!("the {what} of a link"),
                smallest: "picoseconds or bytes",
            };
            let levels = clockwise.into_iter().chain(counter);
            levels
                .map(|level| u64::try_from(level).map_err(overflow))
                .collect()
        };
        let busy = sum("busy time", self.busy)?;
        let links = LinkColumns {
            shape: vec![("direction", 2), ("rank", ranks)],
            busy: busy.into_iter().map(Time::from_ps).collect(),
            bytes: sum("traffic", self.crossed)?,
        };
        Ok((links, self.ranks))
    }
}

fn with_barriers(
    plan: &Plan,
    ring: &WdmRing,
    policy: Policy,
    slots: &Slots,
    ledger: &mut Ledger<'_>,
) -> Result<Timing, SimulationError> {
    let mut columns = SlotColumns::default();
    let mut critical_path = Vec::new();
    let mut settings = Settings::new(plan);
    let mut now = Time::ZERO;
    for slot in 0..plan.slots() {
        interrupt::check();
        let transfers = slots.of_slot(slot);
        let charged = match policy {
            Policy::EveryStep => true,
            Policy::OnChange => settings.enter(transfers),
            Policy::PerPort | Policy::Free | Policy::TwoTier | Policy::EstablishRelease => false,
        };
        let reconfiguration = if charged {
            ring.reconfiguration
        } else {
            Time::ZERO
        };
        let start = now;
        let sending = start.plus(reconfiguration)?;
        let mut longest = None;
        for &transfer in transfers {
            interrupt::check();
            let end = sending.plus(ledger.enter(transfer as usize)?)?;
            ledger.finish(transfer as usize, end);
            if longest.is_none_or(|(latest, _)| end > latest) {
                longest = Some((end, transfer));
            }
        }
        now = sending;
        if let Some((end, transfer)) = longest {
            now = end;
            critical_path.push(Critical {
                transfer: transfer as usize,
                start,
                end,
            });
        }
        columns.start.push(start);
        columns.end.push(now);
        columns.reconfiguration.push(reconfiguration);
        columns.lightpaths.push(ledger.lightpaths(transfers));
    }
    Ok(Timing {
        slots: columns,
        critical_path,
    })
}
