//! Results of a run: sums per link and rank, columns of flows, and the use of links over time.

use super::conversion::{bytes_per_ps, to_time};
use super::flow_log::{FlowLog, StepReplay};
use super::meter::LinkMeter;
use super::{FlowOptions, FluidError};
use crate::link_shares;
use crate::outcome::{
    Critical, FlowColumns, FluidOutcome, LinkColumns, NONE, Profile, RankColumns,
};
use opticoll_base::interrupt;
use opticoll_base::units::UnitError;
use opticoll_fabric::network::{Network, Sharing};

/// Maximum number of bins of a [`Profile`]. In a longer run, the length of the bins is doubled.
const MAX_BINS: usize = 256;

#[derive(Clone, Default)]
struct LinkTotals {
    bytes: u128,
    busy: f64,
    /// Number of flow classes that use the link at present.
    present: u32,
    since: f64,
}

/// Use of links in a period that began with a snapshot. The period can be replayed later.
pub(super) struct RecordedPeriod {
    /// Tuples (index, bytes, busy time in ps) of the links that were used.
    links: Vec<(u32, u128, f64)>,
    /// Periods of constant rate: start and end (ps after the snapshot), and the rate (bytes per ps)
    /// at which flows move bytes, summed over all shared links.
    flowing: Vec<(f64, f64, f64)>,
}

/// State of the ledger at the beginning of a recorded period.
struct Snapshot {
    begin: f64,
    links: Vec<LinkTotals>,
    flowing: Vec<(f64, f64, f64)>,
}

/// Results of a run up to the present instant.
pub(super) struct FlowLedger {
    links: Vec<LinkTotals>,
    sent: Vec<u128>,
    received: Vec<u128>,
    finish: Vec<f64>,
    flows: Option<FlowLog>,
    /// Bytes that flows move in each bin, summed over all shared links.
    bins: Vec<f64>,
    bin_ps: f64,
    /// Present rate (bytes per ps) at which flows move bytes, summed over all shared links.
    pub(super) flowing: f64,
    /// Instant up to which `bins` is filled (ps).
    written: f64,
    snapshot: Option<Snapshot>,
    meter: Option<LinkMeter>,
    pub(super) last_end: f64,
    pub(super) last_flow: u32,
}

impl FlowLedger {
    pub(super) fn new(
        network: &dyn Network,
        record_flows: bool,
        meter: Option<LinkMeter>,
    ) -> FlowLedger {
        let ranks = network.ranks() as usize;
        FlowLedger {
            links: vec![LinkTotals::default(); network.links().len()],
            sent: vec![0; ranks],
            received: vec![0; ranks],
            finish: vec![0.0; ranks],
            flows: record_flows.then(FlowLog::default),
            bins: Vec::new(),
            bin_ps: 1.0,
            flowing: 0.0,
            written: 0.0,
            snapshot: None,
            meter,
            last_end: 0.0,
            last_flow: NONE,
        }
    }

    /// Converts the ledger of a quotient to a ledger of all links and ranks. Also returns the log
    /// of the quotient's flows. `links` and `ranks` contain the colour (see [`super::quotient`]) of
    /// each link and rank. `bytes` is the number of bytes on one link of a colour, indexed by
    /// colour. The caller must add the bytes and ends of single flows:
    /// [`FlowLedger::replay_ranks`], [`FlowLedger::note_end`].
    pub(super) fn expand(
        self,
        links: &[u32],
        bytes: &[u64],
        ranks: &[u32],
        record_flows: bool,
    ) -> (FlowLedger, FlowLog) {
        let link = |&colour: &u32| LinkTotals {
            bytes: bytes[colour as usize].into(),
            ..self.links[colour as usize].clone()
        };
        let finish = |&colour: &u32| self.finish[colour as usize];
        let log = self.flows.unwrap_or_default();
        let expanded = FlowLedger {
            links: links.iter().map(link).collect(),
            sent: vec![0; ranks.len()],
            received: vec![0; ranks.len()],
            finish: ranks.iter().map(finish).collect(),
            flows: record_flows.then(FlowLog::default),
            last_flow: NONE,
            ..self
        };
        (expanded, log)
    }

    pub(super) fn record_no_flows(&mut self) {
        self.flows = None;
    }

    pub(super) fn records_flows(&self) -> bool {
        self.flows.is_some()
    }

    /// Records that a class of flows starts to use a link.
    pub(super) fn occupy(&mut self, link: u32, now: f64) {
        let link = &mut self.links[link as usize];
        if link.present == 0 {
            link.since = now;
        }
        link.present += 1;
    }

    /// Records that a class of flows stops using a link. `bytes` is the number of bytes that the
    /// class has moved over the link; `rate` (bytes per ps) is its last rate.
    pub(super) fn vacate(&mut self, index: u32, now: f64, bytes: u128, rate: f64) {
        let link = &mut self.links[index as usize];
        link.present -= 1;
        link.bytes += bytes;
        if link.present == 0 {
            link.busy += now - link.since;
        }
        if let Some(meter) = &mut self.meter {
            if link.present == 0 {
                meter.clear(index, now);
            } else {
                meter.change(index, -rate, now);
            }
        }
    }

    /// Returns whether [`FlowLedger::change_rate`] has an effect.
    pub(super) fn meters_links(&self) -> bool {
        self.meter.is_some()
    }

    /// Adds `change` (bytes per ps) to the rate at which a class of flows uses a link.
    pub(super) fn change_rate(&mut self, link: u32, change: f64, now: f64) {
        if let Some(meter) = &mut self.meter {
            meter.change(link, change, now);
        }
    }

    /// Fills the bins of link use up to the instant `now`.
    pub(super) fn flow_until(&mut self, now: f64) {
        let (from, rate) = (self.written, self.flowing);
        self.written = now;
        if rate > 0.0 && now > from {
            if let Some(snapshot) = &mut self.snapshot {
                let begin = snapshot.begin;
                snapshot.flowing.push((from - begin, now - begin, rate));
            }
            self.flow_over(from, now, rate);
        }
    }

    /// Adds the use of links between the instants `from` and `to` (ps) to the bins. `rate` (bytes
    /// per ps) is the rate at which flows move bytes, summed over all shared links.
    pub(super) fn flow_over(&mut self, from: f64, to: f64, rate: f64) {
        while to > self.bin_ps * MAX_BINS as f64 {
            interrupt::check();
            for bin in 0..self.bins.len().div_ceil(2) {
                let second = self.bins.get(2 * bin + 1).copied().unwrap_or(0.0);
                self.bins[bin] = self.bins[2 * bin] + second;
            }
            self.bins.truncate(self.bins.len().div_ceil(2));
            self.bin_ps *= 2.0;
        }
        let (first, last) = (from / self.bin_ps, to / self.bin_ps);
        let bins = (last.ceil() as usize).min(MAX_BINS);
        if self.bins.len() < bins {
            self.bins.resize(bins, 0.0);
        }
        for bin in first as usize..bins {
            let begin = first.max(bin as f64);
            let end = last.min(bin as f64 + 1.0);
            self.bins[bin] += (end - begin).max(0.0) * self.bin_ps * rate;
        }
    }

    /// Records that a flow may start because the flow `waited_for` has ended.
    pub(super) fn start(&mut self, flow: u32, now: f64, waited_for: u32) -> Result<(), FluidError> {
        match &mut self.flows {
            Some(log) => log.start(flow, now, waited_for),
            None => Ok(()),
        }
    }

    /// Records the rate of a flow (bytes per ps) and the link that limits the rate.
    pub(super) fn rate(&mut self, flow: u32, rate: f64, bottleneck: Option<u32>) {
        if let Some(log) = &mut self.flows {
            log.rate(flow, rate, bottleneck);
        }
    }

    /// Records that a flow has been received, and counts its bytes at both ranks.
    pub(super) fn end(
        &mut self,
        flow: u32,
        ends: (u32, u32),
        bytes: u64,
        now: f64,
    ) -> Result<(), FluidError> {
        let (source, destination) = (ends.0 as usize, ends.1 as usize);
        self.sent[source] += u128::from(bytes);
        self.received[destination] += u128::from(bytes);
        self.finish[source] = self.finish[source].max(now);
        self.finish[destination] = self.finish[destination].max(now);
        self.note_end(flow, now)
    }

    /// Counts the bytes of a flow that ends at `now` at a further rank that sends or receives it.
    pub(super) fn end_at(&mut self, rank: u32, sends: bool, bytes: u64, now: f64) {
        let column = if sends {
            &mut self.sent
        } else {
            &mut self.received
        };
        column[rank as usize] += u128::from(bytes);
        let finish = &mut self.finish[rank as usize];
        *finish = finish.max(now);
    }

    /// Records the end of a flow, but not its bytes.
    pub(super) fn note_end(&mut self, flow: u32, now: f64) -> Result<(), FluidError> {
        self.note_last(flow, now);
        match &mut self.flows {
            Some(log) => log.end(flow, now),
            None => Ok(()),
        }
    }

    fn note_last(&mut self, flow: u32, end: f64) {
        if end >= self.last_end {
            self.last_end = end;
            self.last_flow = flow;
        }
    }

    /// Starts to record the use of links. At the instant `now` (ps), no flow class may use any
    /// link.
    pub(super) fn take_snapshot(&mut self, now: f64) {
        self.written = now;
        self.snapshot = Some(Snapshot {
            begin: now,
            links: self.links.clone(),
            flowing: Vec::new(),
        });
    }

    /// Returns the use of links since the snapshot, or `None` if there is no snapshot.
    pub(super) fn period(&mut self) -> Option<RecordedPeriod> {
        let Snapshot {
            links: before,
            flowing,
            ..
        } = self.snapshot.take()?;
        let links = (0u32..)
            .zip(self.links.iter().zip(before))
            .filter(|(_, (now, before))| now.busy > before.busy || now.bytes > before.bytes)
            .map(|(index, (now, before))| (index, now.bytes - before.bytes, now.busy - before.busy))
            .collect();
        Some(RecordedPeriod { links, flowing })
    }

    /// Adds the link use of a period to the bins, for a repetition of the period from `now` to
    /// `end` (ps).
    pub(super) fn replay_flowing(&mut self, period: &RecordedPeriod, now: f64, end: f64) {
        self.written = end;
        for &(from, to, rate) in &period.flowing {
            interrupt::check();
            self.flow_over(now + from, now + to, rate);
        }
    }

    /// Adds the link use of a period that occurred `times` times to the totals of the links.
    pub(super) fn replay_links(&mut self, period: &RecordedPeriod, times: u64) {
        for &(link, bytes, busy) in &period.links {
            self.add_to_links(&[link], bytes * u128::from(times), busy * times as f64);
        }
    }

    /// Adds bytes and busy time (ps) to each of `links`.
    pub(super) fn add_to_links(&mut self, links: &[u32], bytes: u128, busy: f64) {
        for &link in links {
            let link = &mut self.links[link as usize];
            link.bytes += bytes;
            link.busy += busy;
        }
    }

    /// Adds the bytes of a flow that occurred `times` times to the totals of its source and
    /// destination (`ends`). The last occurrence of the flow ends at `finish` (ps).
    pub(super) fn replay_ranks(&mut self, ends: (u32, u32), bytes: u128, times: u64, finish: f64) {
        let (source, destination) = (ends.0 as usize, ends.1 as usize);
        self.sent[source] += bytes * u128::from(times);
        self.received[destination] += bytes * u128::from(times);
        self.finish[source] = self.finish[source].max(finish);
        self.finish[destination] = self.finish[destination].max(finish);
    }

    /// Records the flows of a replayed step, if flows are recorded.
    pub(super) fn replay_flows(&mut self, replayed: StepReplay<'_>) -> Result<(), FluidError> {
        for (flow, end) in (replayed.first..).zip(replayed.ends) {
            self.note_last(flow, replayed.begin + end);
        }
        match &mut self.flows {
            Some(log) => log.replay(replayed),
            None => Ok(()),
        }
    }

    /// Returns the outcome, without flow columns, and the log of the flows. Links in use count as
    /// busy until the end. `counts` contains the number of flows and the number of replayed steps.
    pub(super) fn close(
        mut self,
        network: &dyn Network,
        options: &FlowOptions,
        start_rule: &'static str,
        counts: (u64, u64),
    ) -> Result<(FluidOutcome, FlowLog), FluidError> {
        let end = self.last_end;
        self.flow_until(end);
        let mut links = LinkColumns::default();
        for link in &self.links {
            let open = if link.present > 0 {
                end - link.since
            } else {
                0.0
            };
            links.busy.push(to_time(link.busy + open)?);
            links.bytes.push(counted(link.bytes, "a link's bytes")?);
        }
        let wires = network.links();
        let shared = wires.iter().filter(|link| link.sharing == Sharing::Shared);
        let capacity: f64 = shared.map(|link| bytes_per_ps(link.rate)).sum();
        let shares = wires.iter().zip(&links.bytes);
        let utilisation: Vec<f64> = shares
            .map(|(link, &bytes)| match bytes {
                0 => 0.0,
                _ => bytes as f64 / (bytes_per_ps(link.rate) * end),
            })
            .collect();
        let bin_capacity = capacity * self.bin_ps;
        let finish = self.finish.iter().copied().map(to_time);
        let log = self.flows.take().unwrap_or_default();
        let link_use = self.meter.take().map(|meter| meter.close(end));
        let outcome = FluidOutcome {
            start_rule,
            time: to_time(end)?,
            flow_count: counts.0,
            flows: FlowColumns::default(),
            links,
            link_use: link_use.transpose()?,
            most_loaded_link: link_shares::highest(&utilisation),
            utilisation,
            ranks: RankColumns {
                sent: counted_all(self.sent)?,
                received: counted_all(self.received)?,
                finish: finish.collect::<Result<_, _>>()?,
            },
            profile: Profile {
                bin: to_time(self.bin_ps)?,
                share: self.bins.iter().map(|bytes| bytes / bin_capacity).collect(),
            },
            critical_path: critical_path(&log, self.last_flow),
            settings: options.settings(),
            replayed_steps: counts.1,
            disjoint: false,
        };
        Ok((outcome, log))
    }
}

fn counted(bytes: u128, what: &str) -> Result<u64, FluidError> {
    u64::try_from(bytes).map_err(|_| {
        FluidError::Unit(UnitError::Overflow {
            what: what.into(),
            smallest: "bytes",
        })
    })
}

fn counted_all(bytes: Vec<u128>) -> Result<Vec<u64>, FluidError> {
    let each = bytes.into_iter();
    each.map(|bytes| counted(bytes, "a rank's bytes")).collect()
}

/// Returns the critical path: a chain of flows that ends with `last`, each waiting for the
/// previous.
fn critical_path(log: &FlowLog, last: u32) -> Vec<Critical> {
    let mut path = Vec::new();
    let mut flow = last;
    while flow != NONE
        && let Some(logged) = log.flow(flow)
    {
        path.push(Critical {
            transfer: flow as usize,
            start: logged.start,
            end: logged.end,
        });
        flow = logged.waited_for;
    }
    path.reverse();
    path
}
