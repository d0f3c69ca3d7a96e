//! Proves a plan, or says everything that is wrong with it.
//!
//! The verifier replays a plan from its columns alone. It shares no code with what it checks: it
//! knows no algorithm, no router, no wavelength assignment and no simulator, and does its own
//! arithmetic on the ring.
//!
//! Light is checked slot by slot, data step by step. A transfer sends what its source held at the
//! *start* of its step, and what it brings counts from the *end* of that step. A step may be cut
//! into several slots, and how it is cut must not matter: two ranks that reduce into each other
//! send what they had before, be it in the same slot or one after the other. A plan holds when
//!
//! - every entry is in range and every transfer lies in the slots of its step (`form`),
//! - no lightpath crosses a broken link, is on a dead wavelength or is longer than light reaches
//!   (`light`),
//! - no two lightpaths share a wavelength of a fibre on a link in a slot, and no rank uses more
//!   ports than it has (`resources`),
//! - on a grid of tunable circuits the switches can be set for all lightpaths at once, every laser is
//!   on one wavelength at a time and every receiver gets one burst at a time (`wss_grid`),
//! - on a grid of lightpaths every port holds one path at a time (`light_path_grid`),
//! - nobody sends what it does not hold, nobody gets what it has, every contribution is combined
//!   exactly once, and at the end every rank has what the collective demands (`data`),
//! - what is claimed of the schedule is true (`claims`).
//!
//! On an electrical fabric there is no light: its columns must be empty and every step must have one
//! slot; data and claims are checked all the same, and so are the routes that a plan names (`routes`).
//!
//! What rotation makes of a folded plan is proved from what rank 0 sends (`folded`), a pipelined plan from how its first
//! chunks move (`pipelined`).
//!
//! A transfer that breaks a rule is still checked by every other rule that has a meaning for it:
//!
//! - A transfer with a rank, a chunk or a slot that does not exist, or that ends where it starts, is
//!   left out of all rules of light, data and claims.
//! - A transfer on a fibre or wavelength that does not exist, or with a conversion that the fabric
//!   lacks, occupies no link. It uses ports at both ends, its data arrive, and claims count it.
//! - Every other transfer is checked by all rules, also one on a dead wavelength, over a broken link,
//!   beyond reach, in a collision, or in the slot of another step.
//!
//! A transfer whose source does not hold its chunk is reported once and then counts as delivered, so
//! that one mistake is not repeated for all that follows from it.
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
mod data;
mod delivery;
mod folded;
mod form;
mod holdings;
mod light_path_grid;
mod order;
mod passive_star;
mod pipelined;
pub mod program;
mod relays;
mod report;
mod routes;
mod rules;
mod signals;
mod tallies;
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
    /// What rule a plan breaks.
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
        /// A transfer has no chunks or chunks that do not exist.
        ChunkRange = "chunk_range",
        /// A slot is not among those of the plan.
        SlotRange = "slot_range",
        /// The fabric has no such fibre.
        FibreRange = "fibre_range",
        /// The fabric has no such wavelength.
        WavelengthRange = "wavelength_range",
        /// Wavelength conversion on a fabric without converters.
        Conversion = "conversion",
        /// A reduction in a collective that combines nothing.
        WrongAction = "wrong_action",
        /// Steps do not follow one another, or a transfer is outside the slots of its step.
        StepOrder = "step_order",
        /// A lightpath over a link that is broken.
        BrokenFibre = "broken_fibre",
        /// A lightpath on a wavelength that is dead.
        DeadWavelength = "dead_wavelength",
        /// A lightpath longer than light reaches.
        Reach = "reach",
        /// Two lightpaths on one wavelength of one fibre, on one link in one slot; on a grid, two inputs of
        /// a switch whose light of one wavelength leaves by one output.
        Collision = "collision",
        /// More converted lightpaths on a fibre than it has wavelengths.
        Overload = "overload",
        /// A rank sends or receives more lightpaths at once than it has ports; on a grid of lightpaths, a port
        /// that a rank does not have, or that holds two paths at once.
        Ports = "ports",
        /// A hop between ports that its wavelength does not join.
        Path = "path",
        /// A hop through a transceiver or switch port that is dead.
        DeadPort = "dead_port",
        /// An input port and a wavelength that lead to two output ports of a switch.
        SwitchSetting = "switch_setting",
        /// A transmitter is on two wavelengths in one slot.
        Tuning = "tuning",
        /// A receiver gets bursts from two transmitters in one slot.
        Receiver = "receiver",
        /// Relays out of order, or where there are none.
        Relays = "relays",
        /// A named route that does not lead from the source of a transfer to its destination.
        Route = "route",
        /// A switch port that two tasks use.
        Allocation = "allocation",
        /// A rank sends a chunk that it does not hold.
        NotHeld = "not_held",
        /// A rank sends a chunk that it receives only in the same step.
        SameStepForward = "same_step_forward",
        /// A rank is sent what it already has.
        Duplicate = "duplicate",
        /// A contribution is combined into a chunk that already has it.
        DoubleReduction = "double_reduction",
        /// A copy replaces a chunk that has contributions which the copy lacks.
        LostContribution = "lost_contribution",
        /// A copy and something else arrive for the same chunk of a rank in one step.
        CopyConflict = "copy_conflict",
        /// A rank does not end with what the collective demands.
        Missing = "missing",
        /// A claim of the schedule is not true.
        Claim = "claim",
        /// A folded plan that no rotations make whole, or a pipelined one that is not made of copies of its first chunks.
        Symmetry = "symmetry",
        /// Circuits of a family that the verifier has no rules for, so that the plan is not proved.
        Unchecked = "unchecked",
        /// The plan is larger than the verifier can replay, and hence not proved.
        TooLarge = "too_large",
    }
}

/// A directed fibre between two neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RingLink {
    /// The rank at which it starts; where only some ranks take part, its node.
    pub rank: u32,
    /// The way around the ring.
    pub direction: Direction,
    /// The fibre of that direction.
    pub fibre: u8,
}

/// One rule broken in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub kind: ViolationKind,
    /// The transfers concerned, as indices into the plan.
    pub transfers: Vec<usize>,
    /// Where light collides, or ends at a cut.
    pub link: Option<RingLink>,
    /// The wavelength concerned.
    pub wavelength: Option<u16>,
    /// The slot in which it happens; `None` where it is a matter of the whole plan.
    pub slot: Option<u32>,
    /// The rank concerned.
    pub rank: Option<u32>,
    /// The chunk concerned.
    pub chunk: Option<u32>,
    /// What is wrong, in one sentence.
    pub sentence: String,
}

impl Violation {
    /// A violation that concerns nothing in particular yet.
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

/// Everything that is wrong with a plan; empty where it is proved. A folded plan is proved through
/// its symmetry: transfers are then orbits, and each violation stands for all its rotations. So is a pipelined plan: each
/// violation of its first chunks stands for all others, and has the numbers of the plan written out.
///
/// Of each kind the first 100 000 violations are listed, and one more counts the rest.
pub fn verify(plan: &Plan) -> Vec<Violation> {
    let repetition = plan.repetition;
    match (repetition.is_folded(), repetition.is_pipelined()) {
        (false, false) => full(plan),
        (true, false) => folded::verify(plan),
        (false, true) => pipelined::verify(plan),
        (true, true) => {
            let sentence =
                "a plan repeats by rotations, or by stripes and pieces, not by both; write it out";
            vec![Violation::new(ViolationKind::Symmetry, sentence.into())]
        }
    }
}

/// The rules of every family whose plans place circuits in slots.
const RULES: &[Rules] = &[
    wdm_ring::RULES,
    wss_grid::RULES,
    light_path_grid::RULES,
    passive_star::RULES,
    circuit_switch::RULES,
];

/// What the verifier keeps of a transfer without light: orders by slot and by chunk.
const BYTES_PER_TRANSFER: u64 = 24;

fn full(plan: &Plan) -> Vec<Violation> {
    let family = plan.fabric.family();
    let rules = RULES.iter().find(|rules| rules.family == family);
    let each = rules.map_or(BYTES_PER_TRANSFER, |rules| rules.bytes_per_transfer);
    memory::take("verifying this plan", plan.schedule.stored() as u64 * each);
    let mut report = Report::default();
    let wrong_light = match rules {
        Some(rules) => (rules.wrong_light)(&plan.fabric),
        None => report::each(|_| Vec::new()),
    };
    if let Some(admitted) = form::check(plan, &wrong_light, &mut report) {
        let order = AdmittedOrder::by_slot(plan, &admitted);
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

/// Where light leads from rank to rank nothing is relayed.
fn relays(plan: &Plan, report: &mut Report) {
    let Some(relay) = plan.relays.first() else {
        return;
    };
    if plan.fabric.light().is_some_and(|light| light.relays) {
        return;
    }
    report.add(ViolationKind::Relays, || {
        let sentence = format!(
            "the plan has {} relays, the first of transfer {}, but on its fabric {} nothing is relayed",
            plan.relays.len(),
            relay.transfer,
            plan.fabric.family()
        );
        Violation::new(ViolationKind::Relays, sentence)
    });
}
