//! Utilisation of links, and the bottleneck link of a critical path.

use std::collections::BTreeMap;

use crate::outcome::Critical;
use opticoll_base::units::Time;
use opticoll_fabric::network::Network;

/// Returns the utilisation of each link, indexed by link: the bytes of the link, divided by the
/// bytes that the link's rate carries in `time`. The utilisation is 0 if the link can carry nothing
/// in `time`.
pub(super) fn shares(network: &dyn Network, bytes: &[u64], time: Time) -> Vec<f64> {
    let links = bytes.iter().zip(network.links());
    let share = links.map(|(&bytes, link)| {
        let carried = link.rate.bits_per_second() as f64 * time.seconds();
        let share = bytes as f64 * 8.0 / carried;
        if carried > 0.0 { share } else { 0.0 }
    });
    share.collect()
}

/// Returns the index of the first link with the highest utilisation, or `None` if all utilisations
/// are 0.
pub(super) fn highest(shares: &[f64]) -> Option<u32> {
    let maximum = shares.iter().copied().fold(0.0, f64::max);
    let first = (shares.iter()).position(|share| *share == maximum && maximum > 0.0);
    first.map(|link| link as u32)
}

/// Returns the mean of `shares`, weighted by the rates of the links.
pub(super) fn mean(network: &dyn Network, shares: &[f64]) -> f64 {
    let rates = || {
        let links = network.links().iter();
        links.map(|link| link.rate.bits_per_second() as f64)
    };
    let used: f64 = rates().zip(shares).map(|(rate, share)| rate * share).sum();
    let capacity: f64 = rates().sum();
    if capacity > 0.0 { used / capacity } else { 0.0 }
}

/// Returns the link that limits the transfers of `path` for the longest total time; among equals,
/// the link with the lowest index. `links` contains the link that limits each transfer, indexed
/// like `path`.
pub(super) fn bottleneck(path: &[Critical], links: &[Option<u32>]) -> Option<u32> {
    let mut bounded: BTreeMap<u32, u64> = BTreeMap::new();
    for (critical, link) in path.iter().zip(links) {
        if let Some(link) = link {
            *bounded.entry(*link).or_default() += critical.end.ps() - critical.start.ps();
        }
    }
    let longest = *bounded.values().max()?;
    let mut links = bounded.into_iter();
    links
        .find(|&(_, time)| time == longest)
        .map(|(link, _)| link)
}
