//! Use of channels, ports and converters in the slots of a step.
//!
//! A **colour** is a channel in a slot: colours are numbered slot by slot. A lightpath takes one
//! colour on each link of its route, at the transmitters of its source and at the receivers of its
//! destinations. Each of these resources stores its full colours as bits of 64-bit words, so the
//! first colour that is free everywhere is found word by word. If the ports of ranks are limited,
//! all colours of a slot become full at once.
//!
//! With converters, a colour is also a fibre in a slot, on which converters assign the wavelengths.
//! A link then counts the lightpaths on each fibre. All colours of the fibre are full if as many
//! lightpaths use the fibre as it has wavelengths. If the number of converters is limited, a
//! lightpath prefers a channel, and the vertices count their converters.

use std::ops::Range;

use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_graph::{CONVERTED, GraphLight, WdmGraph};

/// Channels and fibres that lightpaths may use in every slot, in the order of their choice.
pub(super) struct Channels<'a> {
    graph: &'a WdmGraph,
    /// Light of each colour of a slot: channels, then fibres with converted light.
    lights: Vec<GraphLight>,
    /// Number of usable wavelengths of each fibre.
    wavelengths: Vec<u32>,
}

impl Channels<'_> {
    pub(super) fn new(graph: &WdmGraph) -> Channels<'_> {
        let keeps_channels = !graph.converters || graph.converters_per_vertex.is_some();
        let channels = 0..if keeps_channels { graph.channels() } else { 0 };
        let channels = channels.map(|channel| {
            let (fibre, wavelength) = graph.channel(channel);
            GraphLight { fibre, wavelength }
        });
        let fibres = 0..if graph.converters { graph.fibres } else { 0 };
        let fibres = fibres.filter(|&fibre| graph.wavelengths_of(fibre) > 0);
        let fibres = fibres.map(|fibre| GraphLight {
            fibre: fibre as u8,
            wavelength: CONVERTED,
        });
        Channels {
            graph,
            lights: channels.chain(fibres).collect(),
            wavelengths: (0..graph.fibres)
                .map(|fibre| graph.wavelengths_of(fibre))
                .collect(),
        }
    }

    /// Returns the number of colours of a slot.
    pub(super) fn per_slot(&self) -> u32 {
        self.lights.len() as u32
    }

    /// Returns the light of a colour.
    pub(super) fn light(&self, colour: u32) -> GraphLight {
        self.lights[(colour % self.per_slot()) as usize]
    }

    /// Returns the slot of a colour.
    pub(super) fn slot(&self, colour: u32) -> u32 {
        colour / self.per_slot()
    }

    /// Returns the colours of a slot.
    fn slot_colours(&self, slot: u32) -> Range<u32> {
        slot * self.per_slot()..(slot + 1) * self.per_slot()
    }

    /// Returns whether lightpaths on different links may have any colours.
    pub(super) fn are_independent(&self) -> bool {
        let graph = self.graph;
        let has_limits = graph.transmitters.is_some() || graph.receivers.is_some();
        !has_limits && !graph.converters && !graph.multicast
    }

    /// Returns the least number of slots for the given maximum number of lightpaths over a link,
    /// and for the ends of the lightpaths. If light may branch, the ends set no limit.
    pub(super) fn least_slots(&self, load: u32, ends: &[(u32, u32)], ranks: usize) -> u32 {
        let busiest = |limit: Option<u32>, rank_of: fn(&(u32, u32)) -> u32| {
            let Some(limit) = limit.filter(|_| !self.graph.multicast) else {
                return 0;
            };
            let mut count = vec![0u32; ranks];
            let ranks = ends.iter().map(rank_of);
            ranks.for_each(|rank| count[rank as usize] += 1);
            let most = count.into_iter().max().unwrap_or(0);
            most.div_ceil(limit)
        };
        load.div_ceil(self.graph.channels().max(1))
            .max(busiest(self.graph.transmitters, |ends| ends.0))
            .max(busiest(self.graph.receivers, |ends| ends.1))
            .max(1)
    }
}

/// Colours in use in a step.
pub(super) struct StepColours<'a> {
    channels: &'a Channels<'a>,
    links: usize,
    ranks: usize,
    /// Full colours of each resource: links, then transmitters and receivers of ranks, then
    /// converters of vertices.
    full: Vec<Vec<u64>>,
    /// Number of lightpaths on each link, indexed by slot * fibres + fibre, if there are
    /// converters; else empty lists.
    on_fibre: Vec<Vec<u32>>,
    /// Number of lightpaths of transmitters and receivers, and of converters in use, indexed by
    /// slot, for each resource after the links.
    in_use: Vec<Vec<u32>>,
    colours: u32,
}

impl<'a> StepColours<'a> {
    pub(super) fn new(channels: &'a Channels<'a>, vertices: usize) -> StepColours<'a> {
        let network = channels.graph.fibre_links();
        let (links, ranks) = (network.links().len(), network.ranks() as usize);
        StepColours {
            channels,
            links,
            ranks,
            full: vec![Vec::new(); links + 2 * ranks + vertices],
            on_fibre: vec![Vec::new(); links],
            in_use: vec![Vec::new(); 2 * ranks + vertices],
            colours: 0,
        }
    }

    /// Returns the number of slots in use, at least 1, because an empty step needs a slot.
    pub(super) fn slots(&self) -> u32 {
        self.colours.div_ceil(self.channels.per_slot()).max(1)
    }

    /// Reserves the first colour that is free on all links of a lightpath and at its ends. Returns
    /// the colour.
    pub(super) fn take(&mut self, source: u32, destinations: &[u32], links: &[u32]) -> u32 {
        let graph = self.channels.graph;
        let mut others: Vec<usize> = Vec::new();
        if graph.transmitters.is_some() {
            others.push(self.links + source as usize);
        }
        if graph.receivers.is_some() {
            let first = self.links + self.ranks;
            others.extend(destinations.iter().map(|&rank| first + rank as usize));
        }
        let ports = others.len();
        let limit = graph.converters_per_vertex;
        if limit.is_some() {
            let first = self.links + 2 * self.ranks;
            let starts = links
                .iter()
                .filter_map(|&link| graph.fibre_links().ends(link));
            let starts = starts.map(|(vertex, _)| vertex);
            let passed = starts.filter(|&vertex| vertex != source);
            others.extend(passed.map(|vertex| first + vertex as usize));
        }
        let (ports, converters) = others.split_at(ports);
        let mut first = 0;
        let colour = loop {
            let colour = self.first_free(links, &others, first);
            let is_converted = self.channels.light(colour).wavelength == CONVERTED;
            if !is_converted || self.has_converters(converters, self.channels.slot(colour)) {
                break colour;
            }
            first = colour + 1;
        };
        let (light, slot) = (self.channels.light(colour), self.channels.slot(colour));
        for &link in links {
            if light.wavelength != CONVERTED {
                self.fill(link as usize, colour..colour + 1);
            }
            if graph.converters {
                self.count_on_fibre(link, slot, light.fibre.into());
            }
        }
        for &port in ports {
            let is_receiver = port >= self.links + self.ranks;
            let limit = match is_receiver {
                true => graph.receivers,
                false => graph.transmitters,
            };
            if self.count(port, slot) >= limit.unwrap_or(u32::MAX) {
                self.fill(port, self.channels.slot_colours(slot));
            }
        }
        if light.wavelength == CONVERTED {
            for &vertex in converters {
                self.count(vertex, slot);
            }
        }
        self.colours = self.colours.max(colour + 1);
        colour
    }

    /// Returns the first colour from `first` on that is not full on any of the links and other
    /// resources.
    fn first_free(&self, links: &[u32], others: &[usize], first: u32) -> u32 {
        let word_of = |resource: usize, word: usize| -> u64 {
            self.full[resource].get(word).copied().unwrap_or(0)
        };
        let mut word = (first / u64::BITS) as usize;
        let mut full = (1 << (first % u64::BITS)) - 1;
        loop {
            interrupt::check();
            for &resource in others {
                full |= word_of(resource, word);
            }
            for &link in links {
                full |= word_of(link as usize, word);
                if full == u64::MAX {
                    break;
                }
            }
            if full != u64::MAX {
                return word as u32 * u64::BITS + full.trailing_ones();
            }
            word += 1;
            full = 0;
        }
    }

    /// Returns whether the vertices have free converters, one for each time that a vertex is
    /// listed.
    fn has_converters(&self, vertices: &[usize], slot: u32) -> bool {
        let limit = self.channels.graph.converters_per_vertex;
        vertices.iter().all(|vertex| {
            let in_use = self.in_use[vertex - self.links].get(slot as usize);
            let needed = vertices.iter().filter(|other| *other == vertex);
            let needed = needed.count() as u32;
            limit.is_none_or(|limit| in_use.copied().unwrap_or(0) + needed <= limit)
        })
    }

    /// Counts a lightpath on a fibre of a link. If the fibre is full, so are all its colours.
    fn count_on_fibre(&mut self, link: u32, slot: u32, fibre: usize) {
        let wavelengths = &self.channels.wavelengths;
        let counts = &mut self.on_fibre[link as usize];
        let place = slot as usize * wavelengths.len() + fibre;
        counts.resize(counts.len().max(place + 1), 0);
        counts[place] += 1;
        if counts[place] >= wavelengths[fibre] {
            for colour in self.channels.slot_colours(slot) {
                if usize::from(self.channels.light(colour).fibre) == fibre {
                    self.fill(link as usize, colour..colour + 1);
                }
            }
        }
    }

    /// Counts a use of a port or of a converter in a slot. Returns the number of uses.
    fn count(&mut self, resource: usize, slot: u32) -> u32 {
        let in_use = &mut self.in_use[resource - self.links];
        in_use.resize(in_use.len().max(slot as usize + 1), 0);
        in_use[slot as usize] += 1;
        in_use[slot as usize]
    }

    /// Marks colours of a resource as full.
    fn fill(&mut self, resource: usize, colours: Range<u32>) {
        let full = &mut self.full[resource];
        let words = colours.end.div_ceil(u64::BITS) as usize;
        full.resize(full.len().max(words), 0);
        for colour in colours {
            full[(colour / u64::BITS) as usize] |= 1 << (colour % u64::BITS);
        }
    }
}
