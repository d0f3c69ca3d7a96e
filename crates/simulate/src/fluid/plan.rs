//! Simulation of a plan on an electrical fabric, step by step.

use super::flow_log::FlowLog;
use super::{FlowOptions, StartRule, log_plan};
use crate::outcome::{Critical, Flowing, LinkShares, NONE, Outcome, PathColumns, SlotColumns};
use crate::table::Details;
use crate::{SimulationError, check_routes, link_shares, require_network};
use opticoll_base::interrupt;
use opticoll_base::memory;
use opticoll_base::units::{Bytes, Time};
use opticoll_plan::plan::{Plan, StepMessages};

/// Maximum number of transfers of a plan whose flows are recorded, which takes about 500 MB.
const MAX_RECORDED_TRANSFERS: usize = 1 << 24;

/// Simulates a plan as flows. If the plan has more than 2^24 transfers, the outcome has neither
/// flow columns nor a critical path.
///
/// # Errors
/// The fabric has circuits and no links, a transfer leaves the fabric, or a time exceeds 64 bits.
pub fn simulate_plan(
    plan: &Plan,
    size: Bytes,
    rule: StartRule,
    options: &FlowOptions,
) -> Result<Outcome, SimulationError> {
    let network = require_network(&plan.fabric, "fluid")?;
    check_routes(plan, network)?;
    let schedule = &plan.schedule;
    let max_transfers = (0..schedule.steps())
        .map(|step| schedule.step(step).len())
        .max();
    let bytes = max_transfers.unwrap_or(0) as u64 * BYTES_PER_FLOW;
    memory::check_forecast("simulating the flows of a step of this plan", bytes);
    let options = FlowOptions {
        record_flows: options.record_flows && plan.len() <= MAX_RECORDED_TRANSFERS,
        ..options.clone()
    };
    let (fluid, flows) = log_plan(network, schedule, &plan.routes, size, rule, &options)?;
    let path = &fluid.critical_path;
    let wanted: Vec<usize> = path.iter().map(|critical| critical.transfer).collect();
    let path_bottlenecks: Vec<Option<u32>> = wanted
        .iter()
        .filter_map(|&flow| flows.flow(flow as u32))
        .map(|logged| Some(logged.bottleneck).filter(|&link| link != NONE))
        .collect();
    let (slots, transfers) = step_columns(plan, &flows, wanted);
    let critical_path: Vec<Critical> = fluid
        .critical_path
        .iter()
        .zip(transfers)
        .map(|(critical, transfer)| Critical {
            transfer,
            ..*critical
        })
        .collect();
    Ok(Outcome {
        start: Some(fluid.start_rule),
        time: fluid.time,
        utilisation: link_shares::mean(network, &fluid.utilisation),
        slots,
        links: fluid.links,
        ranks: fluid.ranks,
        settings: fluid.settings,
        details: Details::default().with(Flowing {
            bottleneck: link_shares::bottleneck(&critical_path, &path_bottlenecks),
            critical_path: PathColumns {
                bottleneck: path_bottlenecks,
            },
            most_loaded_link: fluid.most_loaded_link,
            links: LinkShares {
                utilisation: fluid.utilisation,
            },
            profile: fluid.profile,
            link_use: fluid.link_use,
        }),
        critical_path,
        ..Outcome::default()
    })
}

/// Memory in bytes of a flow under way, for its route, its share of each link and its record.
const BYTES_PER_FLOW: u64 = 480;

/// Returns the first start and the last end of each step. Also returns the first transfer of each
/// flow whose index is in `wanted`. If flows are not recorded, the columns are empty.
fn step_columns(plan: &Plan, flows: &FlowLog, wanted: Vec<usize>) -> (SlotColumns, Vec<usize>) {
    let schedule = &plan.schedule;
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&place| wanted[place]);
    let mut order = order.into_iter().peekable();
    let mut transfers = vec![0; wanted.len()];
    let mut slots = SlotColumns::default();
    let (mut flow, mut before) = (0, Time::ZERO);
    let steps = if flows.is_empty() {
        0
    } else {
        schedule.steps()
    };
    for step in 0..steps {
        interrupt::check();
        let first = flow;
        for transfer in StepMessages::firsts(schedule, &plan.routes, step) {
            interrupt::check();
            while let Some(place) = order.next_if(|&place| wanted[place] == flow) {
                transfers[place] = transfer;
            }
            flow += 1;
        }
        let (start, end) = flows
            .span(first as u32, flow - first)
            .unwrap_or((before, before));
        slots.start.push(start);
        slots.end.push(end);
        slots.reconfiguration.push(Time::ZERO);
        slots.lightpaths.push((flow - first) as u64);
        before = end;
    }
    (slots, transfers)
}
