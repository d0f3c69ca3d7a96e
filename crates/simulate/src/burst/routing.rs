//! Choice of a route, and of the wavelengths along a route at one instant.

use super::channels::{ChannelGroups, Span};
use super::network::BurstNetwork;

/// Returns the index of a route with the fewest links. Among these routes, selects the route whose
/// most loaded link has the fewest wavelengths reserved after time `now`, and among equals the
/// first route.
pub(super) fn least_loaded(routes: &[Box<[u32]>], channels: &ChannelGroups, now: u64) -> usize {
    let load = |route: &[u32]| {
        let reserved = route
            .iter()
            .map(|link| channels.reserved_channels(*link, now));
        reserved.max().unwrap_or(0)
    };
    let fewest = routes.iter().map(|route| route.len()).min().unwrap_or(0);
    let shortest = (0..routes.len()).filter(|number| routes[*number].len() == fewest);
    shortest
        .min_by_key(|number| load(&routes[*number]))
        .unwrap_or(0)
}

/// Returns one wavelength per link of a route, with as few changes of the wavelength as possible,
/// or `None` if no such wavelengths exist. A change between two links needs a free converter at the
/// node between the links. Among equals, the last link has the lowest possible wavelength. Each
/// link before it has the wavelength of the next link if possible, and otherwise the lowest
/// possible wavelength.
///
/// The function computes for each link and wavelength the minimum number of changes up to this
/// link. It is the minimum for the same wavelength on the previous link or, if smaller, one more
/// than the minimum over all wavelengths of the previous link.
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
            let mut counts = (0..wavelengths)
                .filter_map(|wavelength| reached[wavelength].map(|count| (count, wavelength)));
            match count {
                None => counts.min(),
                Some(count) => counts.find(|(found, _)| *found == count),
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

/// Returns a free converter at the node or switch at which the link of `span` starts, as the span
/// of this node and the index of the converter.
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
