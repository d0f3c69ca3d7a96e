//! Bound and optimum of an all_reduce on a fabric whose switches add and multicast (theorem N1).
//!
//! A multicast loads the cable of its sender in both directions, and so does an aggregation with
//! the cable of its receiver. Therefore each byte crosses the cables of all N >= 3 ranks together
//! at least 2 N + 2 times, both directions counted. The algorithm `nvls` needs no more.

use super::cuts::{self, CutPart, Side};
use super::links::{Links, NONE, UNBOUNDED};
use super::ratio::Ratio;
use super::{Witness, WitnessedBound};
use crate::{TimeBound, bits_ps};
use opticoll_base::units::{Bytes, UnitError};
use opticoll_fabric::network::Network;
use opticoll_fabric::network::in_network::GroupFinder;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Maximum number of routes whose loads are counted for an upper bound.
const MAX_ROUTES: u64 = 1 << 20;

/// Returns the number of times that each byte crosses the cables of all ranks, both directions
/// counted; `None` if the theorem does not apply.
fn crossings(links: &Links, collective: &Collective) -> Option<u128> {
    let work = links.work(|_| true);
    let applies = collective.kind() == CollectiveKind::AllReduce && work.multicasts && work.adds;
    (applies && links.ranks >= 3).then_some(2 * u128::from(links.ranks) + 2)
}

/// Returns the bound; `None` if the theorem does not apply. `cables` is indexed by rank.
pub(super) fn bound(
    links: &Links,
    cables: &[CutPart],
    collective: &Collective,
    size: Bytes,
) -> Result<Option<WitnessedBound>, UnitError> {
    let Some(crossings) = crossings(links, collective) else {
        return Ok(None);
    };
    // A group does not wait for the link of its hub's own data, so no window is certain.
    let mut together = super::links::Windows::default();
    for rank in cables {
        together.add(0, rank.inwards.rate());
        together.add(0, rank.outwards.rate());
    }
    let bits = bits_ps(crossings * u128::from(size.get()))?;
    Ok(Some(WitnessedBound {
        bound: TimeBound {
            time: together.time_to_carry(bits)?,
            name: "in_network",
            assumption: "switches add and multicast, and the rank that receives a sum or sends a \
                         multicast belongs to the group",
        },
        witness: Some(witness(links)),
    }))
}

fn witness(links: &Links) -> Witness {
    let [.., both] = Side::all(None);
    let rank_of = |vertex: usize| match vertex < links.ranks as usize {
        true => vertex as u32,
        false => NONE,
    };
    cuts::witness(links, rank_of, both)
}

/// Returns the bound as a ratio to the size, with its witness.
pub(super) fn ratio(links: &Links, collective: &Collective) -> Option<(Ratio, Witness)> {
    let is_rank = |vertex: usize| vertex < links.ranks as usize;
    let mut rate = 0u128;
    for edge in &links.edges {
        let ends = u128::from(is_rank(edge.from)) + u128::from(is_rank(edge.to));
        if ends > 0 && edge.rate == UNBOUNDED {
            return None;
        }
        rate += ends * edge.rate.min(u128::from(u64::MAX));
    }
    let bytes = crossings(links, collective)?;
    Some((Ratio { bytes, rate }.reduced(), witness(links)))
}

/// Returns the time that the busiest link needs for the algorithm `nvls`, as a ratio to the size.
/// `None` if the switches cannot carry out the algorithm, or if there are too many routes.
pub(super) fn reached(network: &dyn Network, links: &Links) -> Option<Ratio> {
    let work = links.work(|_| true);
    let ranks = links.ranks;
    let routes = u64::from(ranks) * u64::from(ranks);
    if !work.multicasts || !work.adds || routes > MAX_ROUTES {
        return None;
    }
    let mut loads = vec![0u128; links.edges.len()];
    let mut finder = GroupFinder::new(network);
    for hub in 0..ranks {
        for adds in [false, true] {
            let others = (0..ranks).filter(|&rank| rank != hub);
            let route = |other: u32| {
                let mut route = Vec::new();
                match adds {
                    true => network.route(other, hub, &mut route),
                    false => network.route(hub, other, &mut route),
                }
                route
            };
            for link in finder.links(adds, others.map(route).collect())?.links {
                loads[link as usize] += 1;
            }
        }
    }
    let mut most: Option<Ratio> = None;
    for (edge, load) in links.edges.iter().zip(loads).filter(|(_, load)| *load > 0) {
        if edge.rate == UNBOUNDED {
            return None;
        }
        let time = Ratio {
            bytes: load,
            rate: edge.rate,
        }
        .divided_by(ranks.into())?;
        if most.map_or(Some(true), |most| most.is_below(time))? {
            most = Some(time);
        }
    }
    most
}
