//! Fabrics with wavelengths as links with channels.

use std::rc::Rc;

use opticoll_base::units::{Bytes, Time, UnitError};

/// Links of a route, as link numbers. The numbers of links start at 0.
pub(super) type Route = Rc<[u32]>;

/// Numbers of links, channels, ports and converters, and the time to set up a lightpath.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resources {
    pub(super) ranks: u32,
    pub(super) links: u32,
    /// Number of channels of each link, without dead channels.
    pub(super) channels: u32,
    /// Maximum number of lightpaths that a rank sends at a time.
    pub(super) transmitters: Option<u32>,
    /// Maximum number of lightpaths that a rank receives at a time.
    pub(super) receivers: Option<u32>,
    pub(super) converters: Converters,
    pub(super) reconfiguration: Time,
}

/// Wavelength converters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Converters {
    None,
    Full,
    /// Number of converters at each vertex, and number of vertices.
    PerVertex {
        count: u32,
        vertices: u32,
    },
}

/// Fabric whose lightpaths are lists of links.
pub(super) trait Machine {
    fn resources(&self) -> Resources;

    /// Returns the routes that a lightpath can take, in the order in which the simulator tries
    /// them.
    fn routes(&mut self, source: u32, destination: u32) -> Rc<[Route]>;

    /// Returns the propagation delay of a lightpath plus the transmission time of a message.
    /// `channels` contains the lightpath's channel on each link of the route; it is empty if
    /// converters choose the channels.
    fn time(
        &self,
        ends: (u32, u32),
        route: &[u32],
        channels: &[u32],
        bytes: Bytes,
    ) -> Result<Time, UnitError>;

    /// Returns the vertices at the ends of a link.
    fn ends(&self, link: u32) -> [u32; 2];

    /// Returns the links between consecutive ranks: between the first rank and the ranks after it,
    /// as many as the second number says.
    fn spanned_links(&self, span: (u32, u32)) -> Vec<u32>;
}
