//! Fabrics and the trait of machines, with the capabilities that other crates ask for.
//!
//! A **family** is a kind of machine, such as `wdm_ring`. The type of a family implements
//! [`Machine`]. A **fabric** is a shared handle on one machine. A machine offers *capabilities*:
//! links that flows share ([`Network`]), circuits placed in slots ([`Circuits`]), groups of routers
//! ([`Groups`]), rows and columns ([`Planes`]). Code outside a family asks for a capability, never
//! for the family. A fabric knows no collectives, schedules or simulators.
//! [`families`](crate::families) lists the families and parses specifications.
//!
//! ```
//! use opticoll_fabric::fabric::Fabric;
//! let fabric = Fabric::parse("wdm_ring:ranks=1024,wavelengths=64")?;
//! assert_eq!(fabric.ranks(), 1024);
//! assert!(fabric.circuits().is_some() && fabric.network().is_none());
//! let preset = Fabric::parse("terarack:ranks=256")?;
//! assert!(preset.to_string().contains("fibres=2"));
//! # Ok::<(), opticoll_fabric::fabric::FabricError>(())
//! ```

pub mod circuits;
pub mod groups;
pub mod light;
pub mod options;
pub(crate) mod part;
pub mod planes;
pub mod switches;
pub mod transmission;
pub mod wiring;

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use thiserror::Error;

use crate::drawing::Drawing;
use crate::network;
use crate::network::Network;
pub use circuits::Circuits;
pub use groups::Groups;
pub use light::{Hop, Light, LightKind, NumberedChannels, Rotation};
use opticoll_base::names::{plural, terminal_text};
use opticoll_base::spec::{Role, Spec, SpecError};
use opticoll_base::units::{Bytes, Time};
pub use options::FabricOption;
pub use planes::{Plane, Planes};
pub use switches::Switches;
pub use transmission::Transmission;

/// Reason why a fabric was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FabricError {
    /// A name that neither a family nor a preset has.
    #[error("unknown fabric `{}`{hint}", terminal_text(name))]
    Unknown {
        /// The name as given.
        name: String,
        /// Similar known name, or all known names.
        hint: String,
    },
    /// A malformed specification, or an option that is unknown or has a wrong value.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A missing option that the family needs.
    #[error("`{family}` needs {key}=..., for example {example}")]
    Missing {
        /// Name of the family.
        family: &'static str,
        /// Name of the missing option.
        key: &'static str,
        /// A complete specification.
        example: &'static str,
    },
    /// More ranks or links than opticoll accepts.
    #[error("`{family}` would have {count} {what}; at most {most} are accepted")]
    TooLarge {
        /// Name of the family.
        family: &'static str,
        /// `ranks` or `links`.
        what: &'static str,
        /// Requested number of ranks or links.
        count: u128,
        /// Maximum number of ranks or links.
        most: u64,
    },
    /// A specification for which plans are not made.
    #[error("no plan is made for {family}: {reason}")]
    NoFabric {
        /// Name of the family.
        family: &'static str,
        /// Explanation, with the commands that accept the specification.
        reason: &'static str,
    },
    /// A custom fabric with wrong links.
    #[error("`custom`: {problem}")]
    Graph {
        /// Description of the mistake, with the link or the vertices.
        problem: String,
        /// Index of the wrong link, in the order given.
        link: Option<usize>,
    },
}

/// A fabric of one family where code needs another family.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} needs a {needed}; got {family}, {nature}")]
pub struct WrongFamily {
    /// Name of the code that needs the fabric.
    pub what: &'static str,
    /// Family that the code needs.
    pub needed: &'static str,
    /// Family of the given fabric.
    pub family: &'static str,
    /// Description of the given fabric ([`Machine::nature`]).
    pub nature: &'static str,
}

/// Declaration of a fabric family.
pub struct FamilyRecord {
    /// Name, as typed.
    pub name: &'static str,
    /// Description in one sentence.
    pub summary: &'static str,
    /// Source of the model.
    pub citation: &'static str,
    /// A complete specification.
    pub example: &'static str,
    /// Lists the options of the family.
    pub options: fn() -> Vec<FabricOption>,
    /// Builds a fabric from the options of a specification.
    pub build: fn(&Spec) -> Result<Fabric, FabricError>,
    /// Named machines of the family.
    pub presets: &'static [PresetRecord],
}

/// Named machine: a family with values from a stated source.
pub struct PresetRecord {
    /// Name, as typed.
    pub name: &'static str,
    /// Description in one sentence.
    pub summary: &'static str,
    /// Source of the values.
    pub citation: &'static str,
    /// Specification that the name stands for.
    pub spec: &'static str,
    /// Values that no source states or on which sources disagree; empty if there are none.
    pub unconfirmed: &'static str,
}

/// Base trait of machines: equality and downcasting through a shared handle. Every `Any + Debug +
/// PartialEq + Send + Sync` type implements this trait.
pub trait Object: Any + fmt::Debug + Send + Sync {
    /// Returns the machine as `Any`, for downcasting.
    fn as_any(&self) -> &dyn Any;

    /// Returns whether another machine has the same type and is equal.
    fn equals(&self, other: &dyn Any) -> bool;
}

impl<T: Any + fmt::Debug + PartialEq + Send + Sync> Object for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }
}

/// Machine of a family.
pub trait Machine: Object {
    /// Returns the declaration of the family.
    fn record(&self) -> &'static FamilyRecord;

    /// Returns the complete specification, which [`Fabric::parse`] parses to an equal fabric.
    fn spec(&self) -> Spec;

    /// Returns a description of the machine for the error [`WrongFamily`].
    fn nature(&self) -> &'static str {
        "an electrical fabric without wavelengths"
    }

    /// Returns the number of ranks, N.
    fn ranks(&self) -> u32 {
        self.network().map_or(0, Network::ranks)
    }

    /// Returns the node of a rank: the number of the rank before other ranks left. The ranks of a
    /// part are numbered anew, but nodes keep their numbers.
    fn node(&self, rank: u32) -> u32 {
        rank
    }

    /// Returns the fabric that remains after failures, for families with their own syntax of
    /// failures. Returns `None` if the family states failures by options, which
    /// [`families::after_failures`](crate::families::after_failures) sets.
    fn after_failures(&self, _failures: &str) -> Option<Result<Fabric, SpecError>> {
        None
    }

    /// Returns the fabric after the failure of a named part, such as `cube 3`, that a spare part
    /// may replace. Returns an error message if no spare part is left, and `None` if no part has
    /// this name.
    fn with_replacement(&self, _part: &str) -> Option<Result<Fabric, String>> {
        None
    }

    /// Returns the part of the fabric that the ranks in `members` use when they run a job of their
    /// own. The ranks of the part are numbered anew, in their order. With links, the part has these
    /// ranks and all links; with circuits, the part is a fabric of `members.len()` ranks.
    ///
    /// # Errors
    /// The fabric cannot be divided in this way.
    fn part(&self, members: &[u32]) -> Result<Fabric, FabricError> {
        let nodes = members.iter().map(|&rank| self.node(rank));
        part::part_of_machine(self.record(), &self.spec(), self.network().is_some(), nodes)
    }

    /// Returns the span of the circuits of a part: its first rank and its number of consecutive
    /// ranks. Parts whose spans do not overlap share no resources.
    fn part_span(&self, _members: &[u32]) -> (u32, u32) {
        (0, self.ranks())
    }

    /// Returns the number of a link in the fabric of which this fabric is a part.
    fn link_of_whole(&self, link: u32) -> u32 {
        link
    }

    /// Returns the number of a link here, given its number in the fabric of which this fabric is a
    /// part. Returns `None` if the link is broken.
    fn link_in_part(&self, whole: u32) -> Option<u32> {
        Some(whole)
    }

    /// Returns fabrics to plan for instead of this fabric if parts are slower or links are broken
    /// in one direction: the fabric with all parts at their full rate, the fabric without the
    /// slower parts, and the fabric that also lacks the opposite directions of the broken links.
    /// The planner makes plans for these fabrics and times the plans on this fabric.
    fn planning_alternatives(&self) -> Vec<Fabric> {
        Vec::new()
    }

    /// Returns a description of the machine for readers: `16 ranks, 1 fibre per direction, ...`.
    fn description(&self) -> String {
        let links = self.network().map_or(0, |network| network.links().len());
        let ranks = plural(self.ranks() as usize, "rank");
        format!("{ranks}, {}", plural(links, "link"))
    }

    /// Returns the rate in bits per second at which a rank can send on all of its links or
    /// transmitters at once; the minimum over all ranks. Results on fabrics with different
    /// injection bandwidths compare machines of different capacity.
    ///
    /// ```
    /// use opticoll_fabric::fabric::Fabric;
    /// let ring = Fabric::parse("wdm_ring:ranks=16,wavelengths=2,rate=40Gb/s")?;
    /// assert_eq!(ring.injection_bandwidth(), 160_000_000_000);
    /// # Ok::<(), opticoll_fabric::fabric::FabricError>(())
    /// ```
    fn injection_bandwidth(&self) -> u128 {
        self.network().map_or(0, network::injection_bandwidth)
    }

    /// Returns the time that a message of 0 bytes takes from rank 0 to the farthest rank on an
    /// otherwise idle fabric: over links, or over one circuit that is already up.
    ///
    /// ```
    /// use opticoll_fabric::fabric::Fabric;
    /// let star = Fabric::parse("crossbar:ranks=16,latency=500ns")?;
    /// assert_eq!(star.latency(), "1us".parse().unwrap());
    /// # Ok::<(), opticoll_fabric::fabric::FabricError>(())
    /// ```
    fn latency(&self) -> Time {
        let circuit_latency = |circuits: &dyn Circuits| {
            let empty_message = circuits.transmission().time(Bytes::new(0))?;
            circuits
                .startup()
                .plus(empty_message)?
                .plus(circuits.delay()?)
        };
        match (self.network(), self.circuits()) {
            (Some(network), _) => network::latency(network),
            (None, Some(circuits)) => circuit_latency(circuits).unwrap_or(Time::from_ps(u64::MAX)),
            (None, None) => Time::ZERO,
        }
    }

    /// Returns the links that flows share, or `None` if data moves over circuits.
    fn network(&self) -> Option<&dyn Network> {
        None
    }

    /// Returns the circuits that plans place in slots, or `None` if data moves over shared links.
    fn circuits(&self) -> Option<&dyn Circuits> {
        None
    }

    /// Returns the groups of routers, or `None` if the fabric has no groups.
    fn groups(&self) -> Option<&dyn Groups> {
        None
    }

    /// Returns the rows and columns of ranks, or `None` if the fabric has none.
    fn planes(&self) -> Option<&dyn Planes> {
        None
    }

    /// Returns the circuit switches between the parts of the machine, which are set before any plan
    /// runs, or `None` if there are none.
    fn switches(&self) -> Option<&dyn Switches> {
        None
    }

    /// Returns the positions of the vertices in a picture, by default those of
    /// [`Network::drawing`].
    fn drawing(&self) -> Option<Drawing> {
        self.network().map(|network| network.drawing())
    }

    /// Returns the format of the light of plans, or `None` if data moves over links.
    fn light(&self) -> Option<&'static LightKind> {
        self.circuits().map(|circuits| circuits.light())
    }

    /// Returns whether data moves over circuits of light.
    fn has_light(&self) -> bool {
        self.circuits().is_some()
    }

    /// Returns the numbering of channels, if the fabric numbers them. The stripes of a pipelined
    /// plan use consecutive channels.
    fn numbered_channels(&self) -> Option<&dyn NumberedChannels> {
        self.circuits()?.numbered_channels()
    }

    /// Returns the effect of a rotation of the ranks on light, if the fabric looks the same from
    /// every rank. Rotation-symmetric plans exist only on such fabrics.
    fn rotation(&self) -> Option<&dyn Rotation> {
        self.circuits()?.rotation()
    }
}

/// Machine type whose family has exactly one type, so that code for this family can ask for the
/// machine by type.
pub trait Named: Machine {
    /// Name of the family.
    const NAME: &'static str;
}

/// Shared handle on a machine.
#[derive(Clone)]
pub struct Fabric(Arc<dyn Machine>);

impl Fabric {
    /// Wraps a machine in a handle.
    pub fn new(machine: impl Machine) -> Fabric {
        Fabric(Arc::new(machine))
    }

    /// Returns the machine if the machine has type `M`. Only code for one family calls this
    /// function.
    pub fn downcast<M: Machine>(&self) -> Option<&M> {
        // `as_any` of the machine; the handle has an `as_any` too.
        (*self.0).as_any().downcast_ref()
    }

    /// Returns the machine as type `M`. `what` names the code that needs the family, for the error
    /// message.
    ///
    /// # Errors
    /// The machine belongs to another family.
    pub fn needed<M: Named>(&self, what: &'static str) -> Result<&M, WrongFamily> {
        self.downcast().ok_or(WrongFamily {
            what,
            needed: M::NAME,
            family: self.family(),
            nature: self.nature(),
        })
    }

    /// Returns the name of the family.
    pub fn family(&self) -> &'static str {
        self.record().name
    }

    /// Returns the part of the fabric that some ranks use for a job of their own
    /// ([`Machine::part`]); the fabric itself if `members` has all ranks.
    ///
    /// # Errors
    /// The fabric cannot be divided in this way.
    pub fn part(&self, members: &[u32]) -> Result<Fabric, FabricError> {
        match members.len() as u32 == self.ranks() {
            true => Ok(self.clone()),
            false => self.0.part(members),
        }
    }

    /// Returns the fabric with all times of a role, such as reconfiguration, set to zero.
    pub fn without(&self, role: Role) -> Fabric {
        let mut spec = self.spec();
        let record = self.record();
        let options = (record.options)();
        let records = options.iter().map(|option| &option.record);
        let mut fabric = self.clone();
        for option in records.filter(|option| option.role == role) {
            // Options of the role that are not times, such as whether the first setting is charged,
            // keep their values.
            let tried = spec.without(option.name).with(option.name, Time::ZERO);
            if let Ok(without) = (record.build)(&tried) {
                (spec, fabric) = (tried, without);
            }
        }
        fabric
    }
}

impl Deref for Fabric {
    type Target = dyn Machine;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl PartialEq for Fabric {
    fn eq(&self, other: &Fabric) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.equals((*other.0).as_any())
    }
}

impl Eq for Fabric {}

impl fmt::Debug for Fabric {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Display for Fabric {
    /// Writes the complete specification, which [`Fabric::parse`] parses to an equal fabric.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec().fmt(formatter)
    }
}
