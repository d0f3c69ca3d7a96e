//! Switches that add or multicast: all switches of a graph, or some of them.

use crate::fabric::FabricError;
use crate::fabric::part::{joined, parse_rank_range, rank_range_text};
use crate::fabric::wiring::IN_NETWORK;
use crate::network::InNetwork;
use opticoll_base::spec::{OptionRecord, Spec};

/// Work of the switches of a graph on data that pass them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Working {
    pub(super) work: InNetwork,
    /// Ranges of vertices that do the work, in ascending order; other vertices only forward.
    switches: Vec<(u32, u32)>,
}

/// Option with the work of the switches.
pub(super) const OPTION: OptionRecord = IN_NETWORK
    .range("none, multicast, reduce or reduce+multicast; @8+10-12 for these switches only")
    .default("none");

impl Working {
    /// Returns the work of the vertices for which `work` is not `none`. `works` has the works of
    /// the vertices from `first` on. Returns `None` if two vertices do different work.
    pub(super) fn of(first: u32, works: impl Iterator<Item = InNetwork>) -> Option<Working> {
        let mut found = Working {
            work: InNetwork::None,
            switches: Vec::new(),
        };
        for (vertex, work) in (first..).zip(works) {
            if work == InNetwork::None {
                continue;
            }
            if found.work != InNetwork::None && found.work != work {
                return None;
            }
            found.work = work;
            match found.switches.last_mut() {
                Some((_, last)) if *last + 1 == vertex => *last = vertex,
                _ => found.switches.push((vertex, vertex)),
            }
        }
        Some(found)
    }

    /// Parses the option for a graph whose switches are the vertices `switches`.
    ///
    /// # Errors
    /// The work is unknown, or a vertex is not a switch.
    pub(super) fn read(
        spec: &Spec,
        switches: std::ops::Range<u32>,
    ) -> Result<Working, FabricError> {
        let refuse = |problem: String| FabricError::from(spec.refuse(OPTION.name, problem));
        let text = spec.option(OPTION.name).unwrap_or(InNetwork::None.name());
        let (word, listed) = match text.split_once('@') {
            Some((word, listed)) => (word, Some(listed)),
            None => (text, None),
        };
        let known = InNetwork::WORDS.iter().find(|(name, _)| *name == word);
        let Some(&(_, work)) = known else {
            let names: Vec<&str> = InNetwork::WORDS.iter().map(|(name, _)| *name).collect();
            return Err(refuse(format!("must be {}", names.join(" or "))));
        };
        let mut works = vec![InNetwork::None; switches.len()];
        match listed {
            None => works.fill(work),
            Some(listed) => {
                for item in listed.split('+') {
                    let range = parse_rank_range(item, switches.end).ok();
                    let Some((first, last)) = range.filter(|range| range.0 >= switches.start)
                    else {
                        return Err(refuse(format!(
                            "`{}` are not switches: after @, write numbers of switches from {} to \
                             {}, such as 8+10-12",
                            opticoll_base::names::terminal_text(item),
                            switches.start,
                            switches.end.saturating_sub(1),
                        )));
                    };
                    let place = |vertex: u32| (vertex - switches.start) as usize;
                    works[place(first)..=place(last)].fill(work);
                }
            }
        }
        // All vertices that work do the same work.
        Ok(Working::of(switches.start, works.into_iter()).expect("one work"))
    }

    /// Returns the text of the option, or `None` if no switch adds or multicasts.
    pub(super) fn text(&self, switches: std::ops::Range<u32>) -> Option<String> {
        let (first, last) = (switches.start, switches.end.saturating_sub(1));
        match &self.switches[..] {
            [] => None,
            [all] if *all == (first, last) => Some(self.work.to_string()),
            some => Some(format!("{}@{}", self.work, joined(some, rank_range_text))),
        }
    }

    /// Returns the work of a vertex.
    pub(super) fn work_of(&self, vertex: u32) -> InNetwork {
        let before = self.switches.partition_point(|(_, last)| *last < vertex);
        match self.switches.get(before) {
            Some((first, _)) if *first <= vertex => self.work,
            _ => InNetwork::None,
        }
    }
}
