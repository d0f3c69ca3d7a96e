//! Which of the shortest routes a burst takes, and on which wavelengths a route is free at one
//! instant.

use super::channels::{ChannelGroups, Span};
use super::network::BurstNetwork;

/// The number of the route whose fullest link is the least full; the first of equals.
pub(super) fn least_loaded(routes: &[Box<[u32]>], channels: &ChannelGroups, now: u64) -> usize {
    let load = |route: &[u32]| {
        let held = route.iter().map(|link| channels.held(*link, now));
        held.max().unwrap_or(0)
    };
    let fewest = routes.iter().map(|route| route.len()).min().unwrap_or(0);
    let shortest = (0..routes.len()).filter(|number| routes[*number].len() == fewest);
    shortest
        .min_by_key(|number| load(&routes[*number]))
        .unwrap_or(0)
}

/// One wavelength for each span with as few changes as possible, where the node at which a span begins
/// has a converter left. Of equally few the lowest at the last link, and backwards from there the same
/// as long as possible, then the lowest.
///
/// Link by link, the fewest changes with which each wavelength is reached: as many as on the link before,
/// or one more than the fewest of all there.
pub(super) fn fewest_changes(
    network: &BurstNetwork,
    channels: &ChannelGroups,
    banks: &ChannelGroups,
    spans: &[Span],
) -> Option<Vec<u32>> {
    let wavelengths = network.wavelengths() as usize;
    let mut fewest: Vec<Vec<Option<u32>>> = Vec::new();
    for (hop, span) in spans.iter().enumerate() {
        let before = hop.checked_sub(1).map(|before| &fewest[before]);
        let changed = match before {
            None => Some(0),
            Some(before) if converter(network, banks, span).is_some() => {
                before.iter().flatten().min().map(|least| least + 1)
            }
            Some(_) => None,
        };
        let reached = (0..wavelengths).map(|wavelength| {
            let kept = before.and_then(|before| before[wavelength]);
            let reached = kept.into_iter().chain(changed).min();
            reached.filter(|_| channels.is_free(span, wavelength as u32))
        });
        let reached = reached.collect();
        fewest.push(reached);
    }
    let mut chosen = vec![0; spans.len()];
    let mut wanted: Option<(usize, u32)> = None;
    for (hop, reached) in fewest.iter().enumerate().rev() {
        let lowest = |count: Option<u32>| {
            let mut known = (0..wavelengths).filter_map(|one| reached[one].map(|at| (at, one)));
            match count {
                None => known.min(),
                Some(count) => known.find(|(at, _)| *at == count),
            }
        };
        let (changes, wavelength) = match wanted {
            None => lowest(None)?,
            Some((same, changes)) if reached[same] == Some(changes) => (changes, same),
            Some((_, changes)) => lowest(changes.checked_sub(1))?,
        };
        chosen[hop] = wavelength as u32;
        wanted = Some((wavelength, changes));
    }
    Some(chosen)
}

/// A converter that is left at the node where a link begins.
pub(super) fn converter(
    network: &BurstNetwork,
    banks: &ChannelGroups,
    span: &Span,
) -> Option<(Span, u32)> {
    let at = Span {
        group: network.links()[span.group as usize].from,
        ..*span
    };
    banks.first_free(&at).map(|number| (at, number))
}
