//! Named algorithms: each turns a collective into a schedule, and nothing else.
//!
//! Every algorithm is one file and one [`Algorithm`] here. From the records come the command line's
//! lists, the docs' tables and the conformance tests. An algorithm is deterministic, knows no
//! clock, and chooses no route and no wavelength.
//!
//! Three collectives are others run backwards, and so are their algorithms: `reduce_scatter` is
//! `all_gather` reversed, `reduce` is `broadcast` reversed, `gather` is `scatter` reversed. A record
//! that is `reversed_from` another collective is declared under the name by which its backward form
//! is known.
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

/// What an algorithm is asked for.
pub struct Request<'a> {
    /// The collective.
    pub collective: Collective,
    /// The fabric it is for. Only its shape may matter to an algorithm, never its times; most
    /// algorithms do not look at it.
    pub fabric: &'a Fabric,
    /// The name and options given.
    pub spec: &'a Spec,
    /// The algorithm, as its record is named.
    pub name: &'static str,
}

impl Request<'_> {
    /// The number of ranks, N.
    pub fn ranks(&self) -> u32 {
        self.collective.ranks()
    }

    /// The ring that some algorithms are made for.
    ///
    /// # Errors
    /// The ranks lie on none.
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

    /// The groups that some algorithms are made for.
    ///
    /// # Errors
    /// The fabric has none.
    pub fn groups(&self) -> Result<&dyn Groups, AlgorithmError> {
        self.fabric.groups().ok_or(AlgorithmError::NoGroups {
            name: self.name,
            family: self.fabric.family(),
        })
    }
}

/// What an algorithm costs by theory, for two ranks and more: the number of steps, and the most that
/// a rank sends and receives, counted in blocks (of one rank, or of one pair of ranks), or in
/// vectors where the collective has but one. `None` where it depends on more than is named here.
///
/// Formulas are written with `+ - /`, brackets and products without a sign, with `log2`, `floor`,
/// `ceil`, `min` and `max`, and with N, the number of ranks; P, the largest power of two up to N;
/// F, 1 where N is no power of two and 0 where it is; H, the largest power of two below N; and K,
/// the default of the option `segments`. On a dragonfly there are G groups, A routers in each and T
/// ranks on each router; B is the largest power of two below G. A formula that starts with `<=` is an
/// upper bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostFormulas {
    /// The steps of the schedule.
    pub steps: Option<&'static str>,
    /// The most that a rank sends.
    pub sent: Option<&'static str>,
    /// The most that a rank receives.
    pub received: Option<&'static str>,
}

impl CostFormulas {
    /// Costs that depend on options and fabric.
    pub const VARIOUS: CostFormulas = CostFormulas {
        steps: None,
        sent: None,
        received: None,
    };

    /// Costs by three formulas.
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

    /// The costs of the same transfers backwards.
    pub const fn reversed(self) -> CostFormulas {
        CostFormulas {
            sent: self.received,
            received: self.sent,
            ..self
        }
    }
}

/// How much an algorithm loads the links of a ring at least, in single chunks on lightpaths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeastLoads {
    /// Slots.
    pub slots: u64,
    /// Chunks over the busiest link of each step, added up over all steps.
    pub by_step: u64,
    /// Chunks over the link that is the busiest one over all steps.
    pub busiest: u64,
    /// Chunks over the busiest link of any one step.
    pub most: u64,
    /// Pairs of ranks whose circuits pass a link in the mean; 0 where that is not known.
    pub pairs: u64,
}

impl LeastLoads {
    /// The loads of so many steps that are alike, where a link carries `chunks` chunks of each over so many channels.
    pub(crate) fn alike(steps: u64, chunks: u64, channels: u32) -> LeastLoads {
        LeastLoads {
            slots: steps * chunks.div_ceil(channels.into()),
            by_step: steps * chunks,
            busiest: steps * chunks,
            most: chunks,
            pairs: 0,
        }
    }

    /// The loads of steps in each of which every rank sends so many chunks over such a distance, by the means over all links.
    pub(crate) fn by_distances(
        steps: impl Iterator<Item = (u32, u64)>,
        ring: RingShape,
    ) -> LeastLoads {
        let (mut slots, mut by_step, mut both_ways, mut most) = (0, 0, 0, 0);
        for (distance, chunks) in steps {
            let links = u64::from(distance.min(ring.ranks - distance)) * chunks;
            let load = links.div_ceil(2);
            slots += load.div_ceil(ring.channels.into());
            by_step += load;
            both_ways += links;
            most = most.max(load);
        }
        LeastLoads {
            slots,
            by_step,
            busiest: both_ways.div_ceil(2),
            most,
            pairs: 0,
        }
    }
}

/// The declaration of an algorithm.
#[derive(Clone, Copy)]
pub struct Algorithm {
    /// As typed, such as `optree`.
    pub name: &'static str,
    /// Other names, as papers and libraries have them.
    pub aliases: &'static [&'static str],
    /// As printed in figures, such as `OpTree`.
    pub label: &'static str,
    /// What it carries out.
    pub collective: CollectiveKind,
    /// One sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
    /// Its options.
    pub options: &'static [OptionRecord],
    /// The only fabric families that it is made for; none for any.
    pub families: &'static [&'static str],
    /// Steps and volumes by theory, with the defaults of all options.
    pub costs: CostFormulas,
    /// What it does not load links less than on a ring whose ranks all reach each other; `None` where another algorithm is as good.
    /// An error where options do not fit the ring.
    pub least_loads: fn(&Spec, RingShape) -> Result<Option<LeastLoads>, AlgorithmError>,
    /// About how many transfers it has among so many ranks.
    pub transfers: fn(u32) -> u64,
    /// The collectives for which libraries run it where messages are short.
    pub short_messages: &'static [CollectiveKind],
    /// Whether it runs on so many ranks; if not, why.
    pub accepts: fn(u32) -> Result<(), String>,
    /// Makes the schedule.
    pub build: fn(&Request<'_>) -> Result<Schedule, AlgorithmError>,
    /// The collective whose schedule `build` makes, to be run backwards for this one.
    pub reversed_from: Option<CollectiveKind>,
}

impl Algorithm {
    /// An algorithm for any fabric and any number of ranks, without options, of which nothing else is known.
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
            least_loads: |_, _| Ok(None),
            transfers: match collective {
                AllGather | ReduceScatter | AllToAll => all_pairs,
                _ => a_round_each,
            },
            short_messages: &[],
            accepts: |_| Ok(()),
            build,
            reversed_from: None,
        }
    }

    /// Whether a name is one of its names.
    pub fn is_named(&self, name: &str) -> bool {
        let mut names = self.aliases.iter().chain([&self.name]);
        names.any(|own| same_name(own, name))
    }

    /// Its name with every choice among the values that its options have for the planner to try on a fabric; the
    /// plain name first.
    pub fn variants(&self, fabric: &Fabric) -> Vec<Spec> {
        let mut specs = vec![Spec::new(self.name)];
        for option in self.options {
            let plain = match option.role {
                // Which partner comes first makes no difference where halvings are tried.
                Role::Halvings => vec![Spec::new(self.name)],
                _ => specs.clone(),
            };
            for value in option.tries {
                if is_tried(option, value, fabric) {
                    let chosen = plain.iter();
                    specs.extend(chosen.map(|spec| spec.clone().with(option.name, value)));
                }
            }
        }
        specs
    }

    /// Into how many pieces the vector is cut, where an option says it.
    pub fn pieces(&self, spec: &Spec) -> Option<u64> {
        let mut options = self.options.iter();
        let option = options.find(|option| option.role == Role::Pieces)?;
        spec.option(option.name)?.parse().ok()
    }
}

/// Returns whether the planner tries a value of an option on a fabric: channels where ranks leave
/// groups by links of their own, fewer halvings than the ranks have dimensions where circuits lead
/// from every rank to every other alike.
fn is_tried(option: &OptionRecord, value: &str, fabric: &Fabric) -> bool {
    match option.role {
        Role::Channels => ranks_leave_groups_by_own_links(fabric),
        Role::Halvings => {
            let circuits = fabric.circuits().filter(|_| fabric.planes().is_none());
            let is_alike = circuits.is_some_and(|circuits| circuits.ring_shape().is_none());
            let dimensions = fabric.ranks().checked_ilog2().unwrap_or(0);
            is_alike
                && value
                    .parse()
                    .is_ok_and(|halvings: u32| halvings < dimensions)
        }
        _ => true,
    }
}

/// For [`Algorithm::accepts`]: powers of two only.
pub(crate) fn powers_of_two(ranks: u32) -> Result<(), String> {
    match ranks.is_power_of_two() {
        true => Ok(()),
        false => Err("it halves the ranks and needs a power of two".into()),
    }
}

/// For [`Algorithm::transfers`]: from every rank to every other.
pub(crate) fn all_pairs(ranks: u32) -> u64 {
    u64::from(ranks).pow(2)
}

/// For [`Algorithm::transfers`]: log2 N for each rank.
pub(crate) fn a_round_each(ranks: u32) -> u64 {
    u64::from(ranks) * u64::from(ranks.max(2).ilog2())
}

/// The most transfers that a schedule is built for: some 7 GB with routes and wavelengths.
const MOST_TRANSFERS: u64 = 1 << 27;

/// Refuses more transfers than a schedule is built for.
fn limit(ranks: u32, transfers: u64) -> Result<(), AlgorithmError> {
    if transfers <= MOST_TRANSFERS {
        return Ok(());
    }
    Err(AlgorithmError::TooLarge {
        ranks,
        transfers,
        most: MOST_TRANSFERS,
    })
}

/// Makes room for so many transfers.
pub(crate) fn make_room_for(schedule: &mut Schedule, transfers: u64) -> Result<(), AlgorithmError> {
    limit(schedule.collective.ranks(), transfers)?;
    schedule.reserve(transfers as usize);
    Ok(())
}

/// Makes room for the N(N - 1) transfers in which every rank receives N - 1 blocks.
pub(crate) fn make_room(schedule: &mut Schedule, ranks: u32) -> Result<(), AlgorithmError> {
    make_room_for(
        schedule,
        u64::from(ranks) * u64::from(ranks.saturating_sub(1)),
    )
}

/// The meaning of an option's value among those known, the first of which is the default.
pub fn choice<T: Copy>(spec: &Spec, key: &str, known: &[(&str, T)]) -> Result<T, SpecError> {
    let value = spec.option(key).unwrap_or(known[0].0);
    let found = known.iter().find(|(name, _)| *name == value);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        spec.refuse(key, format!("must be {}", names.join(" or ")))
    })
}

/// Into how many pieces a pipeline cuts the vector where nothing is said.
pub(crate) const DEFAULT_SEGMENTS: u32 = 8;

/// The option `segments` of a pipeline; the number is [`DEFAULT_SEGMENTS`].
pub(crate) const SEGMENTS: &[OptionRecord] = &[OptionRecord {
    role: Role::Pieces,
    tries: &[
        "1", "2", "4", "16", "32", "64", "128", "256", "512", "1024", "2048", "4096",
    ],
    ..OptionRecord::new("segments", "pieces that follow one another")
        .range("1 to 4294967295")
        .default("8")
}];

/// The segments asked for.
pub(crate) fn segments(spec: &Spec) -> Result<u32, SpecError> {
    let asked = spec.count("segments", 1, u32::MAX)?;
    Ok(asked.unwrap_or(DEFAULT_SEGMENTS))
}

/// The option `channels` of rings and trees that NCCL runs side by side; [`channels`] is the number.
pub(crate) const CHANNELS: OptionRecord = OptionRecord {
    role: Role::Channels,
    tries: &["all"],
    ..OptionRecord::new(
        "channels",
        "parts of the data that travel side by side and leave each group, such as a server, at a rank of \
         their own",
    )
    .range("1 to the number of ranks of a group; all, as many")
    .default("1, through the ranks without regard to groups")
};

/// The channels asked for.
pub(crate) fn channels(request: &Request<'_>) -> Result<u32, SpecError> {
    let (spec, most) = (request.spec, group_size(request.fabric));
    let asked = match spec.option(CHANNELS.name) {
        Some("all") => Some(most),
        _ => spec.count(CHANNELS.name, 1, u32::MAX)?,
    };
    let asked = asked.unwrap_or(1);
    match (asked > most, most) {
        (false, _) => Ok(asked),
        (true, 1) => {
            let problem = "the ranks form no groups here, such as servers: leave it out";
            Err(spec.refuse(CHANNELS.name, problem))
        }
        (true, _) => {
            let problem = format!("a group has {most} ranks here: give at most {most}, or all");
            Err(spec.refuse(CHANNELS.name, problem))
        }
    }
}

/// The number of ranks of a group; 1 where ranks form no groups.
pub(crate) fn group_size(fabric: &Fabric) -> u32 {
    let network = fabric.network();
    network
        .and_then(|network| network.group_size())
        .unwrap_or(1)
}

/// Whether ranks form several groups, and have links beside the one within their group: what leaves at another rank then
/// leaves by another link.
fn ranks_leave_groups_by_own_links(fabric: &Fabric) -> bool {
    let Some(network) = fabric.network() else {
        return false;
    };
    let is_at_first = |&(from, to, both_ways): &(u32, u32, bool)| from == 0 || both_ways && to == 0;
    let leaving = network.wiring().ends().filter(is_at_first).count();
    (2..fabric.ranks()).contains(&group_size(fabric)) && leaving > 1
}

/// Adds the copies of `count` chunks from `first` on, which go on from 0 after the last chunk: one
/// transfer, or two where they do.
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

/// The algorithms as they are written down; the reversed ones are derived from them.
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

/// Which collective becomes which when it runs backwards.
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
    // Those declared under a name that is known backwards only.
    records.extend(written().filter(|record| record.reversed_from.is_some()));
    records.sort_by_key(|record| (record.collective, !record.families.is_empty()));
    records
});

/// All algorithms, by collective: those for any fabric, then those for some families.
pub fn records() -> &'static [Algorithm] {
    &RECORDS
}

/// All algorithms that are made for a fabric: those for any, and those for its family.
pub fn records_for(fabric: &Fabric) -> impl Iterator<Item = &'static Algorithm> + use<> {
    let family = fabric.family();
    let suits =
        move |record: &&Algorithm| record.families.is_empty() || record.families.contains(&family);
    records().iter().filter(suits)
}

/// The record of an algorithm of a collective, whatever fabric it is for.
pub fn find(collective: CollectiveKind, name: &str) -> Result<&'static Algorithm, AlgorithmError> {
    let of_collective = || {
        records()
            .iter()
            .filter(|record| record.collective == collective)
    };
    of_collective()
        .find(|record| record.is_named(name))
        .ok_or_else(|| AlgorithmError::Unknown {
            name: name.into(),
            collective,
            hint: suggest(name, of_collective().map(|record| record.name)),
        })
}

/// Builds the schedule of the algorithm that `spec` names, as it runs on the fabric: a lightpath
/// carries one chunk in a slot, so that on a ring of wavelengths each chunk is a transfer of its own;
/// an electrical fabric carries ranges.
///
/// # Errors
/// An unknown algorithm or option, a number of ranks that the algorithm does not run on, a fabric
/// with another number of ranks than the collective, or more transfers than fit into memory.
pub fn build(
    spec: &Spec,
    collective: Collective,
    fabric: &Fabric,
) -> Result<Schedule, AlgorithmError> {
    carried(build_ranges(spec, collective, fabric)?, fabric)
}

/// The deliveries of a schedule of ranges as a fabric carries them: where its circuits carry one chunk, with a transfer for each.
///
/// # Errors
/// More transfers than fit into memory.
pub fn carried(ranges: Schedule, fabric: &Fabric) -> Result<Schedule, AlgorithmError> {
    if !carries_one_chunk(fabric) {
        return Ok(ranges);
    }
    limit(ranges.collective.ranks(), ranges.deliveries())?;
    Ok(ranges.into_single_chunks())
}

/// Whether the circuits of a fabric carry one chunk each.
fn carries_one_chunk(fabric: &Fabric) -> bool {
    let circuits = fabric.circuits();
    circuits.is_some_and(|circuits| circuits.carries_one_chunk())
}

/// Builds the same schedule in as few transfers as there are ranges of chunks: what a network sends
/// as messages, all transfers of a step with one source, destination and action being one.
///
/// # Errors
/// As [`build`].
///
/// Algorithms send blocks. Where a demand says what blocks have, its chunks take their place.
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
    if collective.demand().is_some() {
        let of_blocks = build_ranges(spec, collective.without_demand(), fabric)?;
        if of_blocks.collective.pieces() > 1 {
            let reason = "it cuts blocks into equal pieces, and a demand says how its own are cut";
            return Err(AlgorithmError::Refused {
                name: record.name,
                ranks,
                reason: reason.into(),
            });
        }
        return Ok(of_blocks.with_demand_of(collective));
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
