//! Flows whose starts are decided outside, event by event: for programs that compute between messages.
//!
//! The clock is here, its hand is turned from outside: [`Driven::next_time`] says when something happens if
//! nothing starts before, [`Driven::advance`] goes there, and [`Driven::start`] begins a flow now or at a
//! later instant that is not after the next. Inside, instants are fractions of a picosecond; a flow that
//! is started at the picosecond to which an instant was rounded begins at that instant.
//!
//! ```
//! use opticoll::fabric::Fabric;
//! use opticoll::simulate::fluid::{Driven, Options};
//! use opticoll::units::{Bytes, Time};
//! let fabric = Fabric::parse("crossbar:ranks=2,rate=8Gb/s,latency=0s")?;
//! let options = Options::default();
//! let mut flows = Driven::new(fabric.network().unwrap(), &options)?;
//! flows.start(7, (0, 1), Bytes::new(1000), Time::from_ps(500))?;
//! let end = flows.next_time()?;
//! assert_eq!(end, Some(Time::from_ps(1_000_500)));
//! let mut ended = Vec::new();
//! flows.advance(&mut ended)?;
//! assert_eq!(ended, [7]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::engine::Engine;
use super::instant::to_time;
use super::program::FlowStart;
use super::{FluidError, Options, check_background, check_ends, outcome, with_flows};
use crate::network::Network;
use crate::outcome::FluidOutcome;
use crate::units::{Bytes, Time};

/// Flows under way.
pub struct Driven<'a> {
    network: &'a dyn Network,
    options: Options,
    engine: Engine<'a>,
    now: f64,
    /// The next instant, while nothing has started since it was found.
    next: Option<f64>,
    ended: Vec<u32>,
    flows: u64,
}

impl<'a> Driven<'a> {
    /// A network without flows. Flows are not recorded one by one, whatever the options say.
    ///
    /// # Errors
    /// Traffic beside the flows with ends that are no ranks; costs at the ends, which are for whoever
    /// starts the flows; a bin without length.
    pub fn new(network: &'a dyn Network, options: &Options) -> Result<Driven<'a>, FluidError> {
        check_background(network, options)?;
        if options.endpoint.is_some() {
            return Err(FluidError::Endpoint);
        }
        let mut engine = Engine::new(network, options)?;
        engine.ledger.record_no_flows();
        engine.announce_background();
        Ok(Driven {
            network,
            options: options.clone(),
            engine,
            now: 0.0,
            next: None,
            ended: Vec::new(),
            flows: 0,
        })
    }

    /// Starts a flow with a number of its own from one rank to another; starts come in the order of
    /// time.
    ///
    /// # Errors
    /// Ends that are no ranks or the same one, a route with an unknown link.
    pub fn start(
        &mut self,
        flow: u32,
        (source, destination): (u32, u32),
        bytes: Bytes,
        time: Time,
    ) -> Result<(), FluidError> {
        check_ends(flow as usize, source, destination, self.network.ranks())?;
        // The present as it was told may be its instant rounded up.
        let present = to_time(self.now)? == time;
        let now = match present {
            true => self.now,
            false => self.now.max(time.ps() as f64),
        };
        if now > self.now {
            self.engine.next_instant(self.now)?;
            self.engine.ledger.flow_until(now);
            self.now = now;
        }
        self.next = None;
        self.flows += 1;
        let message = FlowStart {
            flow,
            source,
            destination,
            bytes: bytes.get(),
            cap: f64::INFINITY,
            start: now,
        };
        self.engine.begin(message, now)
    }

    /// When a flow ends next or the rates change, if nothing starts before; `None`: never.
    ///
    /// # Errors
    /// A time beyond 64 bits.
    pub fn next_time(&mut self) -> Result<Option<Time>, FluidError> {
        let next = match self.next {
            Some(next) => next,
            None if !self.engine.events.is_empty() => self.now,
            None => self.engine.next_instant(self.now)?,
        };
        self.next = Some(next);
        if next == f64::INFINITY {
            return Ok(None);
        }
        to_time(next).map(Some)
    }

    /// Moves the clock on to that instant; appends the numbers of the flows that have ended with it,
    /// in their order. It may be none.
    ///
    /// # Errors
    /// A time beyond 64 bits.
    pub fn advance(&mut self, ended: &mut Vec<u32>) -> Result<(), FluidError> {
        if self.next_time()?.is_none() {
            return Ok(());
        }
        if self.engine.events.is_empty()
            && let Some(next) = self.next
        {
            self.now = next;
            self.engine.move_to(next, &mut self.ended)?;
        }
        self.next = None;
        let first = ended.len();
        ended.extend(self.engine.events.drain(..).map(|event| event.flow));
        ended[first..].sort_unstable();
        Ok(())
    }

    /// What has happened up to now.
    ///
    /// # Errors
    /// A time beyond 64 bits.
    pub fn close(mut self) -> Result<FluidOutcome, FluidError> {
        self.engine.end_all_background(self.now);
        let counts = (self.flows, 0);
        outcome(
            self.network,
            &self.options,
            "driven",
            self.engine.ledger,
            counts,
        )
        .map(with_flows)
    }
}
