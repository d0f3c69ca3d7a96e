//! Named algorithms, each of which turns a collective into a schedule.
//!
//! Every algorithm is a file and an [`Algorithm`] record in this crate. The lists of the command
//! line, the tables of the docs and the conformance tests are derived from the records. An
//! algorithm is deterministic, uses no times, and assigns neither routes nor wavelengths.
//!
//! The algorithms of three collectives are time reversals: `reduce_scatter` reverses `all_gather`,
//! `reduce` reverses `broadcast`, and `gather` reverses `scatter`. If a record sets
//! [`Algorithm::reversed_from`], its `collective` is the collective after the reversal.
//!
//! ```
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
mod channels;
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
pub mod nvls;
pub mod one_stage;
pub mod optree;
pub mod pairwise;
pub mod pat;
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

pub(crate) use channels::{CHANNELS, channels, group_size, size_of_several_groups};
pub use error::AlgorithmError;
use opticoll_base::names::{same_name, suggest};
use opticoll_base::spec::{OptionRecord, Role, Spec, SpecError};
use opticoll_fabric::fabric::circuits::RingShape;
use opticoll_fabric::fabric::{Fabric, Groups, WrongFamily};
use opticoll_fabric::network::InNetwork;
use opticoll_fabric::network::in_network::work_of_switches;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Schedule, Transfer};

/// A request for a schedule.
pub struct Request<'a> {
    /// The collective to carry out.
    pub collective: Collective,
    /// The fabric. Algorithms may use the shape of the fabric, but never its times. Most algorithms
    /// ignore the fabric.
    pub fabric: &'a Fabric,
    /// Name and options of the algorithm, as the user wrote them.
    pub spec: &'a Spec,
    /// Name in the algorithm's record, for error messages.
    pub name: &'static str,
}

impl Request<'_> {
    /// Returns the number of ranks, N.
    pub fn ranks(&self) -> u32 {
        self.collective.ranks()
    }

    /// Returns the shape of the fabric, which must be a ring.
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

    /// Returns the groups of the fabric's ranks.
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

/// Theoretical costs of an algorithm on at least two ranks, as formulas: the number of steps, and
/// the maximum amounts that a rank sends and receives. The unit of the amounts is a block or, if
/// all ranks share one vector, the vector. A formula may contain these variables; a cost that
/// depends on anything else is `None`:
/// - N: number of ranks; F: 0 if N is a power of two, otherwise 1;
/// - P, H: largest powers of two with P <= N and H < N;
/// - K: default of the option `segments`;
/// - G, A, T: a dragonfly has G groups of A routers with T ranks each;
/// - B: largest power of two below G.
///
/// Formulas use `+ - /`, parentheses, `log2`, `floor`, `ceil`, `min` and `max`. A product has no
/// operator, as in `2 N`. A formula that starts with `<=` is an upper bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostFormulas {
    /// Number of steps of the schedule.
    pub steps: Option<&'static str>,
    /// Maximum amount that a rank sends, in blocks or vectors.
    pub sent: Option<&'static str>,
    /// Maximum amount that a rank receives, in blocks or vectors.
    pub received: Option<&'static str>,
}

impl CostFormulas {
    /// Costs without formulas, because they depend on options or on the fabric.
    pub const VARIOUS: CostFormulas = CostFormulas {
        steps: None,
        sent: None,
        received: None,
    };

    /// Creates costs from formulas for the number of steps and the amounts sent and received.
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

    /// Returns the costs of the time reversal, in which every rank sends what it received before.
    pub const fn reversed(self) -> CostFormulas {
        CostFormulas {
            sent: self.received,
            received: self.sent,
            ..self
        }
    }
}

/// Lower bounds on link loads on a ring whose lightpaths carry one chunk each. The load of a link
/// is a number of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkLoadBound {
    /// Number of slots.
    pub slots: u64,
    /// Load of the busiest link of each step, summed over all steps, in chunks.
    pub step_maxima: u64,
    /// Load of the busiest link after all steps, in chunks.
    pub busiest_link: u64,
    /// Load of the busiest link in the step that loads it most, in chunks.
    pub max_step_load: u64,
    /// Mean, over all links, of the number of pairs of ranks whose circuits use the link; 0 if
    /// unknown.
    pub pairs: u64,
}

impl LinkLoadBound {
    /// Returns the bound for `steps` equal steps. In each step, `chunks` chunks cross every link.
    /// Every link has `channels` channels.
    pub(crate) fn uniform(steps: u64, chunks: u64, channels: u32) -> LinkLoadBound {
        LinkLoadBound {
            slots: steps * chunks.div_ceil(channels.into()),
            step_maxima: steps * chunks,
            busiest_link: steps * chunks,
            max_step_load: chunks,
            pairs: 0,
        }
    }

    /// Returns the bound for `steps`, a list of pairs (distance, chunks). In each step, every rank
    /// sends `chunks` chunks to the rank `distance` positions after it. Loads are means over all
    /// links of the ring.
    pub(crate) fn from_distances(
        steps: impl Iterator<Item = (u32, u64)>,
        ring: RingShape,
    ) -> LinkLoadBound {
        let (mut slots, mut step_maxima, mut link_chunks, mut max_step_load) = (0, 0, 0, 0);
        for (distance, chunks) in steps {
            let links = u64::from(distance.min(ring.ranks - distance)) * chunks;
            let load = links.div_ceil(2);
            slots += load.div_ceil(ring.channels.into());
            step_maxima += load;
            link_chunks += links;
            max_step_load = max_step_load.max(load);
        }
        LinkLoadBound {
            slots,
            step_maxima,
            busiest_link: link_chunks.div_ceil(2),
            max_step_load,
            pairs: 0,
        }
    }
}

/// Declaration of an algorithm.
#[derive(Clone, Copy)]
pub struct Algorithm {
    /// Name in specifications, such as `optree`.
    pub name: &'static str,
    /// Other names, from papers and libraries.
    pub aliases: &'static [&'static str],
    /// Label in figures, such as `OpTree`.
    pub label: &'static str,
    /// Collective that the algorithm carries out.
    pub collective: CollectiveKind,
    /// Summary in one sentence. If a time reversal of the record exists, it has the same summary;
    /// see [`Algorithm::description`].
    pub summary: &'static str,
    /// Publication that describes the algorithm.
    pub citation: &'static str,
    /// Options of the algorithm.
    pub options: &'static [OptionRecord],
    /// Fabric families that the algorithm requires; empty if it accepts any family.
    pub families: &'static [&'static str],
    /// Work of switches that the algorithm needs.
    pub in_network: InNetwork,
    /// Formulas for the numbers of steps and the amounts of data if all options have their
    /// defaults.
    pub costs: CostFormulas,
    /// Returns a lower bound on the link loads on a fault-free ring, or `None` if the bound of
    /// another algorithm is at least as tight. Fails if an option does not fit the ring.
    pub link_load_bound: fn(&Spec, RingShape) -> Result<Option<LinkLoadBound>, AlgorithmError>,
    /// Approximate number of transfers, given the number of ranks.
    pub transfers: fn(u32) -> u64,
    /// Collectives for which MPI libraries use the algorithm if messages are short.
    pub short_messages: &'static [CollectiveKind],
    /// Checks whether the algorithm supports a number of ranks. The error states the reason.
    pub accepts: fn(u32) -> Result<(), String>,
    /// Builds the schedule. If `reversed_from` is `Some`, the caller then reverses the schedule in
    /// time.
    pub build: fn(&Request<'_>) -> Result<Schedule, AlgorithmError>,
    /// Collective of the schedule that `build` returns, if this schedule must be reversed in time.
    /// `None` if `build` returns the schedule of `collective` itself.
    pub reversed_from: Option<CollectiveKind>,
}

impl Algorithm {
    /// Creates the record of an algorithm without options that accepts any fabric and any number of
    /// ranks.
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
            in_network: InNetwork::None,
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

    /// Returns the summary, for the collective of this record. The summary of a time reversal names
    /// the collective that it describes.
    pub fn description(&self) -> String {
        let is_described = |forward: &CollectiveKind| {
            let mut others = records().iter();
            others.any(|other| (other.collective, other.name) == (*forward, self.name))
        };
        let Some(forward) = self.reversed_from.filter(is_described) else {
            return self.summary.into();
        };
        let (first, rest) = self.summary.split_at(1);
        format!("{forward} in reversed time: {}{rest}", first.to_lowercase())
    }

    /// Returns the specifications that `auto` tries on a fabric: first the name without options,
    /// then every combination of the values that the records of the options list in `tries`.
    pub fn variants(&self, fabric: &Fabric) -> Vec<Spec> {
        let mut specs = vec![Spec::new(self.name)];
        for option in self.options {
            let earlier = match option.role {
                // Variants with different numbers of halvings ignore the order of the partners.
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

    /// Returns whether the algorithm accepts a family of fabrics whose switches do the work `work`.
    fn suits(&self, family: &str, work: InNetwork) -> bool {
        (self.families.is_empty() || self.families.contains(&family))
            && (work.adds() || !self.in_network.adds())
            && (work.multicasts() || !self.in_network.multicasts())
    }

    /// Returns the number of pieces that the options request, or `None` if they request none.
    pub fn pieces(&self, spec: &Spec) -> Option<u64> {
        let mut options = self.options.iter();
        let option = options.find(|option| option.role == Role::Pieces)?;
        spec.option(option.name)?.parse().ok()
    }
}

/// Returns whether `auto` tries `value` for `option` on a fabric. Values of `channels` are tried if
/// each rank has its own links out of its group. Values of `halvings` below log2 N are tried if
/// circuits connect all pairs of ranks alike.
fn is_tried(option: &OptionRecord, value: &str, fabric: &Fabric) -> bool {
    match option.role {
        Role::Channels => channels::ranks_leave_groups_by_own_links(fabric),
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

/// Publication on the algorithms of the MPI library MPICH.
pub(crate) const MPICH: &str = "Thakur, Rabenseifner and Gropp, Optimization of Collective \
    Communication Operations in MPICH, IJHPCA 2005";

/// Fails unless the number of ranks is a power of two; for [`Algorithm::accepts`].
pub(crate) fn powers_of_two(ranks: u32) -> Result<(), String> {
    match ranks.is_power_of_two() {
        true => Ok(()),
        false => Err("it halves the ranks and needs a power of two".into()),
    }
}

/// Returns N^2, the approximate number of transfers between all pairs of ranks; for
/// [`Algorithm::transfers`].
pub(crate) fn all_pairs(ranks: u32) -> u64 {
    u64::from(ranks).pow(2)
}

/// Returns N log2 N, the approximate number of transfers if every rank sends one message in each of
/// log2 N steps; for [`Algorithm::transfers`].
pub(crate) fn logarithmic_rounds(ranks: u32) -> u64 {
    u64::from(ranks) * u64::from(ranks.max(2).ilog2())
}

/// Maximum number of transfers of a schedule: about 7 GB with their routes and wavelengths.
const MAX_TRANSFERS: u64 = 1 << 27;

/// Fails if `transfers`, the number of transfers of the schedule, exceeds [`MAX_TRANSFERS`].
fn check_size(ranks: u32, transfers: u64) -> Result<(), AlgorithmError> {
    if transfers <= MAX_TRANSFERS {
        return Ok(());
    }
    Err(AlgorithmError::TooLarge {
        ranks,
        transfers,
        max_transfers: MAX_TRANSFERS,
    })
}

/// Reserves memory for `transfers` transfers. Fails if the schedule would be too large.
pub(crate) fn make_room_for(schedule: &mut Schedule, transfers: u64) -> Result<(), AlgorithmError> {
    check_size(schedule.collective.ranks(), transfers)?;
    schedule.reserve(transfers as usize);
    Ok(())
}

/// Reserves memory for N (N - 1) transfers: each of N ranks receives N - 1 blocks.
pub(crate) fn make_room(schedule: &mut Schedule, ranks: u32) -> Result<(), AlgorithmError> {
    make_room_for(
        schedule,
        u64::from(ranks) * u64::from(ranks.saturating_sub(1)),
    )
}

/// Returns the meaning of the value that `spec` gives to the option `key`. `meanings` lists (value,
/// meaning) for all valid values; the first value is the default.
pub fn choice<T: Copy>(spec: &Spec, key: &str, meanings: &[(&str, T)]) -> Result<T, SpecError> {
    let value = spec.option(key).unwrap_or(meanings[0].0);
    let entry = meanings.iter().find(|(name, _)| *name == value);
    entry.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let names: Vec<&str> = meanings.iter().map(|(name, _)| *name).collect();
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

/// Returns the number of pieces that option `segments` requests, or the default.
pub(crate) fn segments(spec: &Spec) -> Result<u32, SpecError> {
    let requested = spec.count("segments", 1, u32::MAX)?;
    Ok(requested.unwrap_or(DEFAULT_SEGMENTS))
}

/// Appends the transfers that copy `count` chunks, starting at chunk `first`, from `source` to
/// `destination`. If the chunks continue at chunk 0 after the last chunk, a second transfer copies
/// them.
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

/// Records that the modules declare. [`RECORDS`] also contains the records of the time reversals.
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
    pat::RECORDS,
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
    nvls::RECORDS,
];

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
                    in_network: reversed_work(record.in_network),
                    ..record
                }),
        );
    }
    // Records that their modules declare under the collective after the reversal.
    records.extend(written().filter(|record| record.reversed_from.is_some()));
    records.sort_by_key(|record| (record.collective, !record.families.is_empty()));
    records
});

/// Returns the work of switches in the time reversal: multicasts become aggregations.
fn reversed_work(work: InNetwork) -> InNetwork {
    match work {
        InNetwork::Multicast => InNetwork::Reduce,
        InNetwork::Reduce => InNetwork::Multicast,
        InNetwork::None | InNetwork::Both => work,
    }
}

/// Returns all algorithms, sorted by collective. Within a collective, the algorithms that accept
/// any fabric precede the algorithms for certain families.
pub fn records() -> &'static [Algorithm] {
    &RECORDS
}

/// Returns the algorithms that accept the family of a fabric and the work of its switches.
pub fn records_for(fabric: &Fabric) -> impl Iterator<Item = &'static Algorithm> + use<> {
    let family = fabric.family();
    let work = fabric.network().map(work_of_switches);
    let work = work.unwrap_or(InNetwork::None);
    records()
        .iter()
        .filter(move |record| record.suits(family, work))
}

/// Returns the record of the algorithm that has this name or alias and carries out the collective.
/// The algorithm may require a certain fabric.
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

/// Builds the schedule of the algorithm that `spec` names. On a fabric whose lightpaths carry one
/// chunk per slot, every transfer has one chunk. On an electrical fabric, a transfer has a range of
/// consecutive chunks.
///
/// # Errors
/// Fails for an unknown algorithm or option, a number of ranks that the algorithm does not support,
/// a fabric whose number of ranks differs from the number of ranks of the collective, and a
/// schedule that exceeds the memory.
pub fn build(
    spec: &Spec,
    collective: Collective,
    fabric: &Fabric,
) -> Result<Schedule, AlgorithmError> {
    carried(build_ranges(spec, collective, fabric)?, fabric)
}

/// Splits the transfers of a schedule into single chunks if the circuits of the fabric carry one
/// chunk. Otherwise returns the schedule unchanged.
///
/// # Errors
/// Fails if the transfers do not fit into memory.
pub fn carried(ranges: Schedule, fabric: &Fabric) -> Result<Schedule, AlgorithmError> {
    if !carries_one_chunk(fabric) {
        return Ok(ranges);
    }
    check_size(ranges.collective.ranks(), ranges.deliveries())?;
    Ok(ranges.into_single_chunks())
}

fn carries_one_chunk(fabric: &Fabric) -> bool {
    let circuits = fabric.circuits();
    circuits.is_some_and(|circuits| circuits.carries_one_chunk())
}

/// Builds the schedule with one transfer per range of consecutive chunks, on any fabric. A network
/// sends the transfers of a step with the same source, destination and action as one message.
///
/// # Errors
/// Fails as [`build`] does.
///
/// The built-in algorithms send equal blocks. If a demand states the sizes of the blocks, the
/// chunks of the demand replace the equal blocks.
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
        let reason = "it chooses the number of pieces of a block itself; request one piece";
        return Err(AlgorithmError::refused(record.name, ranks, reason));
    }
    (record.accepts)(ranks)
        .map_err(|reason| AlgorithmError::refused(record.name, ranks, reason))?;
    if collective.demand().is_some() {
        let block_schedule = build_ranges(spec, collective.without_demand(), fabric)?;
        if block_schedule.collective.pieces() > 1 {
            let reason = "it cuts blocks into equal pieces, but a demand defines its own pieces";
            return Err(AlgorithmError::refused(record.name, ranks, reason));
        }
        return Ok(block_schedule.with_demand_of(collective));
    }
    let request = |collective| Request {
        collective,
        fabric,
        spec,
        name: record.name,
    };
    let schedule = match record.reversed_from {
        None => (record.build)(&request(collective))?,
        Some(forward) => {
            let forward = Collective::new(forward, ranks)?.with_root(collective.root())?;
            let schedule = (record.build)(&request(forward))?;
            schedule.reversed(collective.with_pieces(schedule.collective.pieces())?)
        }
    };
    if schedule.is_in_network() {
        nvls::check_switches(record.name, &schedule, fabric)?;
    }
    Ok(schedule)
}
