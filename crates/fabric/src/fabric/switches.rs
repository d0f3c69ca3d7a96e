//! Circuit switches between the parts of a fabric, which are set once: light goes in at a port and out at another.

/// A machine whose parts circuit switches join, each switch in the same way as wide as the others.
pub trait Switches {
    /// The number of switches.
    fn count(&self) -> u32;

    /// The ports of each switch that fibres lead to.
    fn ports(&self) -> u32;

    /// A switch in words.
    fn switch_name(&self, switch: u32) -> String;

    /// A port of a switch in words: the fibre that leads to it.
    fn port_name(&self, switch: u32, port: u32) -> String;

    /// The pairs of ports that a switch joins; a port is in one pair at most.
    fn joined(&self, switch: u32) -> Vec<(u32, u32)>;
}
