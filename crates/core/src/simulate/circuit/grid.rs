//! A plan on a grid of tunable circuits, slot by slot.
//!
//! A slot starts when the one before has ended, and takes as long as its slowest burst: c + latency +
//! bytes / rate, where all transfers over one circuit in a slot are one burst and c is 2 control +
//! tuning + lock for
//!
//! - `two_tier`: transmitters whose circuit is not that of the slot before,
//! - `every_step`: every transmitter in every slot,
//! - `free`: none.

use rustc_hash::FxHashMap;

use crate::fabric::{Hop, TunedLight, WssGrid};
use crate::interrupt;
use crate::outcome::{Critical, LinkColumns, Outcome, RankColumns, SlotColumns, Tuned};
use crate::plan::Plan;
use crate::simulate::{Policy, SimulationError, check_grid};
use crate::table::Details;
use crate::units::{Bytes, Time};

/// The time of a plan under a policy.
pub(super) fn simulate(
    plan: &Plan,
    grid: &WssGrid,
    size: Bytes,
    policy: Policy,
) -> Result<Outcome, SimulationError> {
    if matches!(
        policy,
        Policy::OnChange | Policy::PerPort | Policy::EstablishRelease
    ) {
        return Err(SimulationError::policy(
            "circuit",
            policy,
            "on a wss_grid use two_tier (tune where the circuit changes), every_step or free",
        ));
    }
    check_grid(plan, grid)?;
    let ranks = plan.fabric.ranks() as usize;
    let mut links = LinkColumns {
        shape: vec![("plane", 2), ("rank", ranks)],
        busy: vec![Time::ZERO; 2 * ranks],
        bytes: vec![0; 2 * ranks],
    };
    let mut columns = RankColumns {
        sent: vec![0; ranks],
        received: vec![0; ranks],
        finish: vec![Time::ZERO; ranks],
    };
    let mut slots = SlotColumns::default();
    let mut critical_path = Vec::new();
    // The circuit of each transmitter's last burst, and the slot after it.
    let mut last: Vec<Option<(u32, u16, u32)>> = vec![None; 2 * ranks];
    let mut retunes = 0;
    let mut now = Time::ZERO;
    for bursts in bursts(plan, size)? {
        interrupt::check();
        let (mut longest, mut charged) = (Time::ZERO, Time::ZERO);
        let mut slowest = None;
        for (hop, bytes, transfer) in &bursts {
            let light = TunedLight::from(hop.light);
            let link = usize::from(light.plane) * ranks + hop.from as usize;
            let before = last[link].replace((hop.to, light.wavelength, hop.slot + 1));
            let kept = before == Some((hop.to, light.wavelength, hop.slot));
            let charge = match policy {
                Policy::Free => Time::ZERO,
                Policy::TwoTier if kept => Time::ZERO,
                _ => {
                    retunes += 1;
                    grid.control.times(2)?.plus(grid.tuning)?.plus(grid.lock)?
                }
            };
            let sending = grid.rate.transmission(*bytes)?;
            let taken = charge.plus(sending)?.plus(grid.latency)?;
            charged = charged.max(charge);
            if slowest.is_none() || taken > longest {
                (longest, slowest) = (taken, Some(*transfer));
            }
            links.busy[link] = links.busy[link].plus(sending)?;
            for (column, place) in [
                (&mut links.bytes, link),
                (&mut columns.sent, hop.from as usize),
                (&mut columns.received, hop.to as usize),
            ] {
                column[place] = Bytes::new(column[place]).plus(*bytes)?.get();
            }
            for rank in [hop.from, hop.to] {
                let finish = &mut columns.finish[rank as usize];
                *finish = (*finish).max(now.plus(taken)?);
            }
        }
        let end = now.plus(longest)?;
        critical_path.extend(slowest.map(|transfer| Critical {
            transfer,
            start: now,
            end,
        }));
        slots.start.push(now);
        slots.end.push(end);
        slots.reconfiguration.push(charged);
        slots.lightpaths.push(bursts.len() as u64);
        now = end;
    }
    let busy: u128 = links.busy.iter().map(|time| u128::from(time.ps())).sum();
    let capacity = u128::from(now.ps()) * links.busy.len() as u128;
    Ok(Outcome {
        simulator: "circuit",
        policy: Some(policy.name()),
        time: now,
        reconfigurations: retunes,
        utilisation: busy as f64 / capacity.max(1) as f64,
        slots,
        links,
        ranks: columns,
        critical_path,
        details: Details::default().with(Tuned {
            slow_switch: grid.slow_switch,
            ..Tuned::default()
        }),
        ..Outcome::default()
    })
}

/// A burst: its hop, its bytes, and the first of its transfers.
pub(super) type Burst = (Hop, Bytes, usize);

/// The bursts of each slot, in the order of the plan.
pub(super) fn bursts(plan: &Plan, size: Bytes) -> Result<Vec<Vec<Burst>>, SimulationError> {
    let mut slots: Vec<Vec<Burst>> = vec![Vec::new(); plan.slots() as usize];
    let mut place_of: FxHashMap<Hop, usize> = FxHashMap::default();
    let collective = plan.schedule.collective;
    for transfer in 0..plan.len() {
        interrupt::check();
        let moved = plan.schedule.transfer(transfer);
        let bytes = collective.range_bytes(size, moved.chunk, moved.count)?;
        for hop in plan.way(transfer) {
            let slot = &mut slots[hop.slot as usize];
            let place = *place_of.entry(hop).or_insert(slot.len());
            match slot.get_mut(place) {
                Some((_, sum, _)) => *sum = sum.plus(bytes)?,
                None => slot.push((hop, bytes, transfer)),
            }
        }
    }
    Ok(slots)
}
