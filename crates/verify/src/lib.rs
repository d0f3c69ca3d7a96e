//! Proof of a plan, or a list of all rules that the plan breaks.
//!
//! The verifier replays a plan from its columns alone. It shares no code with the code that it
//! checks: it knows no algorithm, router, wavelength assignment or simulator, and does its own
//! arithmetic on the ring.
//!
//! Light is checked slot by slot, and data are checked step by step. A transfer sends the data that
//! its source has at the *start* of the step. Its destination has these data from the *end* of the
//! step. A step may be divided into several slots, and this division must not matter. If two ranks
//! reduce into each other, each sends the data it had before the step, whether the transfers share
//! a slot or not. A plan is valid if
//!
//! - every entry is in range and every transfer lies in the slots of its step (`form`),
//! - no lightpath crosses a broken link, uses a dead wavelength or exceeds the reach (`light`),
//! - no two lightpaths use the same wavelength of the same fibre on a link in a slot, and no rank
//!   uses more ports than it has (`channels`),
//! - on a grid of tunable circuits, the switches can be configured for all lightpaths of a slot,
//!   every laser has one wavelength per slot, and every receiver receives one burst per slot
//!   (`wss_grid`),
//! - on a grid of lightpaths, every port is used by one lightpath at a time (`lightpath_grid`),
//! - on servers joined by light, packets stay within a server and light stays on its rail
//!   (`servers`),
//! - no rank sends data that it does not have or receives data that it already has, every
//!   contribution is combined exactly once, and every rank ends with the data that the collective
//!   demands (`data`),
//! - the claims of the schedule are true (`claims`).
//!
//! An electrical fabric has no light: the columns of light must be empty, and every step must have
//! one slot. Data, claims and named routes (`routes`) are checked in the same way as on optical
//! fabrics. Only its switches carry out multicasts and aggregations (`in_network`).
//!
//! A rotation-symmetric plan is proved by the transfers of rank 0 (`rotation_symmetric`), and a
//! pipelined plan by its first chunks (`pipelined`).
//!
//! A transfer that breaks a rule is still checked against all other rules that apply to it:
//!
//! - If a transfer has a rank, chunk or slot that does not exist, or equal source and destination,
//!   the rules of light, data and claims ignore it.
//! - If a transfer has a fibre or wavelength that does not exist, or a conversion without
//!   converters, it occupies no link. It still uses ports at both ends and delivers its data, and
//!   claims count it.
//! - Every other transfer is checked by all rules, even if it is on a dead wavelength, over a
//!   broken link, beyond the reach, in a collision, or in a slot of another step.
//!
//! If the source of a transfer does not have the chunk, this is reported once, and the chunk then
//! counts as delivered. One mistake is therefore not reported again for every transfer that depends
//! on it.
//!
//! ```
//! use opticoll_plan::collective::{Collective, CollectiveKind};
//! use opticoll_fabric::family::wdm_ring::{Direction, WdmLight};
//! use opticoll_fabric::fabric::{Fabric, Light};
//! use opticoll_plan::plan::{NamedRoutes, Plan, Repetition};
//! use opticoll_plan::schedule::{Action, Schedule, Transfer};
//! use opticoll_verify::{ViolationKind, verify};
//!
//! let mut schedule = Schedule::new(Collective::new(CollectiveKind::AllGather, 2)?);
//! schedule.push(Transfer { chunk: 0, count: 1, source: 0, destination: 1, action: Action::Copy });
//! schedule.push(Transfer { chunk: 1, count: 1, source: 1, destination: 0, action: Action::Copy });
//! let light = WdmLight { direction: Direction::Clockwise, fibre: 0, wavelength: 0 };
//! let mut plan = Plan {
//!     fabric: Fabric::parse("wdm_ring:ranks=2,wavelengths=1")?,
//!     schedule,
//!     algorithm: "by hand".into(),
//!     size: None,
//!     light: vec![Light::from(light); 2],
//!     slot: vec![0; 2],
//!     step_slots: vec![0..1],
//!     relays: Vec::new(),
//!     routes: NamedRoutes::default(),
//!     repetition: Repetition::NONE,
//! };
//! assert!(verify(&plan).is_empty());
//!
//! // Wavelength 0 is the only wavelength of the fabric.
//! plan.light[1] = Light::from(WdmLight { wavelength: 1, ..light });
//! assert_eq!(verify(&plan)[0].kind, ViolationKind::WavelengthRange);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod circuit_switch;
mod claims;
mod combining;
mod copying;
mod counting;
mod data;
mod delivery;
mod form;
mod groups;
mod in_network;
mod intervals;
mod lightpath_grid;
mod order;
mod passive_star;
mod pipelined;
pub mod program;
mod relays;
mod report;
mod rotation_symmetric;
mod routes;
mod rules;
mod servers;
mod signals;
mod wdm_graph;
mod wdm_ring;
mod wss_grid;

use std::fmt;

use form::Admitted;
pub use groups::verify_groups;
use opticoll_base::memory;
use opticoll_fabric::family::wdm_ring::Direction;
use opticoll_plan::plan::Plan;
use order::AdmittedOrder;
use report::Report;
use rules::Rules;
pub use wss_grid::tasks::tasks;

opticoll_base::named_enum! {
    /// Rule that a plan breaks.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ViolationKind {
        /// The columns of the plan have different lengths.
        Columns = "columns",
        /// Fabric and collective have different numbers of ranks.
        RankCount = "rank_count",
        /// A source or destination is not a rank of the collective.
        RankRange = "rank_range",
        /// The source of a transfer is also its destination.
        SelfTransfer = "self_transfer",
        /// A transfer carries no chunks, or chunks that do not exist.
        ChunkRange = "chunk_range",
        /// A slot does not exist in the plan.
        SlotRange = "slot_range",
        /// The fabric does not have the fibre.
        FibreRange = "fibre_range",
        /// The fabric does not have the wavelength.
        WavelengthRange = "wavelength_range",
        /// A lightpath converts wavelengths on a fabric without converters.
        Conversion = "conversion",
        /// A transfer reduces in a collective without reductions.
        WrongAction = "wrong_action",
        /// The steps are not in order, or a transfer is outside the slots of its step.
        StepOrder = "step_order",
        /// A lightpath crosses a broken link.
        BrokenFibre = "broken_fibre",
        /// A lightpath is on a dead wavelength.
        DeadWavelength = "dead_wavelength",
        /// A lightpath is longer than the reach of the fabric.
        Reach = "reach",
        /// Two lightpaths use the same wavelength of the same fibre on a link in a slot. On a grid
        /// of tunable circuits, light of one wavelength leaves two inputs of a switch by the same
        /// output.
        Collision = "collision",
        /// A fibre carries more converted lightpaths than it has wavelengths.
        Overload = "overload",
        /// A rank sends or receives more lightpaths at the same time than it has ports. On a grid
        /// of lightpaths, a port does not exist or has two lightpaths at the same time.
        Ports = "ports",
        /// The wavelength of a hop does not connect the two ports of the hop.
        Path = "path",
        /// A hop uses a dead transceiver or switch port.
        DeadPort = "dead_port",
        /// A switch would have to lead one wavelength of an input port to two output ports.
        SwitchConfiguration = "switch_setting",
        /// A transmitter uses two wavelengths in one slot.
        Tuning = "tuning",
        /// A receiver receives bursts from two transmitters in one slot.
        Receiver = "receiver",
        /// The relays of a plan are not in order, or the fabric has no relays.
        Relays = "relays",
        /// A named route does not lead from the source to the destination of its transfer.
        Route = "route",
        /// A multicast needs copies of a vertex that makes none, or its routes form no tree.
        Multicast = "multicast",
        /// An aggregation needs sums of a vertex that adds none, or its routes form no tree.
        Aggregation = "aggregation",
        /// Two tasks use the same switch port.
        Allocation = "allocation",
        /// A rank sends a chunk that it does not have.
        NotHeld = "not_held",
        /// A rank sends a chunk that it receives only in the same step.
        SameStepForward = "same_step_forward",
        /// A rank receives data that it already has.
        Duplicate = "duplicate",
        /// A reduction adds a contribution to a chunk that already contains this contribution.
        DoubleReduction = "double_reduction",
        /// A copy replaces a chunk by a chunk that lacks some of its contributions.
        LostContribution = "lost_contribution",
        /// A copy and another transfer deliver the same chunk to a rank in one step.
        CopyConflict = "copy_conflict",
        /// A rank does not end with the data that the collective demands.
        Missing = "missing",
        /// A claim of the schedule is false.
        Claim = "claim",
        /// A rotation-symmetric plan is not symmetric, or a pipelined plan does not consist of
        /// copies of its first chunks.
        Symmetry = "symmetry",
        /// The verifier has no rules for circuits of this fabric family; the plan is not proved.
        Unchecked = "unchecked",
        /// The plan is too large for the verifier to replay, so that the plan is not proved.
        TooLarge = "too_large",
    }
}

/// Directed fibre between two neighbours on a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RingLink {
    /// Rank at which the fibre starts; if some nodes have no rank, index of this node.
    pub rank: u32,
    /// Direction around the ring.
    pub direction: Direction,
    /// Index of the fibre among the fibres of this direction.
    pub fibre: u8,
}

/// Single place in which a plan breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Rule that is broken.
    pub kind: ViolationKind,
    /// Indices of the transfers that break the rule.
    pub transfers: Vec<usize>,
    /// Link with a collision or with too many lightpaths, or broken link that a lightpath crosses.
    pub link: Option<RingLink>,
    /// Wavelength that breaks the rule.
    pub wavelength: Option<u16>,
    /// Slot in which the rule is broken; `None` if the whole plan breaks the rule.
    pub slot: Option<u32>,
    /// Rank that breaks the rule.
    pub rank: Option<u32>,
    /// Chunk that breaks the rule.
    pub chunk: Option<u32>,
    /// Sentence that says what is wrong.
    pub sentence: String,
}

impl Violation {
    /// Returns a violation with a kind and a sentence only.
    fn new(kind: ViolationKind, sentence: String) -> Violation {
        Violation {
            kind,
            transfers: Vec::new(),
            link: None,
            wavelength: None,
            slot: None,
            rank: None,
            chunk: None,
            sentence,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.kind, self.sentence)
    }
}

/// Returns all rules that a plan breaks. An empty list proves the plan.
///
/// For a rotation-symmetric plan, each violation stands for all rotations of its transfers. For a
/// pipelined plan, each violation of the first chunks stands for all copies; its transfers, slots
/// and chunks are numbered as in the expanded plan.
///
/// The list has at most 100 000 violations of each kind, and one more violation that states the
/// number of omitted ones.
pub fn verify(plan: &Plan) -> Vec<Violation> {
    let repetition = plan.repetition;
    match (
        repetition.is_rotation_symmetric(),
        repetition.is_pipelined(),
    ) {
        (false, false) => full(plan),
        (true, false) => rotation_symmetric::verify(plan),
        (false, true) => pipelined::verify(plan),
        (true, true) => {
            let sentence = "a plan repeats by rotations, or by stripes and pieces, not by both; \
                            expand the plan";
            vec![Violation::new(ViolationKind::Symmetry, sentence.into())]
        }
    }
}

/// Rules of all fabric families with circuits in slots.
const RULES: &[Rules] = &[
    wdm_ring::RULES,
    wdm_graph::rules("wdm_graph"),
    wdm_graph::rules("wdm_line"),
    wdm_graph::rules("wdm_tree"),
    wdm_graph::rules("wdm_hypercube"),
    wdm_graph::rules("wdm_ladder"),
    wdm_graph::rules("wdm_torus"),
    wdm_graph::rules("wdm_mesh"),
    wdm_graph::rules("wdm_ladder"),
    wss_grid::RULES,
    lightpath_grid::RULES,
    passive_star::RULES,
    circuit_switch::RULES,
    servers::RULES,
];

/// Memory of the verifier, in bytes, for each transfer without light.
const BYTES_PER_TRANSFER: u64 = 24;

/// Verifies a plan without repetition.
fn full(plan: &Plan) -> Vec<Violation> {
    let mut report = Report::default();
    if let Some(admitted) = light(plan, &mut report) {
        let chunks = 0..plan.schedule.collective.chunks();
        data::check(plan, &admitted, chunks, &mut report);
        claims::check(plan, &admitted, 1, &mut report);
    }
    report.finish()
}

/// Checks the form, light, routes and relays of a plan without repetition. Returns the transfers
/// whose data can be checked; `None` if the columns of the plan cannot be read.
fn light(plan: &Plan, report: &mut Report) -> Option<Admitted> {
    let family = plan.fabric.family();
    let mut rules = RULES.iter().filter(|_| plan.fabric.has_light());
    let rules = rules.find(|rules| rules.family == family);
    let each = rules.map_or(BYTES_PER_TRANSFER, |rules| rules.bytes_per_transfer);
    memory::check_forecast("verifying this plan", plan.schedule.stored() as u64 * each);
    let wrong_light = match rules {
        Some(rules) => (rules.wrong_light)(&plan.fabric),
        None => report::each(|_| Vec::new()),
    };
    let mut admitted = form::check(plan, &wrong_light, report)?;
    routes::check(plan, &mut admitted, report);
    in_network::check(plan, &admitted, report);
    let order = AdmittedOrder::new(plan, &admitted);
    match rules {
        Some(rules) => (rules.check)(plan, &admitted, &order, report),
        None if plan.fabric.has_light() => report.unchecked(family),
        None => {}
    }
    relays(plan, report);
    Some(admitted)
}

/// Reports relays on a fabric in which light always leads from rank to rank.
fn relays(plan: &Plan, report: &mut Report) {
    let Some(relay) = plan.relays.first() else {
        return;
    };
    if plan.fabric.light().is_some_and(|light| light.relays) {
        return;
    }
    report.add(ViolationKind::Relays, || {
        let sentence = format!(
            "the plan has {} relays, the first of transfer {}, but its fabric {} has no relays",
            plan.relays.len(),
            relay.transfer,
            plan.fabric.family()
        );
        Violation::new(ViolationKind::Relays, sentence)
    });
}
