//! Lightpaths in the network: setup without a known end, release, and removal.

use crate::burst::channels::{ChannelGroups, Span};
use crate::burst::engine::BurstEngine;
use crate::burst::settings::Signalling;
use crate::burst::source::NEVER;

/// Wavelengths and converters that lightpaths occupy.
#[derive(Debug, Default)]
pub(super) struct HeldChannels {
    /// Occupied wavelengths of links and converters of nodes.
    channels: Vec<HeldChannel>,
    /// Propagation delay of each lightpath in picoseconds, in the order of setup.
    pub(super) propagation_ps: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct HeldChannel {
    converter: bool,
    group: u32,
    number: u32,
    /// End of the channel's reservation before this reservation, in picoseconds.
    before: u64,
}

impl BurstEngine<'_> {
    /// Prepares the engine for lightpaths, before any burst is sent. Under JET, bursts may reserve
    /// channels for later times than a lightpath that is set up now.
    pub(super) fn allow_lightpaths(&mut self) {
        if self.settings.signalling == Signalling::Jet {
            let links = self.network.links().len();
            self.links = ChannelGroups::new(links, self.network.wavelengths(), true);
        }
    }

    /// Sets up a lightpath from host `from` to host `to` and adds its channels to `held`. Returns
    /// false if the lightpath is blocked.
    pub(super) fn open(&mut self, from: u32, to: u32, held: &mut HeldChannels) -> bool {
        let network = self.network;
        let (from, to) = (network.node(from), network.node(to));
        let routes = network.routes(from, to);
        let now = self.now;
        let pair = from * network.nodes() + to;
        let mut tried = self.tried_routes(routes);
        let granted = tried.find_map(|route| {
            let links = routes[route].iter();
            self.spans.clear();
            self.spans.extend(links.map(|&group| Span {
                group,
                from: now,
                until: NEVER,
            }));
            let chosen = self.assign_wavelengths(pair).ok()?;
            Some((&routes[route], chosen))
        });
        let Some((route, chosen)) = granted else {
            return false;
        };
        for hop in 0..route.len() {
            if let Some((at, number)) = self.converter_at(&chosen, hop) {
                held.take(&mut self.converters, true, &at, number, now);
            }
            let span = self.spans[hop];
            held.take(&mut self.links, false, &span, chosen.at(hop), now);
        }
        let latencies = route
            .iter()
            .map(|&link| network.links()[link as usize].latency_ps);
        held.propagation_ps.push(latencies.sum());
        true
    }

    /// Releases the channels `held` of lightpaths at the current time.
    pub(super) fn release(&mut self, held: &mut HeldChannels) {
        let now = self.now;
        for channel in held.channels.drain(..) {
            let groups = self.groups(channel.converter);
            groups.release(channel.group, channel.number, now);
        }
        held.propagation_ps.clear();
    }

    /// Removes the reservations `held` of lightpaths that were set up at the current time.
    pub(super) fn undo(&mut self, held: &mut HeldChannels) {
        for channel in held.channels.drain(..).rev() {
            let groups = self.groups(channel.converter);
            groups.remove(channel.group, channel.number, channel.before);
        }
        held.propagation_ps.clear();
    }

    fn groups(&mut self, converters: bool) -> &mut ChannelGroups {
        match converters {
            true => &mut self.converters,
            false => &mut self.links,
        }
    }
}

impl HeldChannels {
    fn take(
        &mut self,
        groups: &mut ChannelGroups,
        converter: bool,
        span: &Span,
        number: u32,
        now: u64,
    ) {
        self.channels.push(HeldChannel {
            converter,
            group: span.group,
            number,
            before: groups.horizon(span.group, number),
        });
        groups.reserve(span, number, now);
    }
}
