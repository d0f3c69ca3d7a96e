//! Fabrics, the trait of machines, and the capabilities that other crates query.
//!
//! A **family** is a kind of machine, such as `wdm_ring`. The type of a family implements
//! [`Machine`]. A **fabric** is a shared handle on one machine. A machine offers *capabilities*:
//! links that flows share ([`Network`]), circuits that plans place in slots ([`Circuits`]), groups
//! of routers ([`Groups`]), rows and columns ([`Planes`]). Code outside a family asks for a
//! capability, never for the family. A fabric knows no collectives, schedules or simulators.
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

pub mod channels;
pub mod circuits;
pub mod groups;
pub mod light;
pub mod loss;
pub mod noise;
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

use crate::bill::{Bill, MovedBytes, WholeNetwork};
use crate::drawing::Drawing;
use crate::network;
use crate::network::{InNetwork, Network};
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

/// Reason why the specification of a fabric was rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FabricError {
    /// Name that is neither a family nor a preset.
    #[error("unknown fabric `{}`{hint}", terminal_text(name))]
    Unknown {
        /// The unknown name, as the user typed it.
        name: String,
        /// Suggestion: a similar valid name, or all valid names.
        hint: String,
    },
    /// Malformed specification, unknown option, or invalid value of an option.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Missing option that the family requires.
    #[error("`{family}` needs {key}=..., for example {example}")]
    Missing {
        /// Name of the family.
        family: &'static str,
        /// Name of the missing option.
        key: &'static str,
        /// Example of a complete specification.
        example: &'static str,
    },
    /// Number of ranks or links that exceeds the limit of opticoll.
    #[error("`{family}` would have {count} {what}; at most {most} are accepted")]
    TooLarge {
        /// Name of the family.
        family: &'static str,
        /// Counted items: `ranks` or `links`.
        what: &'static str,
        /// Requested number of ranks or links.
        count: u128,
        /// Maximum number of ranks or links.
        most: u64,
    },
    /// Specification of a model for which opticoll makes no plans.
    #[error("no plan is made for {family}: {reason}")]
    NoFabric {
        /// Name of the family.
        family: &'static str,
        /// Explanation, which names the commands that accept the specification.
        reason: &'static str,
    },
    /// Custom fabric with invalid links.
    #[error("`custom`: {problem}")]
    Graph {
        /// Description of the mistake, which names the link or the vertices.
        problem: String,
        /// Index of the invalid link in the user's list of links, if a single link is invalid.
        link: Option<usize>,
    },
}

/// Error of an algorithm or command that accepts only one family, for a fabric of another family.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} needs a {needed}; got {family}, {nature}")]
pub struct WrongFamily {
    /// Name of the algorithm or command that accepts only one family.
    pub what: &'static str,
    /// Family that the algorithm or command accepts.
    pub needed: &'static str,
    /// Family of the fabric that was passed.
    pub family: &'static str,
    /// Description of the fabric that was passed ([`Machine::nature`]).
    pub nature: &'static str,
}

/// Declaration of a fabric family.
pub struct FamilyRecord {
    /// Name of the family in specifications.
    pub name: &'static str,
    /// Description in one sentence.
    pub summary: &'static str,
    /// Source from which the model was taken.
    pub citation: &'static str,
    /// Example of a complete specification.
    pub example: &'static str,
    /// Function that lists the options of the family.
    pub options: fn() -> Vec<FabricOption>,
    /// Function that builds a fabric from a parsed specification.
    pub build: fn(&Spec) -> Result<Fabric, FabricError>,
    /// Presets: named machines of the family.
    pub presets: &'static [PresetRecord],
}

/// Named machine: a specification whose values come from a stated source.
pub struct PresetRecord {
    /// Name of the preset in specifications.
    pub name: &'static str,
    /// Description in one sentence.
    pub summary: &'static str,
    /// Source of the values.
    pub citation: &'static str,
    /// Specification that the name abbreviates.
    pub spec: &'static str,
    /// Note about values without a source or with contradicting sources. Empty if there are none.
    pub unconfirmed: &'static str,
}

/// Base trait of machines, for comparing and downcasting them behind a shared handle. Every `Any +
/// Debug + PartialEq + Send + Sync` type implements this trait.
pub trait Object: Any + fmt::Debug + Send + Sync {
    /// Returns the machine as `Any`, for downcasting.
    fn as_any(&self) -> &dyn Any;

    /// Returns whether `other` has the type of this machine and is equal to this machine.
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

/// Machine of a family, with its capabilities.
pub trait Machine: Object {
    /// Returns the record of the machine's family.
    fn record(&self) -> &'static FamilyRecord;

    /// Returns the complete specification of this machine. [`Fabric::parse`] turns the
    /// specification into an equal fabric.
    fn spec(&self) -> Spec;

    /// Returns the description of the machine that the error [`WrongFamily`] prints.
    fn nature(&self) -> &'static str {
        "an electrical fabric without wavelengths"
    }

    /// Returns the number of ranks, N.
    fn ranks(&self) -> u32 {
        self.network().map_or(0, Network::ranks)
    }

    /// Returns the node of `rank`. Nodes have the rank numbers of the complete fabric. If some
    /// ranks fail or take no part, the remaining ranks are renumbered from 0, but the nodes keep
    /// their numbers.
    fn node(&self, rank: u32) -> u32 {
        rank
    }

    /// Returns the fabric that remains after `failures`. Only families with a special syntax for
    /// failures implement this function. For all other families, this function returns `None`, and
    /// [`families::after_failures`](crate::families::after_failures) does the work.
    fn after_failures(&self, _failures: &str) -> Option<Result<Fabric, SpecError>> {
        None
    }

    /// Returns the fabric after the failure of a component that a spare can replace, such as `cube
    /// 3`. Returns an error message if no spare is left. Returns `None` if no replaceable component
    /// is called `part`.
    fn with_replacement(&self, _part: &str) -> Option<Result<Fabric, String>> {
        None
    }

    /// Returns the fabric on which the ranks in `members` run a separate job. These ranks are
    /// renumbered from 0 in ascending order. On an electrical fabric, the job may use all links. On
    /// a fabric with circuits, the job has a fabric of its own with these ranks only.
    ///
    /// # Errors
    /// The fabric has no part for these ranks.
    fn part(&self, members: &[u32]) -> Result<Fabric, FabricError> {
        let nodes = members.iter().map(|&rank| self.node(rank));
        part::part_of_machine(self.record(), &self.spec(), self.network().is_some(), nodes)
    }

    /// Returns a range of ranks as (first rank, number of ranks). The part of `members` uses only
    /// links between ranks of this range. Parts whose ranges do not overlap share no resources.
    fn part_span(&self, _members: &[u32]) -> (u32, u32) {
        (0, self.ranks())
    }

    /// Converts the index of a link in this part to the index of the same link in the whole fabric.
    fn link_of_whole(&self, link: u32) -> u32 {
        link
    }

    /// Converts the index of a link in the whole fabric to the index of the same link in this part.
    /// Returns `None` if the link is broken.
    fn link_in_part(&self, whole: u32) -> Option<u32> {
        Some(whole)
    }

    /// Returns alternative fabrics for the planner, if this fabric has degraded parts or links that
    /// are broken in one direction. The planner also makes plans for these fabrics, and simulates
    /// these plans on this fabric. The alternatives are: the fabric with all parts at full rate;
    /// the fabric without the degraded parts; and the fabric without the degraded parts and without
    /// both directions of partly broken links.
    fn planning_alternatives(&self) -> Vec<Fabric> {
        Vec::new()
    }

    /// Returns the name of the accelerator of a rank, such as `h100`, or `None` if the machine does
    /// not state it.
    fn accelerator(&self) -> Option<&'static str> {
        None
    }

    /// Returns the parts of the machine. By default, these are the parts of its cables
    /// ([`Bill::for_network`]).
    fn bill(&self) -> Bill {
        self.network().map_or_else(Bill::default, Bill::for_network)
    }

    /// Returns how many bytes pass the parts of each kind, in halves of bytes. Half of a byte
    /// passes the parts at each end of a link or circuit, so a byte that enters and leaves a switch
    /// passes the switch once.
    fn bill_of_bytes(&self, moved: &MovedBytes<'_>) -> Bill {
        match (self.network(), self.circuits()) {
            (Some(network), _) => {
                Bill::default().with_bytes(network, &WholeNetwork::of(network), moved.links)
            }
            (None, Some(circuits)) => self.bill().bytes_over_circuits(
                circuits.transmission().rate,
                circuits.side_network().map(|(_, network)| network.rate),
                moved,
            ),
            (None, None) => Bill::default(),
        }
    }

    /// Returns a description of the machine for output, such as `16 ranks, 1 fibre per direction`.
    fn description(&self) -> String {
        let links = self.network().map_or(0, |network| network.links().len());
        let ranks = plural(self.ranks() as usize, "rank");
        let work = self.network().map_or("", network::in_network::described);
        format!("{ranks}, {}{work}", plural(links, "link"))
    }

    /// Returns the minimum of the injection bandwidths of all ranks, in bits per second. The
    /// injection bandwidth of a rank is the rate at which the rank can send on all of its links or
    /// transmitters at once. Fabrics with different results are machines of different capacity.
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

    /// Returns the time of an empty message from rank 0 to the farthest rank. The fabric is
    /// otherwise idle; a circuit between the two ranks is already up.
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

    /// Returns the network of links that flows share, or `None` if data moves over circuits.
    fn network(&self) -> Option<&dyn Network> {
        None
    }

    /// Returns the links over which a plan may name routes: shared links, or fibres. Returns `None`
    /// if the light of a transfer determines its route.
    fn routed_links(&self) -> Option<&dyn Network> {
        self.network().or_else(|| self.circuits()?.fibre_links())
    }

    /// Returns the circuits that plans place in slots, or `None` if data moves over shared links.
    fn circuits(&self) -> Option<&dyn Circuits> {
        None
    }

    /// Returns the number of ranks of a server, if consecutive ranks form servers
    /// ([`Network::group_size`]).
    fn group_size(&self) -> Option<u32> {
        self.network().and_then(Network::group_size)
    }

    /// Returns the groups of routers, or `None` if the fabric has no groups.
    fn groups(&self) -> Option<&dyn Groups> {
        None
    }

    /// Returns the rows and columns of ranks, or `None` if the fabric has no rows and columns.
    fn planes(&self) -> Option<&dyn Planes> {
        None
    }

    /// Returns the circuit switches between the parts of the machine, or `None` if the machine has
    /// no such switches. The switches are set before a plan runs.
    fn switches(&self) -> Option<&dyn Switches> {
        None
    }

    /// Returns the positions of the vertices in a picture; by default, [`Network::drawing`].
    fn drawing(&self) -> Option<Drawing> {
        self.network().map(|network| network.drawing())
    }

    /// Returns the format of [`Light`] in plans, or `None` if data moves over links.
    fn light(&self) -> Option<&'static LightKind> {
        self.circuits().map(|circuits| circuits.light())
    }

    /// Returns whether data moves over optical circuits.
    fn has_light(&self) -> bool {
        self.circuits().is_some()
    }

    /// Returns the numbering of wavelength channels, or `None` if the fabric does not number
    /// channels. The stripes of a pipelined plan use consecutive channels.
    fn numbered_channels(&self) -> Option<&dyn NumberedChannels> {
        self.circuits()?.numbered_channels()
    }

    /// Returns the rule that assigns channels to the rotations of a lightpath, or `None` if the
    /// fabric does not look the same from every rank. Only fabrics with such a rule have
    /// rotation-symmetric plans.
    fn rotation(&self) -> Option<&dyn Rotation> {
        self.circuits()?.rotation()
    }
}

/// Machine type that is the only type of its family. Code for this family can downcast to the type.
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

    /// Returns the machine as type `M`, or `None` if the machine has another type. Only code for
    /// one family calls this function.
    pub fn downcast<M: Machine>(&self) -> Option<&M> {
        // Calls `as_any` of the machine, because the handle implements `as_any` too.
        (*self.0).as_any().downcast_ref()
    }

    /// Returns the machine as type `M`. The error message contains `what`, the name of the code
    /// that needs the family.
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

    /// Returns the fabric with switches that only forward.
    ///
    /// # Errors
    /// The specification of the fabric cannot be read.
    pub fn with_forwarding_switches(&self) -> Result<Fabric, FabricError> {
        let work = self.network().map(network::in_network::work_of_switches);
        if work.is_none_or(|work| work == InNetwork::None) {
            return Ok(self.clone());
        }
        let spec = self.spec().without("in_network");
        Fabric::parse(&spec.with("in_network", InNetwork::None).to_string())
    }

    /// Returns the part of the fabric that the ranks in `members` use for a separate job
    /// ([`Machine::part`]). Returns the whole fabric if `members` contains all ranks.
    ///
    /// # Errors
    /// The fabric has no part for these ranks.
    pub fn part(&self, members: &[u32]) -> Result<Fabric, FabricError> {
        match members.len() as u32 == self.ranks() {
            true => Ok(self.clone()),
            false => self.0.part(members),
        }
    }

    /// Returns the fabric without the times of one role: sets each option with the role `role` to
    /// zero if its value is a time.
    pub fn without(&self, role: Role) -> Fabric {
        let mut spec = self.spec();
        let record = self.record();
        let options = (record.options)();
        let records = options.iter().map(|option| &option.record);
        let mut fabric = self.clone();
        for option in records.filter(|option| option.role == role) {
            // Some options of the role are not times and keep their values, for example the option
            // that decides whether the first configuration is charged.
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
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec().fmt(formatter)
    }
}
