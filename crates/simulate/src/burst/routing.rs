//! Choice of a route, and of a converter.

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
