//! Circuit switches between the parts of a fabric, which are set once before a plan runs. A circuit
//! switch connects pairs of ports optically.

/// Machine whose parts are joined by circuit switches. All switches have the same number of ports.
pub trait Switches {
    /// Returns the number of switches.
    fn count(&self) -> u32;

    /// Returns the number of ports per switch that have fibres.
    fn ports(&self) -> u32;

    /// Returns the printed name of a switch.
    fn switch_name(&self, switch: u32) -> String;

    /// Returns the printed name of a port, which names the fibre at the port.
    fn port_name(&self, switch: u32, port: u32) -> String;

    /// Returns the pairs of ports that `switch` connects. Each port is in at most one pair.
    fn joined(&self, switch: u32) -> Vec<(u32, u32)>;
}
