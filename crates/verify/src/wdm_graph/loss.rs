//! Rules of loss and noise: light is strong enough where it is received, and its ratio of signal to
//! noise is large enough.
//!
//! Without amplifiers, light loses power on each link and kilometre, at each vertex between its
//! ends, at each split, and at its ends. With amplifiers it loses power at its ends only, and each
//! amplifier adds noise: h * f * B * F / P, relative to the signal, where P is the power at its
//! input (the launch power less the loss before the amplifier) and F its noise figure.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::ViolationKind;
use super::super::report::{Report, transfer_violation};
use super::lightpaths::Lightpath;
use opticoll_base::decibels::Decibels;
use opticoll_base::interrupt;
use opticoll_fabric::fabric::loss::{LossBudget, Place};
use opticoll_fabric::family::wdm_graph::{NoiseBudget, WdmGraph};
use opticoll_plan::plan::Plan;

/// Power of the noise of an ideal amplifier at its input in a band of 12.5 GHz (0.1 nm) at 1550 nm,
/// in mW: Planck's constant times the frequency times the band.
const LEAST_NOISE: f64 = 6.626_070_15e-34 * (299_792_458.0 / 1550e-9) * 12.5e9 * 1e3;

/// Checks the light of all transfers of a lightpath that is within reach.
pub(super) fn check(plan: &Plan, graph: &WdmGraph, lightpath: &Lightpath<'_>, report: &mut Report) {
    let Some(budget) = &graph.budget else { return };
    // Links after each link of a tree; `None` for a receiver.
    let mut after: FxHashMap<u32, FxHashSet<Option<u32>>> = FxHashMap::default();
    let route_of = |transfer: usize| plan.routes.of(transfer).unwrap_or_default();
    if lightpath.is_tree {
        for &transfer in lightpath.transfers {
            let route = route_of(transfer);
            for (place, link) in route.iter().enumerate() {
                let next = route.get(place + 1).copied();
                after.entry(*link).or_default().insert(next);
            }
        }
    }
    for &transfer in lightpath.transfers {
        interrupt::check();
        let route = route_of(transfer);
        let is_near = graph
            .reach
            .is_none_or(|reach| route.len() <= reach as usize);
        if route.is_empty() || !is_near {
            continue;
        }
        let mut splits = 0u32;
        for link in &route[..route.len() - 1] {
            let outputs = after.get(link).map_or(1, |next| next.len() as u32);
            // The least number of divisions into two that makes this number of outputs.
            splits += outputs.next_power_of_two().trailing_zeros();
        }
        if let Some(problem) = problem(graph, budget, route, splits) {
            let kind = ViolationKind::Reach;
            report.add(kind, || {
                transfer_violation(plan, kind, plan.slot[transfer], transfer, &problem)
            });
        }
    }
}

fn problem(graph: &WdmGraph, budget: &LossBudget, route: &[u32], splits: u32) -> Option<String> {
    let loss = |place: Place| i128::from(budget.losses[place as usize].millionths());
    let vertices = route.len() as i128 - 1;
    let metres = |link: u32| {
        let network = graph.fibre_links();
        let exists = (link as usize) < network.links().len();
        let length = exists.then(|| network.length(link)).flatten();
        length.map_or(0, |length| length.metres())
    };
    let noise_figure = graph.noise.and_then(|noise| noise.noise_figure);
    let mut lost = loss(Place::Fixed) + loss(Place::Drop);
    if noise_figure.is_none() {
        let length: i128 = route.iter().map(|&link| i128::from(metres(link))).sum();
        lost += route.len() as i128 * loss(Place::Link);
        lost += (length * loss(Place::Fibre) + 999) / 1000;
        lost += vertices * loss(Place::Through) + i128::from(splits) * loss(Place::Split);
    }
    let power = budget.launch_power.millionths() - budget.sensitivity.millionths();
    let margin = i128::from(power) - lost;
    if margin < 0 {
        let problem = "the received power is";
        return Some(format!(
            "has light of which {problem} {} dB below the sensitivity",
            Decibels::from_millionths(-margin as i64)
        ));
    }
    let noise = graph.noise?;
    let least = noise.osnr?.millionths();
    let lengths = route.iter().map(|&link| metres(link));
    let total = noise_of(&noise, budget, lengths, vertices as f64, splits);
    let osnr = (-1e7 * libm::log10(total)).round();
    (total > 0.0 && osnr < least as f64).then(|| {
        let [osnr, least] = [osnr as i64, least].map(Decibels::from_millionths);
        format!("has light whose OSNR is {osnr} dB, but {least} dB are needed")
    })
}

/// Returns the power of noise relative to the signal.
fn noise_of(
    noise: &NoiseBudget,
    budget: &LossBudget,
    lengths: impl Iterator<Item = u64>,
    vertices: f64,
    splits: u32,
) -> f64 {
    let decibels = |millionths: i64| millionths as f64 / 1e6;
    let linear = |decibels: f64| libm::exp10(decibels / 10.0);
    let loss = |place: Place| decibels(budget.losses[place as usize].millionths());
    let launch = decibels(budget.launch_power.millionths());
    let amplifier = |lost: f64| match noise.noise_figure {
        Some(figure) => LEAST_NOISE * linear(decibels(figure.millionths()) - launch + lost),
        None => 0.0,
    };
    let after = |place: Place| match loss(place) {
        0.0 => 0.0,
        loss => amplifier(loss),
    };
    let links = lengths.map(|metres| {
        let spans = metres.div_ceil(noise.span).max(1) as f64;
        let lost = loss(Place::Link) + loss(Place::Fibre) * metres as f64 / 1000.0;
        spans * amplifier(lost / spans)
    });
    let crosstalk = noise.crosstalk;
    let crosstalk = crosstalk.map_or(0.0, |ratio| linear(decibels(ratio.millionths())));
    links.sum::<f64>()
        + vertices * (after(Place::Through) + crosstalk)
        + f64::from(splits) * after(Place::Split)
}
