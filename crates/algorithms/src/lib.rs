//! Named algorithms, each of which turns a collective into a schedule.
//!
//! Every algorithm is a file and an [`Algorithm`] record in this crate. The lists of the command
//! line, the tables of the docs and the conformance tests are derived from the records. An
//! algorithm is deterministic, knows no clock, and chooses no route and no wavelength.
//!
//! Three collectives are time reversals of others, and so are their algorithms: `reduce_scatter` is
//! `all_gather` reversed, `reduce` is `broadcast` reversed, `gather` is `scatter` reversed. A
//! record that is `reversed_from` another collective is declared under the name of its reversed
//! form.
//!
//! ```
//!
//! use opticoll_plan::collective::{Collective, CollectiveKind};
//! use opticoll_fabric::fabric::Fabric;
//! let fabric = Fabric::parse("wdm_ring:ranks=16,wavelengths=2")?;
//! let collective = Collective::new(CollectiveKind::AllGather, 16)?;
//! let schedule = opticoll_algorithms::build(&"optree:radices=4x4".parse()?, collective, &fabric)?;
//! assert_eq!(schedule.steps(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod binary_tree;
pub mod binomial;
pub mod bruck;
pub mod chain;
pub mod cyclic_doubling;
pub mod direct;
pub mod dissemination;
pub mod double_tree;
pub mod dual_plane;
mod error;
mod fold;
pub mod formula;
pub mod gather_broadcast;
pub mod glf;
mod grid;
mod grid_core;
pub mod halving_doubling;
pub mod hypercube;
pub mod linear;
pub mod llf;
pub mod multi_ring;
pub mod neighbour_exchange;
pub mod one_stage;
pub mod optree;
pub mod pairwise;
pub mod rails;
pub mod recursive_doubling;
pub mod recursive_halving;
pub mod ring;
pub mod ring_bidirectional;
pub mod scatter_all_gather;
mod scatter_tree;
pub mod swing;
pub mod tar;
pub mod wrht;

use std::sync::LazyLock;

pub use error::AlgorithmError;
use opticoll_base::names::{same_name, suggest};
use opticoll_base::spec::{OptionRecord, Role, Spec, SpecError};
use opticoll_fabric::fabric::circuits::RingShape;
use opticoll_fabric::fabric::{Fabric, Groups, WrongFamily};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Schedule, Transfer};

/// A request for a schedule.
pub struct Request<'a> {
    /// The collective.
    pub collective: Collective,
    /// The fabric. An algorithm may use its shape but never its times; most algorithms ignore the
    /// fabric.
    pub fabric: &'a Fabric,
    /// Name and options as given.
    pub spec: &'a Spec,
    /// Name of the algorithm's record.
    pub name: &'static str,
}

impl Request<'_> {
    /// Returns the number of ranks, N.
    pub fn ranks(&self) -> u32 {
        self.collective.ranks()
    }

    /// Returns the ring of the fabric.
    ///
    /// # Errors
    /// Fails if the fabric is no WDM ring.
    pub fn ring(&self) -> Result<RingShape, WrongFamily> {
        let circuits = self.fabric.circuits();
        let ring = circuits.and_then(|circuits| circuits.ring_shape());
        ring.ok_or(WrongFamily {
            what: self.name,
            needed: "wdm_ring",
            family: self.fabric.family(),
            nature: self.fabric.nature(),
        })
    }

    /// Returns the groups of the fabric.
    ///
    /// # Errors
    /// Fails if the fabric has no groups.
    pub fn groups(&self) -> Result<&dyn Groups, AlgorithmError> {
        self.fabric.groups().ok_or(AlgorithmError::NoGroups {
            name: self.name,
            family: self.fabric.family(),
        })
    }
}

/// Theoretical costs of an algorithm for two or more ranks: the number of steps, and the maximum
/// amounts that a rank sends and receives, counted in blocks (of a rank or of a pair of ranks), or
/// in vectors if the collective has a single vector. `None` if a cost depends on other quantities
/// than the variables below.
///
/// Formulas use `+ - /`, parentheses, products without a sign, `log2`, `floor`, `ceil`, `min`,
/// `max` and these variables: N, the number of ranks; P, the largest power of two up to N; F, 0 if
/// N is a power of two and otherwise 1; H, the largest power of two below N; K, the default of the
/// option `segments`. A dragonfly has G groups of A routers with T ranks each; B is the largest
/// power of two below G. A formula that starts with `<=` is an upper bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostFormulas {
    /// Number of steps of the schedule.
    pub steps: Option<&'static str>,
    /// Maximum amount that a rank sends.
    pub sent: Option<&'static str>,
    /// Maximum amount that a rank receives.
    pub received: Option<&'static str>,
}

impl CostFormulas {
    /// Costs that depend on options and fabric.
    pub const VARIOUS: CostFormulas = CostFormulas {
        steps: None,
        sent: None,
        received: None,
    };

    /// Creates costs from three formulas.
    pub const fn new(
        steps: &'static str,
        sent: &'static str,
        received: &'static str,
    ) -> CostFormulas {
        CostFormulas {
            steps: Some(steps),
            sent: Some(sent),
            received: Some(received),
        }
    }

    /// Returns the costs of the reversed transfers.
    pub const fn reversed(self) -> CostFormulas {
        CostFormulas {
            sent: self.received,
            received: self.sent,
            ..self
        }
    }
}

/// Lower bounds on the link loads of an algorithm on a ring with one chunk per lightpath.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkLoadBound {
    /// Number of slots.
    pub slots: u64,
    /// Chunks over the busiest link of each step, summed over the steps.
    pub by_step: u64,
    /// Chunks over the link that is the busiest over all steps.
    pub busiest: u64,
    /// Chunks over the busiest link of any single step.
    pub most: u64,
    /// Mean number of pairs of ranks whose circuits cross a link; 0 if unknown.
    pub pairs: u64,
}

impl LinkLoadBound {
    /// Returns the loads of `steps` equal steps, in each of which a link carries `chunks` chunks
    /// over `channels` channels.
    pub(crate) fn uniform(steps: u64, chunks: u64, channels: u32) -> LinkLoadBound {
        LinkLoadBound {
            slots: steps * chunks.div_ceil(channels.into()),
            by_step: steps * chunks,
            busiest: steps * chunks,
            most: chunks,
            pairs: 0,
        }
    }

    /// Returns the loads of steps given as (distance, chunks): every rank sends `chunks` chunks
    /// over this distance. The loads are means over all links.
    pub(crate) fn from_distances(
        steps: impl Iterator<Item = (u32, u64)>,
        ring: RingShape,
    ) -> LinkLoadBound {
        let (mut slots, mut by_step, mut link_chunks, mut most) = (0, 0, 0, 0);
        for (distance, chunks) in steps {
            let links = u64::from(distance.min(ring.ranks - distance)) * chunks;
            let load = links.div_ceil(2);
            slots += load.div_ceil(ring.channels.into());
            by_step += load;
            link_chunks += links;
            most = most.max(load);
        }
        LinkLoadBound {
            slots,
            by_step,
            busiest: link_chunks.div_ceil(2),
            most,
            pairs: 0,
        }
    }
}

/// Declaration of an algorithm.
#[derive(Clone, Copy)]
pub struct Algorithm {
    /// Name to type, such as `optree`.
    pub name: &'static str,
    /// Other names, from papers and libraries.
    pub aliases: &'static [&'static str],
    /// Label in figures, such as `OpTree`.
    pub label: &'static str,
    /// Collective that the algorithm carries out.
    pub collective: CollectiveKind,
    /// Summary of one sentence.
    pub summary: &'static str,
    /// Source of the algorithm.
    pub citation: &'static str,
    /// Options of the algorithm.
    pub options: &'static [OptionRecord],
    /// Families that the algorithm is made for; empty for any family.
    pub families: &'static [&'static str],
    /// Theoretical steps and amounts, with the defaults of all options.
    pub costs: CostFormulas,
    /// Lower bound on the link loads on a fault-free ring. `None` if another algorithm's bound is
    /// at least as tight. Fails if options do not fit the ring.
    pub link_load_bound: fn(&Spec, RingShape) -> Result<Option<LinkLoadBound>, AlgorithmError>,
    /// Approximate number of transfers for a number of ranks.
    pub transfers: fn(u32) -> u64,
    /// Collectives for which libraries use the algorithm for short messages.
    pub short_messages: &'static [CollectiveKind],
    /// Checks whether the algorithm runs on a number of ranks; an error states the reason.
    pub accepts: fn(u32) -> Result<(), String>,
    /// Builds the schedule.
    pub build: fn(&Request<'_>) -> Result<Schedule, AlgorithmError>,
    /// Collective of the schedule that `build` makes, which is then reversed; `None` if the
    /// schedule is used as it is.
    pub reversed_from: Option<CollectiveKind>,
}

impl Algorithm {
    /// Creates the record of an algorithm for any fabric and any number of ranks, without options
    /// and with default properties.
    pub(crate) const fn new(
        name: &'static str,
        label: &'static str,
        collective: CollectiveKind,
        build: fn(&Request<'_>) -> Result<Schedule, AlgorithmError>,
    ) -> Algorithm {
        use CollectiveKind::{AllGather, AllToAll, ReduceScatter};
        Algorithm {
            name,
            aliases: &[],
            label,
            collective,
            summary: "",
            citation: "",
            options: &[],
            families: &[],
            costs: CostFormulas::VARIOUS,
            link_load_bound: |_, _| Ok(None),
            transfers: match collective {
                AllGather | ReduceScatter | AllToAll => all_pairs,
                _ => logarithmic_rounds,
            },
            short_messages: &[],
            accepts: |_| Ok(()),
            build,
            reversed_from: None,
        }
    }

    /// Returns whether `name` is the name or an alias of the algorithm.
    pub fn is_named(&self, name: &str) -> bool {
        let mut names = self.aliases.iter().chain([&self.name]);
        names.any(|known| same_name(known, name))
    }

    /// Returns the specifications that the planner tries on a fabric: the plain name first, then
    /// every combination of the values that the options offer for trial.
    pub fn variants(&self, fabric: &Fabric) -> Vec<Spec> {
        let mut specs = vec![Spec::new(self.name)];
        for option in self.options {
            let earlier = match option.role {
                // If halvings are tried, the order of the partners makes no difference.
                Role::Halvings => vec![Spec::new(self.name)],
                _ => specs.clone(),
            };
            for value in option.tries {
                if is_tried(option, value, fabric) {
                    let chosen = earlier.iter();
                    specs.extend(chosen.map(|spec| spec.clone().with(option.name, value)));
                }
            }
        }
        specs
    }

    /// Returns the number of pieces into which the vector is cut, if an option states it.
    pub fn pieces(&self, spec: &Spec) -> Option<u64> {
        let mut options = self.options.iter();
        let option = options.find(|option| option.role == Role::Pieces)?;
        spec.option(option.name)?.parse().ok()
    }
}

/// Returns whether the planner tries a value of an option on a fabric: channels if ranks leave
/// their groups by separate links, and fewer halvings than the ranks have dimensions if circuits
/// connect all pairs of ranks equally.
fn is_tried(option: &OptionRecord, value: &str, fabric: &Fabric) -> bool {
    match option.role {
        Role::Channels => ranks_leave_groups_by_own_links(fabric),
        Role::Halvings => {
            let circuits = fabric.circuits().filter(|_| fabric.planes().is_none());
            let is_uniform = circuits.is_some_and(|circuits| circuits.ring_shape().is_none());
            let dimensions = fabric.ranks().checked_ilog2().unwrap_or(0);
            is_uniform
                && value
                    .parse()
                    .is_ok_and(|halvings: u32| halvings < dimensions)
        }
        _ => true,
    }
}

/// Source of the algorithms of MPI libraries.
pub(crate) const MPICH: &str = "Thakur, Rabenseifner and Gropp, Optimization of Collective \
    Communication Operations in MPICH, IJHPCA 2005";

/// Accepts powers of two only, for [`Algorithm::accepts`].
pub(crate) fn powers_of_two(ranks: u32) -> Result<(), String> {
    match ranks.is_power_of_two() {
        true => Ok(()),
        false => Err("it halves the ranks and needs a power of two".into()),
    }
}

/// Returns N^2, the number of transfers from every rank to every other, for
/// [`Algorithm::transfers`].
pub(crate) fn all_pairs(ranks: u32) -> u64 {
    u64::from(ranks).pow(2)
}

/// Returns N log2 N, the number of transfers with one round per bit, for [`Algorithm::transfers`].
pub(crate) fn logarithmic_rounds(ranks: u32) -> u64 {
    u64::from(ranks) * u64::from(ranks.max(2).ilog2())
}

/// Maximum number of transfers of a schedule, which take about 7 GB of memory with their routes and
/// wavelengths.
const MAX_TRANSFERS: u64 = 1 << 27;

/// Fails if a schedule would have too many transfers.
fn limit(ranks: u32, transfers: u64) -> Result<(), AlgorithmError> {
    if transfers <= MAX_TRANSFERS {
        return Ok(());
    }
    Err(AlgorithmError::TooLarge {
        ranks,
        transfers,
        most: MAX_TRANSFERS,
    })
}

/// Reserves memory for a number of transfers, or fails if there are too many.
pub(crate) fn make_room_for(schedule: &mut Schedule, transfers: u64) -> Result<(), AlgorithmError> {
    limit(schedule.collective.ranks(), transfers)?;
    schedule.reserve(transfers as usize);
    Ok(())
}

/// Reserves memory for N (N - 1) transfers, in which every rank receives N - 1 blocks.
pub(crate) fn make_room(schedule: &mut Schedule, ranks: u32) -> Result<(), AlgorithmError> {
    make_room_for(
        schedule,
        u64::from(ranks) * u64::from(ranks.saturating_sub(1)),
    )
}

/// Returns the meaning of an option's value among the known values, the first of which is the
/// default.
pub fn choice<T: Copy>(spec: &Spec, key: &str, known: &[(&str, T)]) -> Result<T, SpecError> {
    let value = spec.option(key).unwrap_or(known[0].0);
    let entry = known.iter().find(|(name, _)| *name == value);
    entry.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        spec.refuse(key, format!("must be {}", names.join(" or ")))
    })
}

/// Default number of pieces into which a pipeline cuts the vector.
pub(crate) const DEFAULT_SEGMENTS: u32 = 8;

/// Option `segments` of a pipeline; the default is [`DEFAULT_SEGMENTS`].
pub(crate) const SEGMENTS: &[OptionRecord] = &[OptionRecord {
    role: Role::Pieces,
    tries: &[
        "1", "2", "4", "16", "32", "64", "128", "256", "512", "1024", "2048", "4096",
    ],
    ..OptionRecord::new("segments", "number of pieces, sent one after the other")
        .range("1 to 4294967295")
        .default("8")
}];

/// Returns the requested number of segments.
pub(crate) fn segments(spec: &Spec) -> Result<u32, SpecError> {
    let requested = spec.count("segments", 1, u32::MAX)?;
    Ok(requested.unwrap_or(DEFAULT_SEGMENTS))
}

/// Option `channels` of the parallel rings and trees of NCCL; [`channels`] returns its value.
pub(crate) const CHANNELS: OptionRecord = OptionRecord {
    role: Role::Channels,
    tries: &["all"],
    ..OptionRecord::new(
        "channels",
        "number of parallel parts of the data, each of which leaves a group, such as a server, at \
         a different rank",
    )
    .range("1 to the number of ranks of a group; all, as many")
    .default("1, through the ranks without regard to groups")
};

/// Returns the requested number of channels.
pub(crate) fn channels(request: &Request<'_>) -> Result<u32, SpecError> {
    let (spec, max_channels) = (request.spec, group_size(request.fabric));
    let requested = match spec.option(CHANNELS.name) {
        Some("all") => Some(max_channels),
        _ => spec.count(CHANNELS.name, 1, u32::MAX)?,
    };
    let requested = requested.unwrap_or(1);
    match (requested > max_channels, max_channels) {
        (false, _) => Ok(requested),
        (true, 1) => {
            let problem = "this fabric has no groups of ranks, such as servers: leave it out";
            Err(spec.refuse(CHANNELS.name, problem))
        }
        (true, _) => {
            let problem = format!(
                "a group has {max_channels} ranks here: give at most {max_channels}, or all"
            );
            Err(spec.refuse(CHANNELS.name, problem))
        }
    }
}

/// Returns the number of ranks of a group, or 1 if the ranks form no groups.
pub(crate) fn group_size(fabric: &Fabric) -> u32 {
    let network = fabric.network();
    network
        .and_then(|network| network.group_size())
        .unwrap_or(1)
}

/// Returns whether the ranks form several groups and have links of their own besides those within
/// the group, so that data of different ranks leave the group by different links.
fn ranks_leave_groups_by_own_links(fabric: &Fabric) -> bool {
    let Some(network) = fabric.network() else {
        return false;
    };
    let is_at_first = |&(from, to, both_ways): &(u32, u32, bool)| from == 0 || both_ways && to == 0;
    let leaving = network.wiring().ends().filter(is_at_first).count();
    (2..fabric.ranks()).contains(&group_size(fabric)) && leaving > 1
}

/// Appends copies of `count` chunks from `first` on, continuing at chunk 0 after the last chunk:
/// one transfer, or two if the range wraps around.
pub(crate) fn push_cyclic(
    schedule: &mut Schedule,
    (first, count): (u32, u32),
    source: u32,
    destination: u32,
) {
    let chunks = schedule.collective.chunks();
    let first = first % chunks;
    let before_end = count.min(chunks - first);
    for (chunk, count) in [(first, before_end), (0, count - before_end)] {
        if count > 0 {
            schedule.push(Transfer {
                count,
                ..Transfer::copy(chunk, source, destination)
            });
        }
    }
}

/// Records as declared in the files; the reversed records are derived from them.
const WRITTEN: &[&[Algorithm]] = &[
    one_stage::RECORDS,
    ring::RECORDS,
    ring_bidirectional::RECORDS,
    neighbour_exchange::RECORDS,
    wrht::RECORDS,
    dissemination::RECORDS,
    recursive_doubling::RECORDS,
    binomial::RECORDS,
    direct::RECORDS,
    bruck::RECORDS,
    optree::RECORDS,
    pairwise::RECORDS,
    halving_doubling::RECORDS,
    swing::RECORDS,
    dual_plane::RECORDS,
    binary_tree::RECORDS,
    double_tree::RECORDS,
    scatter_all_gather::RECORDS,
    chain::RECORDS,
    linear::RECORDS,
    gather_broadcast::RECORDS,
    recursive_halving::RECORDS,
    hypercube::RECORDS,
    tar::RECORDS,
    glf::RECORDS,
    llf::RECORDS,
    multi_ring::RECORDS,
    rails::RECORDS,
    cyclic_doubling::RECORDS,
];

/// Pairs of a collective and its time reversal.
const REVERSED: [(CollectiveKind, CollectiveKind); 3] = [
    (CollectiveKind::AllGather, CollectiveKind::ReduceScatter),
    (CollectiveKind::Broadcast, CollectiveKind::Reduce),
    (CollectiveKind::Scatter, CollectiveKind::Gather),
];

static RECORDS: LazyLock<Vec<Algorithm>> = LazyLock::new(|| {
    let written = || WRITTEN.iter().copied().flatten().copied();
    let forwards = written().filter(|record| record.reversed_from.is_none());
    let mut records: Vec<Algorithm> = forwards.collect();
    for (forward, backward) in REVERSED {
        records.extend(
            written()
                .filter(|record| record.collective == forward)
                .map(|record| Algorithm {
                    collective: backward,
                    reversed_from: Some(forward),
                    costs: record.costs.reversed(),
                    ..record
                }),
        );
    }
    // Records that are declared under the name of the reversed form only.
    records.extend(written().filter(|record| record.reversed_from.is_some()));
    records.sort_by_key(|record| (record.collective, !record.families.is_empty()));
    records
});

/// Returns all algorithms, by collective; within a collective, those for any fabric come first.
pub fn records() -> &'static [Algorithm] {
    &RECORDS
}

/// Returns the algorithms for a fabric: those for any fabric and those for its family.
pub fn records_for(fabric: &Fabric) -> impl Iterator<Item = &'static Algorithm> + use<> {
    let family = fabric.family();
    let suits =
        move |record: &&Algorithm| record.families.is_empty() || record.families.contains(&family);
    records().iter().filter(suits)
}

/// Returns the record of an algorithm of a collective, for whatever fabric.
pub fn find(collective: CollectiveKind, name: &str) -> Result<&'static Algorithm, AlgorithmError> {
    let candidates = || {
        records()
            .iter()
            .filter(|record| record.collective == collective)
    };
    candidates()
        .find(|record| record.is_named(name))
        .ok_or_else(|| AlgorithmError::Unknown {
            name: name.into(),
            collective,
            hint: suggest(name, candidates().map(|record| record.name)),
        })
}

/// Builds the schedule of the algorithm that `spec` names in the form in which the fabric carries
/// it. On a fabric whose lightpaths carry one chunk per slot, each chunk is a transfer; an
/// electrical fabric carries ranges of chunks.
///
/// # Errors
/// Fails for an unknown algorithm or option, a number of ranks that the algorithm does not support,
/// a fabric with another number of ranks than the collective, and more transfers than fit into
/// memory.
pub fn build(
    spec: &Spec,
    collective: Collective,
    fabric: &Fabric,
) -> Result<Schedule, AlgorithmError> {
    carried(build_ranges(spec, collective, fabric)?, fabric)
}

/// Converts a schedule of ranges into the form in which a fabric carries it: one transfer per chunk
/// if circuits carry one chunk.
///
/// # Errors
/// Fails if the transfers do not fit into memory.
pub fn carried(ranges: Schedule, fabric: &Fabric) -> Result<Schedule, AlgorithmError> {
    if !carries_one_chunk(fabric) {
        return Ok(ranges);
    }
    limit(ranges.collective.ranks(), ranges.deliveries())?;
    Ok(ranges.into_single_chunks())
}

/// Returns whether each circuit of a fabric carries one chunk.
fn carries_one_chunk(fabric: &Fabric) -> bool {
    let circuits = fabric.circuits();
    circuits.is_some_and(|circuits| circuits.carries_one_chunk())
}

/// Builds the same schedule with one transfer per range of chunks, as a network sends messages: the
/// transfers of a step with the same source, destination and action are one message.
///
/// # Errors
/// Fails as [`build`] does.
///
/// Algorithms send blocks. If a demand states the sizes of blocks, its chunks replace the blocks.
pub fn build_ranges(
    spec: &Spec,
    collective: Collective,
    fabric: &Fabric,
) -> Result<Schedule, AlgorithmError> {
    let record = find(collective.kind(), spec.name())?;
    spec.only_declared(record.options)?;
    let ranks = collective.ranks();
    if ranks != fabric.ranks() {
        return Err(AlgorithmError::Ranks {
            collective: ranks,
            fabric: fabric.ranks(),
        });
    }
    if collective.pieces() > 1 {
        let reason = "it chooses the number of pieces of a block itself; request one piece".into();
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
    if collective.demand().is_some() {
        let block_schedule = build_ranges(spec, collective.without_demand(), fabric)?;
        if block_schedule.collective.pieces() > 1 {
            let reason = "it cuts blocks into equal pieces, but a demand defines its own pieces";
            return Err(AlgorithmError::Refused {
                name: record.name,
                ranks,
                reason: reason.into(),
            });
        }
        return Ok(block_schedule.with_demand_of(collective));
    }
    let request = |collective| Request {
        collective,
        fabric,
        spec,
        name: record.name,
    };
    let Some(forward) = record.reversed_from else {
        return (record.build)(&request(collective));
    };
    let forward = Collective::new(forward, ranks)?.with_root(collective.root())?;
    let schedule = (record.build)(&request(forward))?;
    Ok(schedule.reversed(collective.with_pieces(schedule.collective.pieces())?))
}
