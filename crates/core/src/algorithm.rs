//! Named algorithms: each turns a collective into a schedule, and nothing else.
//!
//! Every algorithm is one file and one [`Record`] here. From the records come the command line's
//! lists, the docs' tables and the conformance tests. An algorithm is deterministic, knows no
//! clock, and chooses no route and no wavelength.
//!
//! Three collectives are others run backwards, and so are their algorithms: `reduce_scatter` is
//! `all_gather` reversed, `reduce` is `broadcast` reversed, `gather` is `scatter` reversed.
//!
//! ```
//! use opticoll::algorithm;
//! use opticoll::collective::{Collective, CollectiveKind};
//! use opticoll::fabric::Fabric;
//! let fabric = Fabric::parse("wdm_ring:ranks=16,wavelengths=2")?;
//! let collective = Collective::new(CollectiveKind::AllGather, 16)?;
//! let schedule = algorithm::build(&"optree:radices=4x4".parse()?, collective, &fabric)?;
//! assert_eq!(schedule.steps(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod binary_tree;
pub mod binomial;
pub mod bruck;
pub mod direct;
pub mod neighbour_exchange;
pub mod one_stage;
pub mod optree;
pub mod recursive_doubling;
pub mod ring;
pub mod ring_bidirectional;
pub mod wrht;

use std::sync::LazyLock;

use thiserror::Error;

use crate::collective::{Collective, CollectiveError, CollectiveKind};
use crate::fabric::{Fabric, WdmRing};
use crate::schedule::Schedule;
use crate::spec::{Spec, SpecError};
use crate::spelling::{same_name, suggest};

/// Why no schedule was made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AlgorithmError {
    /// No algorithm of the collective has this name.
    #[error("unknown algorithm `{name}` for {collective}{hint}")]
    Unknown {
        /// The name as given.
        name: String,
        /// The collective.
        collective: CollectiveKind,
        /// The nearest known name, or all of them.
        hint: String,
    },
    /// An option is unknown or does not fit.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The algorithm does not run here.
    #[error("`{name}` does not run with N = {ranks}: {reason}")]
    Refused {
        /// The algorithm.
        name: &'static str,
        /// The number of ranks.
        ranks: u32,
        /// Why not, and what would do.
        reason: String,
    },
    /// The fabric and the collective differ in their number of ranks.
    #[error("the collective has {collective} ranks, the fabric {fabric}")]
    Ranks {
        /// Ranks of the collective.
        collective: u32,
        /// Ranks of the fabric.
        fabric: u32,
    },
    /// More transfers than fit into memory.
    #[error(
        "{transfers} transfers among {ranks} ranks are too many to list one by one (at most {most}); \
         plan for fewer ranks"
    )]
    TooLarge {
        /// The number of ranks.
        ranks: u32,
        /// The transfers that the schedule would have.
        transfers: u64,
        /// The most that a schedule may have.
        most: u64,
    },
    /// The collective that the algorithm needs cannot be made.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
}

/// What an algorithm is asked for.
pub struct Request<'a> {
    /// The collective.
    pub collective: Collective,
    /// The ring it is for. Only its shape may matter to an algorithm, never its times.
    pub ring: &'a WdmRing,
    /// The name and options given.
    pub spec: &'a Spec,
}

impl Request<'_> {
    /// The number of ranks, N.
    pub fn ranks(&self) -> u32 {
        self.collective.ranks()
    }
}

/// The declaration of an algorithm.
#[derive(Clone, Copy)]
pub struct Record {
    /// As typed, such as `optree`.
    pub name: &'static str,
    /// As printed in figures, such as `OpTree`.
    pub label: &'static str,
    /// What it carries out.
    pub collective: CollectiveKind,
    /// One sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
    /// Options with their meaning and default.
    pub options: &'static [(&'static str, &'static str)],
    /// Whether it runs on so many ranks; if not, why.
    pub accepts: fn(u32) -> Result<(), String>,
    /// Makes the schedule.
    pub build: fn(&Request<'_>) -> Result<Schedule, AlgorithmError>,
    /// The collective whose schedule `build` makes, to be run backwards for this one.
    pub reversed_from: Option<CollectiveKind>,
}

/// The most transfers that a schedule is built for: some 7 GB with routes and wavelengths.
const MOST_TRANSFERS: u64 = 1 << 27;

/// Makes room for the N(N - 1) transfers in which every rank receives N - 1 blocks.
pub(crate) fn make_room(schedule: &mut Schedule, ranks: u32) -> Result<(), AlgorithmError> {
    let transfers = u64::from(ranks) * u64::from(ranks.saturating_sub(1));
    if transfers > MOST_TRANSFERS {
        return Err(AlgorithmError::TooLarge {
            ranks,
            transfers,
            most: MOST_TRANSFERS,
        });
    }
    schedule.reserve(transfers as usize);
    Ok(())
}

/// For [`Record::accepts`]: any number of ranks.
pub(crate) fn any_ranks(_ranks: u32) -> Result<(), String> {
    Ok(())
}

/// The algorithms that are written down; the reversed ones are derived from them.
const WRITTEN: &[&[Record]] = &[
    optree::RECORDS,
    one_stage::RECORDS,
    ring::RECORDS,
    ring_bidirectional::RECORDS,
    neighbour_exchange::RECORDS,
    wrht::RECORDS,
    recursive_doubling::RECORDS,
    bruck::RECORDS,
    binary_tree::RECORDS,
    binomial::RECORDS,
    direct::RECORDS,
];

/// Which collective becomes which when it runs backwards.
const REVERSED: [(CollectiveKind, CollectiveKind); 3] = [
    (CollectiveKind::AllGather, CollectiveKind::ReduceScatter),
    (CollectiveKind::Broadcast, CollectiveKind::Reduce),
    (CollectiveKind::Scatter, CollectiveKind::Gather),
];

static RECORDS: LazyLock<Vec<Record>> = LazyLock::new(|| {
    let written = || WRITTEN.iter().copied().flatten().copied();
    let mut records: Vec<Record> = written().collect();
    for (forward, backward) in REVERSED {
        records.extend(
            written()
                .filter(|record| record.collective == forward)
                .map(|record| Record {
                    collective: backward,
                    reversed_from: Some(forward),
                    ..record
                }),
        );
    }
    records.sort_by_key(|record| record.collective);
    records
});

/// All algorithms, by collective; the first of a collective is its default.
pub fn records() -> &'static [Record] {
    &RECORDS
}

/// The record of an algorithm of a collective.
pub fn find(collective: CollectiveKind, name: &str) -> Result<&'static Record, AlgorithmError> {
    let of_collective = || {
        records()
            .iter()
            .filter(|record| record.collective == collective)
    };
    of_collective()
        .find(|record| same_name(record.name, name))
        .ok_or_else(|| AlgorithmError::Unknown {
            name: name.into(),
            collective,
            hint: suggest(name, of_collective().map(|record| record.name)),
        })
}

/// Builds the schedule of the algorithm that `spec` names.
///
/// # Errors
/// An unknown algorithm or option, a number of ranks that the algorithm does not run on, or a
/// fabric with another number of ranks than the collective.
pub fn build(
    spec: &Spec,
    collective: Collective,
    fabric: &Fabric,
) -> Result<Schedule, AlgorithmError> {
    let record = find(collective.kind(), spec.name())?;
    let known: Vec<&str> = record.options.iter().map(|(key, _)| *key).collect();
    spec.only(&known)?;
    let ranks = collective.ranks();
    if ranks != fabric.ranks() {
        return Err(AlgorithmError::Ranks {
            collective: ranks,
            fabric: fabric.ranks(),
        });
    }
    if collective.pieces() > 1 {
        let reason = "it decides by itself into how many pieces blocks are cut; ask for one".into();
        return Err(AlgorithmError::Refused {
            name: record.name,
            ranks,
            reason,
        });
    }
    (record.accepts)(ranks).map_err(|reason| AlgorithmError::Refused {
        name: record.name,
        ranks,
        reason,
    })?;
    let Fabric::WdmRing(ring) = fabric;
    let Some(forward) = record.reversed_from else {
        return (record.build)(&Request {
            collective,
            ring,
            spec,
        });
    };
    let forward = Collective::new(forward, ranks)?.with_root(collective.root())?;
    let schedule = (record.build)(&Request {
        collective: forward,
        ring,
        spec,
    })?;
    let collective = collective.with_pieces(schedule.collective.pieces())?;
    Ok(schedule.reversed(collective))
}
