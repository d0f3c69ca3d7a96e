//! Circuit switches between the parts of a fabric, which are set once. A circuit switch guides
//! light from one port to another.

/// Machine whose parts are joined by circuit switches with equal numbers of ports.
pub trait Switches {
    /// Returns the number of switches.
    fn count(&self) -> u32;

    /// Returns the number of ports of each switch that have fibres.
    fn ports(&self) -> u32;

    /// Returns the name of a switch for readers.
    fn switch_name(&self, switch: u32) -> String;

    /// Returns the name of a port for readers: the fibre that ends at the port.
    fn port_name(&self, switch: u32, port: u32) -> String;

    /// Returns the pairs of ports that a switch connects. A port is in at most one pair.
    fn joined(&self, switch: u32) -> Vec<(u32, u32)>;
}
