//! Circuit simulator, which computes the time of a plan slot by slot, in the order of the plan.
//!
//! With barriers, a slot starts when the previous slot has ended. Its duration is the time of its
//! longest message, plus the reconfiguration time that the policy charges before and after the slot
//! (see `charge`). The fabric ([`Circuits`]) defines which transfers form a message, and the
//! duration of a message on a circuit that is up. The fabric also defines its *lines*, the
//! resources whose use is reported: links in one direction, or ports on fabrics without links.
//!
//! The policies without barriers (`per_port`, `planes`) are described in `asynchronous`, and plans
//! with symmetries in `rotation_symmetric` and `pipelined`.

mod asynchronous;
mod availability;
mod block;
mod chains;
mod charge;
mod configuration;
mod groups;
mod ledger;
mod messages;
mod piece_runs;
mod pipelined;
mod planes;
mod rotation_symmetric;
mod side_network;
mod slots;
pub mod succession;
mod trees;

use super::{Paths, Policy, SimulationError};
use crate::outcome::{Critical, Outcome, SlotColumns, Tuned};
use crate::table::Details;
use charge::Charging;
use configuration::Configuration;
use ledger::LineLedger;
use messages::{Sizes, SlotMessages};
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::circuits::{Capacity, Circuits, Lines, ReconfigurationCharge};
use opticoll_plan::plan::Plan;
use slots::SlotHops;

/// Computes the time of a plan under a policy, and returns the results per slot, link and rank.
///
/// # Errors
/// Returns an error for a transfer that the fabric cannot carry, a policy that the fabric does not
/// support, or a time that exceeds 64 bits.
pub fn simulate(plan: &Plan, size: Bytes, policy: Policy) -> Result<Outcome, SimulationError> {
    simulate_with(plan, size, policy, Paths::default())
}

/// Computes the time of a plan as [`simulate`] does. `paths` defines when circuits are torn down.
///
/// # Errors
/// Returns the errors of [`simulate`], and an error if `paths` is not `released` under a policy
/// that does not keep circuits for later slots.
pub fn simulate_with(
    plan: &Plan,
    size: Bytes,
    policy: Policy,
    paths: Paths,
) -> Result<Outcome, SimulationError> {
    simulate_within(plan, size, policy, paths, None)
}

/// Computes the time of a plan as [`simulate_with`] does, and stops at a time limit.
///
/// # Errors
/// Returns the errors of [`simulate_with`], and [`SimulationError::Stopped`] if the plan takes
/// longer than `limit`.
pub fn simulate_within(
    plan: &Plan,
    size: Bytes,
    policy: Policy,
    paths: Paths,
    limit: Option<Time>,
) -> Result<Outcome, SimulationError> {
    let circuits = super::require_circuits(&plan.fabric, "circuit")?;
    let refused = |reason| SimulationError::unsupported_policy("circuit", policy, reason);
    let charge = circuits.charge(policy.name()).map_err(refused)?;
    let can_keep =
        circuits.keeps_paths() && charge == (ReconfigurationCharge::Groups { each_slot: false });
    if paths != Paths::Released && !can_keep {
        return Err(refused(
            "it keeps no circuits for later slots; leave the setting paths out",
        ));
    }
    let run = PlanRun {
        period: plan.fabric.ranks(),
        copies: 1,
        sizes: Sizes::Exact,
        size,
        charge,
        paths,
        limit,
    };
    // Only without degraded circuits do all copies of a transfer take the same time.
    let expanded = circuits.is_degraded().then(|| plan.expanded());
    let plan = expanded.as_deref().unwrap_or(plan);
    let outcome = if plan.repetition.is_rotation_symmetric() {
        rotation_symmetric::simulate(plan, circuits, run)?
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

#[derive(Clone, Copy)]
struct PlanRun {
    /// Number of ranks whose transfers are simulated; the other transfers are rotations of these
    /// transfers (see `rotation_symmetric`).
    period: u32,
    /// Number of transfers for which each simulated transfer stands.
    copies: u64,
    sizes: Sizes,
    size: Bytes,
    charge: ReconfigurationCharge,
    paths: Paths,
    limit: Option<Time>,
}

impl PlanRun {
    fn simulate(self, plan: &Plan, circuits: &dyn Circuits) -> Result<Outcome, SimulationError> {
        super::check_slots(plan)?;
        let slots = SlotHops::new(plan);
        let mut messages = SlotMessages::new(plan, circuits, self.size, self.sizes);
        let lines = circuits.lines();
        let mut ledger = LineLedger::new(lines, plan.fabric.ranks());
        let timing = match self.charge {
            charge @ (ReconfigurationCharge::ChangedPort | ReconfigurationCharge::ChangedPlane) => {
                messages.send_one_by_one();
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
            let before = charging.charge_before(slot)?;
            let sending = start.plus(before)?;
            let (mut longest, mut max_charge, mut circuits) = (None, Time::ZERO, 0);
            let block = messages.block(slots.hops(slot))?;
            charging.load_block(block);
            for (index, hop, message, circuit) in block.iter() {
                let charged = charging.message_charge(index, slot);
                let taken = circuit.delay.plus(message.sending)?;
                let end = sending.plus(charged)?.plus(taken)?;
                let leads = message.leader == index;
                ledger.add(hop, message, circuit, leads, end)?;
                max_charge = max_charge.max(charged);
                circuits += u64::from(leads);
                if longest.is_none_or(|(latest, _)| end > latest) {
                    longest = Some((end, message.transfer as usize));
                }
            }
            let after = charging.charge_after(slot);
            now = longest.map_or(sending, |(end, _)| end).plus(after)?;
            check_limit(self.limit, now)?;
            critical_path.extend(longest.map(|(_, transfer)| Critical {
                transfer,
                start,
                end: now,
            }));
            columns.start.push(start);
            columns.end.push(now);
            columns
                .reconfiguration
                .push(before.plus(max_charge)?.plus(after)?);
            columns.lightpaths.push(circuits);
        }
        Ok(Timing {
            slots: columns,
            critical_path,
            reconfigurations: charging.reconfigurations(),
        })
    }
}

fn check_limit(limit: Option<Time>, now: Time) -> Result<(), SimulationError> {
    match limit.filter(|limit| now > *limit) {
        Some(limit) => {
            let problem = format!("the plan takes longer than {limit}");
            Err(SimulationError::Stopped(problem))
        }
        None => Ok(()),
    }
}

struct Timing {
    slots: SlotColumns,
    critical_path: Vec<Critical>,
    reconfigurations: u64,
}

/// Returns the number of distinct configurations that the plan uses. A slot whose circuits are
/// already up adds no configuration, and a configuration that occurs twice counts once.
pub fn configurations(plan: &Plan) -> u64 {
    if !plan.has_light() {
        return 0;
    }
    let slots = SlotHops::new(plan);
    let mut configuration = Configuration::new(plan, plan.repetition.is_rotation_symmetric());
    let mut seen = rustc_hash::FxHashSet::default();
    for slot in 0..plan.slots() {
        interrupt::check();
        let before = configuration.fingerprint();
        if configuration.enter(slots.hops(slot)) {
            seen.extend(before);
        }
    }
    seen.extend(configuration.fingerprint());
    seen.len() as u64
}

/// Returns the plan's utilisation, from 0 to 1: the number of occupied channels divided by the
/// number of channels, summed over all lines (links or ports) and slots. Returns 0 if utilisation
/// is a share of time on the fabric, or if a circuit does not exist.
pub fn utilisation(plan: &Plan) -> f64 {
    let Some(circuits) = plan.fabric.circuits() else {
        return 0.0;
    };
    if circuits.lines().capacity == Capacity::Time {
        return 0.0;
    }
    let mut messages = SlotMessages::new(plan, circuits, Bytes::new(0), Sizes::Exact);
    let slots = SlotHops::new(plan);
    let mut occupied = 0;
    for slot in 0..plan.slots() {
        let Ok(block) = messages.block(slots.hops(slot)) else {
            return 0.0;
        };
        let leaders = block.iter().filter(|row| row.2.leader == row.0);
        let lines = leaders.flat_map(|(_, _, _, circuit)| circuit.lines.line_ranges());
        occupied += lines.map(|lines| lines.len() as u64).sum::<u64>();
    }
    share(
        circuits.lines(),
        occupied * plan.repetition.copies(),
        plan.slots(),
    )
}

/// Returns `occupied` as a share of the channels of all lines (links or ports) in all slots.
/// Returns 0 if utilisation is a share of time.
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
