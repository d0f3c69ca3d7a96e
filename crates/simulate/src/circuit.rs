//! The plan as it stands, slot by slot.
//!
//! With barriers, slot s starts when slot s - 1 has ended, and takes as long as its longest message with
//! what the policy charges before and after it (`charge`). How long a message takes once its circuit is
//! there, and which transfers are one message, the fabric says ([`Circuits`]).
//!
//! Without barriers (`per_port`, `planes`): see `asynchronous`. Plans through their symmetry: `folded`, `pipelined`.

mod asynchronous;
mod beside;
mod block;
mod chains;
mod charge;
mod folded;
mod groups;
mod held;
mod ledger;
mod messages;
mod pieces;
mod pipelined;
mod planes;
mod settings;
mod slots;
mod trees;

use super::{Paths, Policy, SimulationError};
use crate::outcome::{Critical, Outcome, SlotColumns, Tuned};
use crate::table::Details;
use charge::Charging;
use ledger::LineLedger;
use messages::{Sizes, SlotMessages};
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::circuits::{Capacity, Charge, Circuits, Lines};
use opticoll_plan::plan::Plan;
use settings::Settings;
use slots::SlotHops;

/// The time that a plan takes under a policy, with columns per slot, link and rank.
///
/// # Errors
/// A transfer outside the fabric, a policy that does not fit the fabric, or a time beyond 64 bits.
pub fn simulate(plan: &Plan, size: Bytes, policy: Policy) -> Result<Outcome, SimulationError> {
    simulate_with(plan, size, policy, Paths::default())
}

/// The same, with circuits that stay up between groups of slots as `paths` says.
///
/// # Errors
/// Those of [`simulate`], and paths that stay up under a policy that has none.
pub fn simulate_with(
    plan: &Plan,
    size: Bytes,
    policy: Policy,
    paths: Paths,
) -> Result<Outcome, SimulationError> {
    simulate_within(plan, size, policy, paths, None)
}

/// The same, given up past a limit.
///
/// # Errors
/// Those of [`simulate_with`], and [`SimulationError::Stopped`].
pub fn simulate_within(
    plan: &Plan,
    size: Bytes,
    policy: Policy,
    paths: Paths,
    limit: Option<Time>,
) -> Result<Outcome, SimulationError> {
    let circuits = super::needed_circuits(&plan.fabric, "circuit")?;
    let refused = |reason| SimulationError::policy("circuit", policy, reason);
    let charge = circuits.charge(policy.name()).map_err(refused)?;
    let keeps = circuits.keeps_paths() && charge == (Charge::Groups { each_slot: false });
    if paths != Paths::Released && !keeps {
        return Err(refused(
            "no path stays up under it for later; leave the setting paths out",
        ));
    }
    let run = PlanRun {
        period: plan.fabric.ranks(),
        copies: 1,
        sizes: Sizes::Own,
        size,
        charge,
        paths,
        limit,
    };
    // Copies of a transfer take as long as it does only where all circuits are alike.
    let written_out = circuits.is_degraded().then(|| plan.written_out());
    let plan = written_out.as_deref().unwrap_or(plan);
    let outcome = if plan.repetition.is_folded() {
        folded::simulate(plan, circuits, run)?
    } else if plan.repetition.is_pipelined() {
        pipelined::simulate(plan, circuits, run)?
    } else {
        run.simulate(plan, circuits)?
    };
    Ok(Outcome {
        policy: Some(policy.name()),
        ..outcome
    })
}

/// How the transfers of a plan are carried out.
#[derive(Clone, Copy)]
struct PlanRun {
    /// Only the transfers that leave so many ranks are given, where the others are their copies (see
    /// `folded`).
    period: u32,
    /// Of each transfer given.
    copies: u64,
    sizes: Sizes,
    size: Bytes,
    charge: Charge,
    paths: Paths,
    limit: Option<Time>,
}

impl PlanRun {
    fn simulate(self, plan: &Plan, circuits: &dyn Circuits) -> Result<Outcome, SimulationError> {
        super::admit(plan)?;
        let slots = SlotHops::of(plan);
        let mut messages = SlotMessages::new(plan, circuits, self.size, self.sizes);
        let lines = circuits.lines();
        let mut ledger = LineLedger::new(lines, plan.fabric.ranks());
        let timing = match self.charge {
            charge @ (Charge::ChangedPort | Charge::ChangedPlane) => {
                messages.go_one_by_one();
                let ports = asynchronous::PortRun {
                    charge,
                    period: self.period,
                    limit: self.limit,
                };
                asynchronous::run(plan, circuits, ports, &slots, messages, &mut ledger)?
            }
            _ => self.with_barriers(plan, circuits, &slots, messages, &mut ledger)?,
        };
        self.outcome(plan, circuits, timing, ledger)
    }

    fn outcome(
        self,
        plan: &Plan,
        circuits: &dyn Circuits,
        timing: Timing,
        ledger: LineLedger,
    ) -> Result<Outcome, SimulationError> {
        let lines = circuits.lines();
        let time = timing.slots.end.iter().copied().max().unwrap_or(Time::ZERO);
        let occupied = ledger.occupied();
        let (links, ranks) = ledger.close()?;
        let details = Details::default();
        Ok(Outcome {
            time,
            reconfigurations: timing.reconfigurations,
            utilisation: match lines.capacity {
                Capacity::Slots(_) => share(lines, occupied * self.copies, plan.slots()),
                Capacity::Time => {
                    let busy: u128 = links.busy.iter().map(|time| u128::from(time.ps())).sum();
                    let capacity = u128::from(time.ps()) * links.busy.len() as u128;
                    busy as f64 / capacity.max(1) as f64
                }
            },
            slots: timing.slots,
            links,
            ranks,
            critical_path: timing.critical_path,
            details: match circuits.change()?.slow_switches {
                Some(slow_switch) => details.with(Tuned {
                    slow_switch,
                    ..Tuned::default()
                }),
                None => details,
            },
            ..Outcome::default()
        })
    }

    fn with_barriers(
        self,
        plan: &Plan,
        circuits: &dyn Circuits,
        slots: &SlotHops,
        mut messages: SlotMessages<'_>,
        ledger: &mut LineLedger,
    ) -> Result<Timing, SimulationError> {
        let mut columns = SlotColumns::default();
        let mut critical_path = Vec::new();
        let mut charging = Charging::new(plan, circuits, slots, self)?;
        let mut now = Time::ZERO;
        for slot in 0..plan.slots() {
            interrupt::check();
            let start = now;
            let before = charging.before(slot)?;
            let sending = start.plus(before)?;
            let (mut longest, mut most, mut circuits) = (None, Time::ZERO, 0);
            let block = messages.of(slots.of_slot(slot))?;
            charging.look_at(block);
            for (place, hop, message, circuit) in block.iter() {
                let charged = charging.of(place, slot);
                let taken = circuit.delay.plus(message.sending)?;
                let end = sending.plus(charged)?.plus(taken)?;
                let leads = message.leader == place;
                ledger.enter(hop, message, circuit, leads, end)?;
                most = most.max(charged);
                circuits += u64::from(leads);
                if longest.is_none_or(|(latest, _)| end > latest) {
                    longest = Some((end, message.transfer as usize));
                }
            }
            let after = charging.after(slot);
            now = longest.map_or(sending, |(end, _)| end).plus(after)?;
            give_up_past(self.limit, now)?;
            critical_path.extend(longest.map(|(_, transfer)| Critical {
                transfer,
                start,
                end: now,
            }));
            columns.start.push(start);
            columns.end.push(now);
            columns
                .reconfiguration
                .push(before.plus(most)?.plus(after)?);
            columns.lightpaths.push(circuits);
        }
        Ok(Timing {
            slots: columns,
            critical_path,
            reconfigurations: charging.reconfigurations(),
        })
    }
}

/// Stops a simulation that takes longer than its limit.
fn give_up_past(limit: Option<Time>, now: Time) -> Result<(), SimulationError> {
    match limit.filter(|limit| now > *limit) {
        Some(limit) => {
            let problem = format!("the plan takes longer than {limit}");
            Err(SimulationError::Stopped(problem))
        }
        None => Ok(()),
    }
}

/// What the engines hand back.
struct Timing {
    slots: SlotColumns,
    critical_path: Vec<Critical>,
    reconfigurations: u64,
}

/// How many distinct circuit settings the plan goes through: slots that use only circuits of the
/// setting in force do not count as a new one, nor does a setting that was there before.
pub fn configurations(plan: &Plan) -> u64 {
    if !plan.has_light() {
        return 0;
    }
    let slots = SlotHops::of(plan);
    let mut settings = Settings::new(plan, plan.repetition.is_folded());
    let mut seen = rustc_hash::FxHashSet::default();
    for slot in 0..plan.slots() {
        interrupt::check();
        let before = settings.fingerprint();
        if settings.enter(slots.of_slot(slot)) {
            seen.extend(before);
        }
    }
    seen.extend(settings.fingerprint());
    seen.len() as u64
}

/// The share of link-wavelength-slots in use: the lines of all circuits, over all lines times channels
/// times slots; 0 where use is measured against time, and where a circuit does not exist.
pub fn utilisation(plan: &Plan) -> f64 {
    let Some(circuits) = plan.fabric.circuits() else {
        return 0.0;
    };
    if circuits.lines().capacity == Capacity::Time {
        return 0.0;
    }
    let mut messages = SlotMessages::new(plan, circuits, Bytes::new(0), Sizes::Own);
    let slots = SlotHops::of(plan);
    let mut occupied = 0;
    for slot in 0..plan.slots() {
        let Ok(block) = messages.of(slots.of_slot(slot)) else {
            return 0.0;
        };
        let leaders = block.iter().filter(|row| row.2.leader == row.0);
        let lines = leaders.flat_map(|(_, _, _, circuit)| &circuit.lines);
        occupied += lines.map(|lines| lines.len() as u64).sum::<u64>();
    }
    share(
        circuits.lines(),
        occupied * plan.repetition.copies(),
        plan.slots(),
    )
}

/// The share of the channels of all lines in all slots that are in use.
fn share(lines: Lines, occupied: u64, slots: u32) -> f64 {
    let Capacity::Slots(channels) = lines.capacity else {
        return 0.0;
    };
    let capacity = lines.count() as f64 * f64::from(channels) * f64::from(slots);
    match capacity == 0.0 {
        true => 0.0,
        false => occupied as f64 / capacity,
    }
}
