//! Searches for plans that come near the lower bounds of [`crate::bound`].
//!
//! **Relay trees.** An all_gather on a ring looks the same from every rank, so one tree of
//! lightpaths that takes a block from its owner to all others, rotated to all owners, is a whole
//! plan. A lightpath of length l, rotated to all ranks, takes l channels of its direction in its
//! step, when l divides N. What remains is to find *one* tree of N - 1 lightpaths with a step each, later
//! than its parent's, whose lengths add up to at most c channels in every step and direction
//! (`tree`), and to give the rotations channels (`pack`).
//!
//! ```
//! use opticoll::collective::{Collective, CollectiveKind};
//! use opticoll::fabric::Fabric;
//! use opticoll::{bound, planner, verify};
//! let fabric = Fabric::parse("wdm_ring:ranks=64,wavelengths=8")?;
//! let collective = Collective::new(CollectiveKind::AllGather, 64)?;
//! let plan = planner::relay_tree(&fabric, collective)?;
//! let ring = fabric.needed_ring("this example")?;
//! assert_eq!(u64::from(plan.slots()), bound::best(ring, &collective).steps);
//! assert!(verify::verify(&plan).is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assembly;
mod auto;
mod beams;
mod candidates;
mod capability;
mod contest;
mod exchange;
mod forecast;
mod grouped;
mod knapsack;
mod least;
mod levels;
mod light;
mod mirror;
mod multicast;
mod named;
pub mod names;
mod pace;
mod pack;
pub mod placement;
mod ports;
mod prices;
mod reachable;
mod request;
mod rooted;
mod split;
mod striped;
mod tree;
pub mod tunable;
mod two_phases;
mod unfold;
mod urgent;

use thiserror::Error;

use crate::algorithm::AlgorithmError;
use crate::bound;
use crate::collective::{Collective, CollectiveError, CollectiveKind};
use crate::fabric::{CONVERTED, Direction, Fabric, Light, NotARing, WdmLight, WdmRing};
use crate::interrupt;
use crate::memory::TooMuch;
use crate::plan::{AnyPlan, FoldedPlan, Lightpath, Plan};
use crate::schedule::{Claims, Schedule, Transfer};
use crate::simulate::SimulationError;
use crate::spec::{Spec, SpecError};
use crate::units::UnitError;
use crate::wavelength::WavelengthError;
use crate::wavelength::light_path_grid::PortError;
use crate::wavelength::wss_grid::GridError;
pub use contest::Candidate;
pub use mirror::{all_reduce, reduce_scatter};
pub use request::{Planned, RECORDS, Record, find, plan, plan_watched};
use tree::{Edge, Reserve};

/// Why no plan was made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlannerError {
    /// The planner does not know this collective.
    #[error("relay trees carry out all_gather, not {kind}; {hint}")]
    Collective {
        /// The collective.
        kind: CollectiveKind,
        /// What would do.
        hint: &'static str,
    },
    /// The fabric and the collective differ in their number of ranks.
    #[error("the collective has {collective} ranks, the fabric {fabric}")]
    Ranks {
        /// Ranks of the collective.
        collective: u32,
        /// Ranks of the fabric.
        fabric: u32,
    },
    /// The plan would not fit into memory.
    #[error("a plan of {transfers} transfers is too large: {most} at most; fewer ranks or pieces")]
    TooLarge {
        /// The transfers that it would have.
        transfers: u64,
        /// The most allowed.
        most: u64,
    },
    /// Some rank cannot reach some other.
    #[error(
        "the ring falls apart: its broken links leave ranks that cannot reach others; what both \
         directions lack must be one cut in one place"
    )]
    CutOff,
    /// No trees were found.
    #[error("no relay trees found for blocks of {pieces} pieces; whole blocks (1 piece) will do")]
    NotFound {
        /// The pieces of a block.
        pieces: u32,
    },
    /// No plan is small enough.
    #[error("every plan has more than {most} transfers; allow more")]
    NothingFits {
        /// The most transfers allowed.
        most: u64,
    },
    /// The root of a collective is no longer part of it.
    #[error("the root, node {node}, has left; plan a collective with another root")]
    RootLeft {
        /// Its node.
        node: u32,
    },
    /// A plan could not be simulated.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// A time left 64 bits.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The fabric is no ring of light.
    #[error(transparent)]
    NotARing(#[from] NotARing),
    /// The collective could not be made.
    #[error(transparent)]
    CollectiveSize(#[from] CollectiveError),
    /// An option is unknown or does not fit.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A named algorithm failed.
    #[error(transparent)]
    Algorithm(#[from] AlgorithmError),
    /// Wavelengths could not be assigned.
    #[error(transparent)]
    Wavelength(#[from] WavelengthError),
    /// A schedule does not fit a grid of tunable circuits.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// The schedule does not fit the grid of light paths.
    #[error(transparent)]
    Ports(#[from] PortError),
    /// More memory than the limit.
    #[error(transparent)]
    Memory(#[from] TooMuch),
}

/// The most transfers or orbits of a plan: what fits into 16 GiB, with some 25 bytes for each.
const MOST_KEPT: u64 = 1 << 29;

/// An all_gather along rotated relay trees in as few slots as were found, one chunk per lightpath
/// and slot; for whole blocks never more slots than the best named algorithm, unless the plan is too
/// large to be written out. Blocks in pieces have a tree for each piece. Folded where all lengths
/// divide the number of ranks. Deterministic.
///
/// # Errors
/// Another collective than an all_gather, or one with another number of ranks than the fabric.
pub fn relay_tree(fabric: &Fabric, collective: Collective) -> Result<AnyPlan, PlannerError> {
    relay_tree_within(fabric, collective, MOST_KEPT)
}

/// The same with so many transfers or orbits at most.
fn relay_tree_within(
    fabric: &Fabric,
    collective: Collective,
    most: u64,
) -> Result<AnyPlan, PlannerError> {
    let ring = fabric.needed_ring("relay_tree")?;
    if collective.kind() != CollectiveKind::AllGather {
        return Err(PlannerError::Collective {
            kind: collective.kind(),
            hint: "reduce_scatter is an all_gather reversed",
        });
    }
    if collective.ranks() != ring.ranks {
        return Err(PlannerError::Ranks {
            collective: collective.ranks(),
            fabric: ring.ranks,
        });
    }
    capability::connected(ring)?;
    let pieces = collective.pieces();
    let orbits = u64::from(ring.ranks) * u64::from(pieces);
    let transfers = orbits * u64::from(ring.ranks);
    let too_large = |transfers| PlannerError::TooLarge { transfers, most };
    if orbits > most {
        return Err(too_large(orbits));
    }
    if ring.ranks < 2 {
        return named::plan(&Spec::new("ring"), fabric, collective);
    }
    if capability::is_special(ring) {
        if transfers > most {
            return Err(too_large(transfers));
        }
        return capability::all_gather(fabric, collective);
    }
    let least = bound::best(ring, &collective).steps as u32;
    // Hop by hop in both directions is always possible.
    let enough = pieces.saturating_mul(ring.ranks).saturating_add(1);
    let kept = Kept::of(transfers, most);
    let menus = menus(ring, kept);
    if kept == Kept::Orbits {
        return search(ring, pieces, &menus, least, enough)
            .map(|found| found.plan(ring, collective))
            .ok_or(too_large(transfers));
    }
    if pieces > 1 {
        return search(ring, pieces, &menus, least, enough)
            .map(|found| found.plan(ring, collective))
            .ok_or(PlannerError::NotFound { pieces });
    }
    let (name, at_least) = named::fewest_slots(ring).ok_or(PlannerError::NotFound { pieces })?;
    if let Some(found) = search(ring, 1, &menus, least, at_least) {
        return Ok(found.plan(ring, collective));
    }
    // The named algorithm may need more than its loads say.
    let named = named::plan(&Spec::new(name), fabric, collective)?;
    Ok(
        match search(ring, 1, &menus, at_least.max(least), named.slots()) {
            Some(found) => found.plan(ring, collective),
            None => named,
        },
    )
}

/// All_gathers over circuits that do not change within a level: for one level, two and three the
/// plan of fewest slots, where there is one. For a collective in pieces, with all pieces at once.
pub fn static_levels(fabric: &Fabric, collective: Collective) -> Vec<AnyPlan> {
    let Some(ring) = fabric.ring() else {
        return Vec::new();
    };
    if collective.kind() != CollectiveKind::AllGather
        || collective.ranks() != ring.ranks
        || ring.ranks < 2
        || ring.ports.is_some()
        || !ring.broken.is_empty()
    {
        return Vec::new();
    }
    let transfers = u64::from(collective.chunks()) * u64::from(ring.ranks);
    let kept = Kept::of(transfers, MOST_KEPT);
    levels::layouts(ring, collective.pieces(), levels::MOST_LEVELS, kept)
        .iter()
        .filter_map(|layout| levels::plan(fabric, collective, layout))
        .collect()
}

/// In what form a plan may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// Folded only.
    Orbits,
    /// Folded or not.
    Any,
}

impl Kept {
    /// The forms in which a plan of so many transfers can be kept.
    fn of(transfers: u64, most: u64) -> Kept {
        if transfers > most {
            Kept::Orbits
        } else {
            Kept::Any
        }
    }
}

/// A tree with the channels of its rotations, if they are not the regular ones.
struct Found {
    tree: Vec<Edge>,
    steps: u32,
    placed: Option<Vec<Vec<(bool, pack::Placed)>>>,
}

/// A tree that packs into as few steps as were found, from `least` on; `None` if none takes fewer
/// than `enough`. Numbers of steps are tried in widening strides until one works, and then halfway
/// between it and the last that did not.
fn search(ring: &WdmRing, pieces: u32, menus: &[Menu], least: u32, enough: u32) -> Option<Found> {
    let mut best: Option<Found> = None;
    let (mut failed, mut works) = (least.max(1) - 1, enough);
    let mut stride = 1;
    // Far from the bound, a step more or less is not worth many attempts.
    while failed + 1 + works / 100 < works {
        let steps = match best {
            None => (failed + stride).min(works - 1),
            Some(_) => failed + (works - failed) / 2,
        };
        match attempt(ring, pieces, menus, steps, works) {
            Some(found) => {
                works = found.steps;
                best = Some(found);
                if works <= steps {
                    continue;
                }
            }
            None if best.is_none() => stride = if steps < least + 3 { 1 } else { 2 * stride },
            None => {}
        }
        failed = steps;
    }
    best
}

/// The best of the trees of `steps` steps with channels for all rotations in fewer than `enough`
/// steps, if any.
fn attempt(ring: &WdmRing, pieces: u32, menus: &[Menu], steps: u32, enough: u32) -> Option<Found> {
    let mut best: Option<Found> = None;
    for (lengths, reserve) in menus {
        interrupt::check();
        let (ranks, channels) = (ring.ranks, ring.channels());
        let request =
            tree::Request::new((ranks, pieces), channels, steps, lengths.clone(), *reserve);
        let Some(tree) = tree::build(&request) else {
            continue;
        };
        // Where converters are, only the number of lightpaths on each link counts.
        if pack::divides(ranks, &tree) || (ring.converters && ring.fibres == 1) {
            return Some(Found {
                tree,
                steps,
                placed: None,
            });
        }
        for place in [pack::greedily, urgent::place] {
            let fewer = best.as_ref().map_or(enough, |found| found.steps) - 1;
            if let Some(placed) = place(ranks, channels, &tree, fewer) {
                let taken = placed.len() as u32;
                best = Some(Found {
                    tree: tree.clone(),
                    steps: taken,
                    placed: Some(placed),
                });
                if taken <= steps {
                    return best;
                }
            }
        }
    }
    best
}

/// Lengths to try, with what to keep back.
type Menu = (Vec<u32>, Reserve);

/// The menus to try; folded plans need lengths that divide N.
fn menus(ring: &WdmRing, kept: Kept) -> Vec<Menu> {
    let ranks = ring.ranks;
    let most = ring.channels().min(ranks / 2).min(ring.longest()).max(1);
    let dividing: Vec<u32> = (1..=most).filter(|length| ranks % *length == 0).collect();
    if kept == Kept::Orbits {
        return vec![(dividing, Reserve::Nothing)];
    }
    let powers: Vec<u32> = (0..31)
        .map(|bit| 1 << bit)
        .take_while(|length| *length <= most)
        .collect();
    let finer = |parts: &[u32]| {
        let mut lengths: Vec<u32> = powers
            .iter()
            .flat_map(|power| parts.iter().map(move |part| power * part / 8))
            .filter(|length| (1..=most).contains(length))
            .collect();
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    };
    let mut menus = vec![
        (dividing, Reserve::Nothing),
        (finer(&[8, 12]), Reserve::Nothing),
    ];
    if most > 2 {
        menus.push((finer(&[8, 12]), Reserve::Pad));
        menus.push((finer(&[8, 10, 12, 14]), Reserve::Pad));
        menus.push((powers.clone(), Reserve::Pad));
    }
    if (2..=4).contains(&most) {
        menus.push((powers.clone(), Reserve::Rest(3)));
        menus.push((powers, Reserve::Rest(8)));
    }
    let mut known = Vec::new();
    menus.retain(|menu| {
        let new = !known.contains(menu);
        known.push(menu.clone());
        new
    });
    menus
}

impl Found {
    fn plan(self, ring: &WdmRing, collective: Collective) -> AnyPlan {
        let fabric = Fabric::WdmRing(ring.clone());
        let mut plan = empty_plan(&fabric, collective, "relay_tree".into(), self.steps);
        // Dead wavelengths leave gaps among the channels of an orbit.
        let folded = self.placed.is_none() && ring.is_even();
        let ranks = if folded { 1 } else { ring.ranks };
        plan.reserve(self.tree.len() * ranks as usize);
        // A step that is written into the plan is not kept beside it.
        let mut placed = self.placed.map(Vec::into_iter);
        for step in 0..self.steps {
            plan.schedule.begin_step();
            let Some(placed) = &mut placed else {
                pack::exactly(&self.tree, step, |edge, first| {
                    for source in 0..ranks {
                        interrupt::check();
                        let origin = source + ring.ranks - edge.parent;
                        let channel = first + source % edge.length;
                        let mut path = lightpath(ring, collective, edge, origin, step, channel);
                        if ring.ranks % edge.length != 0 {
                            let light = WdmLight::from(path.light);
                            path.light = Light::from(WdmLight {
                                wavelength: CONVERTED,
                                ..light
                            });
                        }
                        plan.push(path);
                    }
                });
                continue;
            };
            for (_, path) in placed.next().unwrap_or_default() {
                let edge = &self.tree[path.edge as usize];
                let (origin, channel) = (path.origin, path.channel);
                plan.push(lightpath(ring, collective, edge, origin, step, channel));
            }
        }
        if folded {
            AnyPlan::Folded(FoldedPlan { orbits: plan })
        } else {
            AnyPlan::Full(plan)
        }
    }
}

/// A plan of so many steps of one slot each, without lightpaths yet.
fn empty_plan(fabric: &Fabric, collective: Collective, algorithm: String, steps: u32) -> Plan {
    let mut schedule = Schedule::new(collective);
    schedule.claims = Claims {
        schedule_steps: Some(steps),
        ..Claims::default()
    };
    Plan {
        fabric: fabric.clone(),
        schedule,
        algorithm,
        size: None,
        light: Vec::new(),
        slot: Vec::new(),
        step_slots: (0..steps).map(|slot| slot..slot + 1).collect(),
        relays: Vec::new(),
    }
}

/// An edge of the tree, turned by its origin.
fn lightpath(
    ring: &WdmRing,
    collective: Collective,
    edge: &Edge,
    origin: u32,
    slot: u32,
    channel: u32,
) -> Lightpath {
    let origin = origin % ring.ranks;
    let (fibre, wavelength) = ring.channel(channel);
    Lightpath {
        slot,
        light: Light::from(WdmLight {
            direction: if edge.clockwise {
                Direction::Clockwise
            } else {
                Direction::CounterClockwise
            },
            fibre,
            wavelength,
        }),
        transfer: Transfer::copy(
            origin * collective.pieces() + edge.piece,
            (origin + edge.parent) % ring.ranks,
            (origin + edge.child(ring.ranks)) % ring.ranks,
        ),
    }
}
