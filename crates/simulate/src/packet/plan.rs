//! Packet simulation of a plan on an electrical fabric.

use super::settings::PacketSettings;
use super::{
    PacketCollective, PacketError, PacketOutcome, PacketProgress, PacketWork, simulate_watched,
};
use crate::outcome::{
    ChangedSetting, Flowing, LinkColumns, LinkShares, Outcome, RankColumns, SlotColumns,
};
use crate::table::{Details, Shape};
use crate::{SimulationError, link_shares};
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::Schedule;

/// Returns the work of simulating a schedule on a fabric.
pub fn work_of<'a>(
    schedule: &'a Schedule,
    fabric: &Fabric,
    size: Bytes,
    settings: &PacketSettings,
) -> PacketWork<'a> {
    PacketWork {
        collective: Some(PacketCollective {
            schedule,
            size,
            placement: settings.placement.terminals(fabric.ranks()),
            issue: settings.issue,
            overhead: settings.overhead,
            start: Time::ZERO,
        }),
        traffic: settings.background.clone(),
    }
}

/// Simulates a plan packet by packet from time 0. In the outcome, ranks and steps have the indices
/// of the plan, and links have the indices of the network. The outcome has no critical path,
/// because a message may wait for many others.
///
/// # Errors
/// Returns an error if the fabric has no electrical links, a setting does not apply, a transfer
/// leaves the fabric, the plan names routes, the network deadlocks, or a time exceeds 64 bits.
pub fn simulate_plan(
    plan: &Plan,
    size: Bytes,
    settings: &PacketSettings,
    watch: &mut dyn FnMut(&PacketProgress) -> bool,
) -> Result<Outcome, SimulationError> {
    let Some(network) = plan.fabric.network() else {
        return Err(SimulationError::Fabric {
            simulator: "packet",
            family: plan.fabric.family(),
            hint: "it has no links that packets share; use circuit",
        });
    };
    if !plan.routes.is_empty() {
        let problem = "packets use the routes of the fabric, but this plan names other routes; use \
                       fluid or bulk_synchronous";
        return Err(SimulationError::refused("named_routes", problem));
    }
    check_ranks(&plan.schedule)?;
    let work = work_of(&plan.schedule, &plan.fabric, size, settings);
    let packets = simulate_watched(&plan.fabric, &work, &settings.options, watch)?;
    let utilisation = link_shares::shares(network, &packets.links.bytes, packets.time);
    let steps = &packets.steps;
    Ok(Outcome {
        start: Some(settings.issue.name()),
        time: packets.time,
        utilisation: link_shares::mean(network, &utilisation),
        slots: SlotColumns {
            start: steps.start.clone(),
            end: steps.end.clone(),
            reconfiguration: vec![Time::ZERO; steps.start.len()],
            lightpaths: steps.messages.clone(),
        },
        links: LinkColumns {
            busy: packets.links.busy.clone(),
            shape: Shape::new(),
            bytes: packets.links.bytes.clone(),
        },
        ranks: ranks(&plan.schedule, size, &packets)?,
        settings: changed(settings),
        details: Details::default()
            .with(Flowing {
                bottleneck: packets.bottleneck,
                most_loaded_link: link_shares::highest(&utilisation),
                links: LinkShares { utilisation },
                ..Flowing::default()
            })
            .with(packets),
        ..Outcome::default()
    })
}

/// Returns the settings that affect the outcome and differ from their defaults.
fn changed(settings: &PacketSettings) -> Vec<ChangedSetting> {
    let changed = settings
        .changed
        .iter()
        .filter(|(name, ..)| *name != "cores");
    changed
        .map(|(name, value, plain)| ChangedSetting {
            name,
            value: value.clone(),
            plain,
        })
        .collect()
}

/// Checks that every transfer leads from one rank of the fabric to a different rank.
fn check_ranks(schedule: &Schedule) -> Result<(), SimulationError> {
    let ranks = schedule.collective.ranks();
    let outside = schedule.transfers().position(|transfer| {
        let (source, destination) = (transfer.source, transfer.destination);
        source >= ranks || destination >= ranks || source == destination
    });
    match outside {
        None => Ok(()),
        Some(transfer) => Err(SimulationError::Transfer {
            transfer,
            problem: "it does not lead from one rank of the fabric to another",
        }),
    }
}

fn ranks(
    schedule: &Schedule,
    size: Bytes,
    packets: &PacketOutcome,
) -> Result<RankColumns, PacketError> {
    let ranks = schedule.collective.ranks() as usize;
    let (mut sent, mut received) = (vec![0u64; ranks], vec![0u64; ranks]);
    for transfer in schedule.transfers() {
        interrupt::check();
        let collective = &schedule.collective;
        let bytes = collective.range_bytes(size, transfer.chunk, transfer.count)?;
        for (column, rank) in [
            (&mut sent, transfer.source),
            (&mut received, transfer.destination),
        ] {
            let sum = &mut column[rank as usize];
            *sum = sum
                .checked_add(bytes.get())
                .ok_or_else(|| UnitError::Overflow {
                    what: "a rank's bytes".into(),
                    smallest: "bytes",
                })?;
        }
    }
    Ok(RankColumns {
        sent,
        received,
        finish: packets.ranks.finish.clone(),
    })
}
