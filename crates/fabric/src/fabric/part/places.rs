//! Vertices and links that the items of the options of a part name.

use std::collections::BTreeMap;
use std::fmt;

use super::vertices;
use crate::network::Network;
use opticoll_base::names::terminal_text;
use opticoll_base::spec::whole_number;
use opticoll_base::units::Rate;

/// Vertex or links that an item of an option names. Vertices have their numbers in the whole
/// fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Vertex(u32),
    Links {
        from: u32,
        to: u32,
        both_ways: bool,
        /// Index of the cable, if the item names one of several cables between the same vertices.
        cable: Option<u32>,
    },
}

impl Place {
    /// Returns the links in the opposite direction. Returns `None` if the place is a vertex or
    /// already has both directions.
    pub(super) fn opposite(self) -> Option<Place> {
        match self {
            Place::Links {
                from,
                to,
                both_ways: false,
                cable,
            } => Some(Place::Links {
                from: to,
                to: from,
                both_ways: false,
                cable,
            }),
            _ => None,
        }
    }

    pub(super) fn vertex(self) -> Option<u32> {
        match self {
            Place::Vertex(vertex) => Some(vertex),
            Place::Links { .. } => None,
        }
    }

    /// Returns whether the place names the link from vertex `first` to vertex `second` with this
    /// cable number. The third member of the tuple is true if the link is half-duplex; such a link
    /// also matches in the opposite direction.
    pub(super) fn names_link(
        &self,
        (first, second, is_half_duplex): (u32, u32, bool),
        number: Option<u32>,
    ) -> bool {
        match *self {
            Place::Vertex(_) => false,
            Place::Links {
                from,
                to,
                both_ways,
                cable,
            } => {
                let is_reversed = (both_ways || is_half_duplex) && (from, to) == (second, first);
                ((from, to) == (first, second) || is_reversed)
                    && (cable.is_none() || cable == number)
            }
        }
    }

    /// Returns whether the place names the link, or a vertex at one of its ends. The parameters are
    /// those of [`Place::names_link`].
    pub(super) fn names_link_or_end(&self, ends: (u32, u32, bool), number: Option<u32>) -> bool {
        match *self {
            Place::Vertex(vertex) => vertex == ends.0 || vertex == ends.1,
            Place::Links { .. } => self.names_link(ends, number),
        }
    }

    /// Returns the highest rate of the place's links, or `None` if the place has no link.
    pub(super) fn highest_rate(&self, network: &dyn Network) -> Option<Rate> {
        let links = (0..).zip(network.links()).zip(network.wiring().ends());
        let links_here = links
            .filter(|((link, _), ends)| self.names_link_or_end(*ends, network.cable_number(*link)));
        links_here.map(|((_, link), _)| link.rate).max()
    }

    /// Returns whether the place exists in `network`, which has `vertices` vertices.
    pub(super) fn is_part_of(&self, network: &dyn Network, vertices: u32) -> bool {
        match self {
            Place::Vertex(vertex) => *vertex < vertices,
            links => (0..)
                .zip(network.wiring().ends())
                .any(|(link, ends)| links.names_link(ends, network.cable_number(link))),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Place::Vertex(vertex) => write!(formatter, "{vertex}"),
            Place::Links {
                from,
                to,
                both_ways,
                cable,
            } => {
                let arrow = if both_ways { '-' } else { '>' };
                write!(formatter, "{from}{arrow}{to}")?;
                cable.map_or(Ok(()), |number| write!(formatter, "#{number}"))
            }
        }
    }
}

pub(super) struct Names {
    pub(super) by_name: BTreeMap<String, u32>,
    pub(super) vertices: u32,
}

impl Names {
    pub(super) fn new(network: &dyn Network) -> Names {
        let vertices = vertices(network);
        let by_name = (0..vertices).map(|vertex| (network.vertex_name(vertex), vertex));
        Names {
            by_name: by_name.collect(),
            vertices,
        }
    }

    pub(super) fn vertex(&self, text: &str) -> Option<u32> {
        whole_number(text).or_else(|| self.by_name.get(text).copied())
    }

    /// Parses an item such as `0>1`, `0-1`, `0>1#2`, `17`, `rank 0 -> rank 1` or `leaf 0`.
    pub(super) fn parse_place(&self, item: &str) -> Option<Place> {
        if let Some(vertex) = self.vertex(item) {
            return Some(Place::Vertex(vertex));
        }
        let item = item.strip_prefix("link ").unwrap_or(item);
        let named = item
            .strip_suffix(')')
            .and_then(|item| item.rsplit_once(" (cable "));
        let (ends, cable) = match named.or_else(|| item.rsplit_once('#')) {
            Some((ends, number)) => (ends, Some(whole_number(number.trim())?)),
            None => (item, None),
        };
        let (from, to, both_ways) = ends_of(ends, |name| self.vertex(name))?;
        Some(Place::Links {
            from,
            to,
            both_ways,
            cable,
        })
    }

    /// Returns one example of each kind of vertex name, for error messages. Names of the same kind
    /// differ only in their numbers.
    fn example_names(&self) -> Vec<String> {
        let kind = |name: &&String| name.replace(|letter: char| letter.is_ascii_digit(), "");
        let kinds = self.by_name.keys().rev().map(|name| (kind(&name), name));
        let kinds: BTreeMap<String, &String> = kinds.collect();
        let few = kinds.into_values().take(8);
        few.map(|name| format!("`{}`", terminal_text(name)))
            .collect()
    }

    pub(super) fn unknown(&self, item: &str) -> String {
        let ends = item.split("->").map(|end| end.trim_end_matches('<').trim());
        let ends: Vec<&str> = ends.collect();
        let named = |name: &&&str| !name.starts_with(|letter: char| letter.is_ascii_digit());
        let strange = |name: &&&str| self.vertex(name).is_none();
        match ends.iter().filter(named).find(strange) {
            Some(name) => format!(
                "there is no `{}`; vertices have names such as {}",
                terminal_text(name),
                self.example_names().join(", ")
            ),
            None => format!(
                "the fabric has no `{}`; its vertices are 0 to {}, ranks first",
                terminal_text(item),
                self.vertices - 1
            ),
        }
    }
}

/// Parses `0>1`, `0-1`, `rank 0 -> rank 1` or `rank 0 <-> rank 1`. `vertex` looks up a vertex by
/// name. Returns the two vertices, and true if the item means both directions.
pub(crate) fn ends_of(
    item: &str,
    vertex: impl Fn(&str) -> Option<u32>,
) -> Option<(u32, u32, bool)> {
    // `-` and `>` come last, because `<->` and `->` contain them and names may contain them.
    let arrows = ["<->", "->", "-", ">"].map(|arrow| (arrow, arrow == "<->" || arrow == "-"));
    arrows.into_iter().find_map(|(arrow, both_ways)| {
        let (from, to) = item.split_once(arrow)?;
        Some((vertex(from.trim())?, vertex(to.trim())?, both_ways))
    })
}
