//! Proof of a plan, or a list of everything that is wrong with it.
//!
//! The verifier replays a plan from its columns alone. It shares no code with the code that it
//! checks: it knows no algorithm, no router, no wavelength assignment and no simulator, and does
//! its own arithmetic on the ring.
//!
//! Light is checked slot by slot, data step by step. A transfer sends what its source held at the
//! *start* of its step, and what the transfer brings counts from the *end* of that step. A step may
//! be cut into several slots, and the cuts must not matter: two ranks that reduce into each other
//! send what they had before, whether in the same slot or one after the other. A plan is valid if
//!
//! - every entry is in range and every transfer lies in the slots of its step (`form`),
//! - no lightpath crosses a broken link, is on a dead wavelength or is longer than light reaches
//!   (`light`),
//! - no two lightpaths share a wavelength of a fibre on a link in a slot, and no rank uses more
//!   ports than it has (`channels`),
//! - on a grid of tunable circuits the switches can be set for all lightpaths at the same time,
//!   every laser is on one wavelength at a time and every receiver gets one burst at a time
//!   (`wss_grid`),
//! - on a grid of lightpaths every port holds one path at a time (`lightpath_grid`),
//! - no rank sends what it does not hold, no rank receives what it has, every contribution is
//!   combined exactly once, and at the end every rank has what the collective demands (`data`),
//! - the claims of the schedule are true (`claims`).
//!
//! An electrical fabric has no light: its columns must be empty and every step must have one slot.
//! Data and claims are checked in the same way, and so are the routes that a plan names (`routes`).
//!
//! A rotation-symmetric plan is proved by the transfers of rank 0 (`rotation_symmetric`), a
//! pipelined plan by its first chunks (`pipelined`).
//!
//! A transfer that breaks a rule is still checked by every other rule that applies to it:
//!
//! - A transfer with a rank, a chunk or a slot that does not exist, or that ends where it starts,
//!   is left out of all rules of light, data and claims.
//! - A transfer on a fibre or wavelength that does not exist, or with a conversion that the fabric
//!   lacks, occupies no link. It uses ports at both ends, its data arrive, and claims count it.
//! - Every other transfer is checked by all rules, even if it is on a dead wavelength, over a
//!   broken link, beyond reach, in a collision, or in the slot of another step.
//!
//! A transfer whose source does not hold its chunk is reported once and then counts as delivered,
//! so that one mistake is not repeated for everything that follows from it.
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
//! // The fabric has wavelength 0 only.
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
mod signals;
mod wdm_ring;
mod wss_grid;

use std::fmt;

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
        /// A source or destination is no rank.
        RankRange = "rank_range",
        /// A transfer ends where it starts.
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
        /// A transfer reduces in a collective that combines nothing.
        WrongAction = "wrong_action",
        /// Steps do not follow one another, or a transfer is outside the slots of its step.
        StepOrder = "step_order",
        /// A lightpath crosses a broken link.
        BrokenFibre = "broken_fibre",
        /// A lightpath is on a dead wavelength.
        DeadWavelength = "dead_wavelength",
        /// A lightpath is longer than light reaches.
        Reach = "reach",
        /// Two lightpaths use one wavelength of one fibre, on one link in one slot; on a grid,
        /// light of one wavelength from two inputs of a switch leaves by one output.
        Collision = "collision",
        /// A fibre has more converted lightpaths than wavelengths.
        Overload = "overload",
        /// A rank sends or receives more lightpaths at the same time than it has ports; on a grid
        /// of lightpaths, a rank does not have a port, or a port holds two paths at the same time.
        Ports = "ports",
        /// A hop leads between ports that its wavelength does not join.
        Path = "path",
        /// A hop uses a dead transceiver or switch port.
        DeadPort = "dead_port",
        /// An input port and a wavelength lead to two output ports of a switch.
        SwitchConfiguration = "switch_setting",
        /// A transmitter is on two wavelengths in one slot.
        Tuning = "tuning",
        /// A receiver gets bursts from two transmitters in one slot.
        Receiver = "receiver",
        /// Relays are out of order, or on a fabric without relays.
        Relays = "relays",
        /// A named route does not lead from the source of a transfer to its destination.
        Route = "route",
        /// Two tasks use one switch port.
        Allocation = "allocation",
        /// A rank sends a chunk that it does not hold.
        NotHeld = "not_held",
        /// A rank sends a chunk that it receives only in the same step.
        SameStepForward = "same_step_forward",
        /// A rank is sent data that it already has.
        Duplicate = "duplicate",
        /// A contribution is combined into a chunk that already has it.
        DoubleReduction = "double_reduction",
        /// A copy replaces a chunk by one that lacks some of its contributions.
        LostContribution = "lost_contribution",
        /// A copy and another transfer deliver the same chunk to a rank in one step.
        CopyConflict = "copy_conflict",
        /// A rank does not end with the data that the collective demands.
        Missing = "missing",
        /// A claim of the schedule is not true.
        Claim = "claim",
        /// A rotation-symmetric plan is not symmetric, or a pipelined plan does not consist of
        /// copies of its first chunks.
        Symmetry = "symmetry",
        /// The verifier has no rules for the circuits of the family, so that the plan is not
        /// proved.
        Unchecked = "unchecked",
        /// The plan is larger than the verifier can replay, so that it is not proved.
        TooLarge = "too_large",
    }
}

/// Directed fibre between two neighbours on a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RingLink {
    /// Rank at which the fibre starts; the node if only some nodes have a rank.
    pub rank: u32,
    /// Direction around the ring.
    pub direction: Direction,
    /// Number of the fibre in its direction.
    pub fibre: u8,
}

/// Rule that is broken in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Broken rule.
    pub kind: ViolationKind,
    /// Transfers that break the rule, as indices into the plan.
    pub transfers: Vec<usize>,
    /// Link on which light collides, or at which light ends.
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
    /// Returns a violation without transfers, link, slot, rank or chunk.
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

/// Returns everything that is wrong with a plan; an empty list proves the plan.
///
/// A rotation-symmetric plan is proved by its symmetry: each transfer stands for its rotations, and
/// each violation for all rotations. In a pipelined plan each violation of the first chunks stands
/// for all copies, and has the numbers of the expanded plan.
///
/// The list holds at most 100 000 violations of each kind, and one more that counts the rest.
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

/// Rules of every family whose plans place circuits in slots.
const RULES: &[Rules] = &[
    wdm_ring::RULES,
    wss_grid::RULES,
    lightpath_grid::RULES,
    passive_star::RULES,
    circuit_switch::RULES,
];

/// Memory of the verifier in bytes for a transfer without light: orders by slot and by chunk.
const BYTES_PER_TRANSFER: u64 = 24;

/// Verifies a plan without repetition.
fn full(plan: &Plan) -> Vec<Violation> {
    let family = plan.fabric.family();
    let rules = RULES.iter().find(|rules| rules.family == family);
    let each = rules.map_or(BYTES_PER_TRANSFER, |rules| rules.bytes_per_transfer);
    memory::check_forecast("verifying this plan", plan.schedule.stored() as u64 * each);
    let mut report = Report::default();
    let wrong_light = match rules {
        Some(rules) => (rules.wrong_light)(&plan.fabric),
        None => report::each(|_| Vec::new()),
    };
    if let Some(admitted) = form::check(plan, &wrong_light, &mut report) {
        let order = AdmittedOrder::new(plan, &admitted);
        match rules {
            Some(rules) => (rules.check)(plan, &admitted, &order, &mut report),
            None if plan.fabric.has_light() => report.unchecked(family),
            None => {}
        }
        relays(plan, &mut report);
        routes::check(plan, &admitted, &mut report);
        let chunks = 0..plan.schedule.collective.chunks();
        data::check(plan, &admitted, chunks, &mut report);
        claims::check(plan, &admitted, 1, &mut report);
    }
    report.finish()
}

/// Reports relays on a fabric whose light leads from rank to rank.
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
