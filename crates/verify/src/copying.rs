//! Replay of collectives without reductions: a rank has a chunk, or does not have it.

use std::ops::Range;

use super::delivery::{Delivery, DeliveryRule, report_idle};
use super::report::{Report, named, transfer_violation};
use super::{Violation, ViolationKind};
use opticoll_base::interrupt;
use opticoll_plan::collective::Holders;
use opticoll_plan::plan::Plan;

/// Value of `held_from` for a rank that does not have the chunk.
const NEVER: u32 = u32::MAX;

/// State of the replay, which handles one chunk after another.
pub(super) struct Copying<'a> {
    plan: &'a Plan,
    /// First step at whose start each rank has the chunk, indexed by rank.
    held_from: Vec<u32>,
}

impl<'a> Copying<'a> {
    pub(super) fn new(plan: &'a Plan) -> Copying<'a> {
        Copying {
            plan,
            held_from: vec![NEVER; plan.schedule.collective.ranks() as usize],
        }
    }

    fn starts_with(&self, rank: u32, chunk: u32) -> bool {
        includes(self.plan.schedule.collective.before(chunk), rank)
    }

    fn slot(&self, delivery: &Delivery) -> u32 {
        self.plan.slot[delivery.transfer as usize]
    }

    fn set_holders(&mut self, chunk: u32, from: u32) {
        match self.plan.schedule.collective.before(chunk) {
            Holders::One(rank) => self.held_from[rank as usize] = from,
            Holders::All => self.held_from.fill(from),
        }
    }

    /// Reports the ranks that lack `chunk` at the end. `delivered` is the number of ranks that have
    /// received it.
    fn finish(&self, chunk: u32, delivered: u32, report: &mut Report) {
        let collective = self.plan.schedule.collective;
        let before = match collective.before(chunk) {
            Holders::One(_) => 1,
            Holders::All => collective.ranks(),
        };
        let has_chunk = |rank: u32| self.held_from[rank as usize] != NEVER;
        match collective.after(chunk) {
            Holders::One(rank) if !has_chunk(rank) => {
                report.add(ViolationKind::Missing, || missing(rank, chunk));
            }
            Holders::All if before + delivered < collective.ranks() => {
                if report.is_full(ViolationKind::Missing) {
                    let lacking = collective.ranks() - before - delivered;
                    return report.count(ViolationKind::Missing, u64::from(lacking));
                }
                for rank in (0..collective.ranks()).filter(|&rank| !has_chunk(rank)) {
                    report.add(ViolationKind::Missing, || missing(rank, chunk));
                }
            }
            _ => {}
        }
    }

    /// Returns the violation of a delivery whose source does not have the chunk. The source
    /// receives the chunk in the same step, later, or never.
    fn missing_at_source(&self, chunk: u32, deliveries: &[Delivery], sent: &Delivery) -> Violation {
        let Delivery { step, source, .. } = *sent;
        let arrival = deliveries
            .iter()
            .find(|other| other.destination == source && other.step >= step);
        let (kind, reason) = match arrival {
            Some(arrival) if arrival.step == step => (
                ViolationKind::SameStepForward,
                format!(
                    "receives in the same step, by transfer {}",
                    named(self.plan, arrival.transfer as usize)
                ),
            ),
            Some(arrival) => (
                ViolationKind::NotHeld,
                format!("receives only in slot {}", self.slot(arrival)),
            ),
            None => (ViolationKind::NotHeld, "does not hold".into()),
        };
        let problem = format!("sends chunk {chunk}, which rank {source} {reason}");
        let (slot, transfer) = (self.slot(sent), sent.transfer as usize);
        let mut violation = transfer_violation(self.plan, kind, slot, transfer, &problem);
        let arrival = arrival.map(|arrival| arrival.transfer as usize);
        violation.transfers.extend(arrival);
        Violation {
            rank: Some(source),
            chunk: Some(chunk),
            ..violation
        }
    }

    /// Returns the violation of a delivery to a rank that already has the chunk.
    fn duplicate(&self, chunk: u32, deliveries: &[Delivery], repeated: &Delivery) -> Violation {
        let (destination, slot) = (repeated.destination, self.slot(repeated));
        let mut received = deliveries.iter();
        let first = received
            .find(|other| other.destination == destination)
            .filter(|_| !self.starts_with(destination, chunk));
        let earlier = match first {
            None => "has held it from the start".into(),
            Some(first) => format!(
                "gets it in slot {} by transfer {}",
                self.slot(first),
                named(self.plan, first.transfer as usize)
            ),
        };
        let problem = format!("brings chunk {chunk} to rank {destination}, which {earlier}");
        let (kind, transfer) = (ViolationKind::Duplicate, repeated.transfer as usize);
        let mut violation = transfer_violation(self.plan, kind, slot, transfer, &problem);
        let first = first.map(|first| first.transfer as usize);
        violation.transfers.extend(first);
        Violation {
            rank: Some(destination),
            chunk: Some(chunk),
            ..violation
        }
    }
}

impl DeliveryRule for Copying<'_> {
    fn replay(&mut self, chunk: u32, deliveries: &[Delivery], report: &mut Report) {
        self.set_holders(chunk, 0);
        let mut delivered = 0;
        for delivery in deliveries {
            interrupt::check();
            if self.held_from[delivery.source as usize] > delivery.step {
                let violation = self.missing_at_source(chunk, deliveries, delivery);
                report.add(violation.kind, || violation);
            }
            let held_from = &mut self.held_from[delivery.destination as usize];
            if *held_from == NEVER {
                *held_from = delivery.step + 1;
                delivered += 1;
            } else {
                report.add(ViolationKind::Duplicate, || {
                    self.duplicate(chunk, deliveries, delivery)
                });
            }
        }
        self.finish(chunk, delivered, report);
        for delivery in deliveries {
            interrupt::check();
            self.held_from[delivery.destination as usize] = NEVER;
        }
        self.set_holders(chunk, NEVER);
    }

    fn idle(&mut self, chunks: Range<u32>, report: &mut Report) {
        let collective = self.plan.schedule.collective;
        let (ranks, before, after) = (
            collective.ranks(),
            |chunk| collective.before(chunk),
            |chunk| collective.after(chunk),
        );
        let lacks =
            move |chunk, rank| includes(after(chunk), rank) && !includes(before(chunk), rank);
        let lacking = |chunk| (0..ranks).filter(move |&rank| lacks(chunk, rank));
        let lacking_count = |chunk| match (before(chunk), after(chunk)) {
            (Holders::One(_), Holders::All) => u64::from(ranks - 1),
            (Holders::One(before), Holders::One(after)) => u64::from(before != after),
            (Holders::All, _) => 0,
        };
        report_idle(self.plan, chunks, lacking, lacking_count, missing, report);
    }
}

fn includes(holders: Holders, rank: u32) -> bool {
    match holders {
        Holders::One(holder) => holder == rank,
        Holders::All => true,
    }
}

fn missing(rank: u32, chunk: u32) -> Violation {
    Violation {
        rank: Some(rank),
        chunk: Some(chunk),
        ..Violation::new(
            ViolationKind::Missing,
            format!("at the end rank {rank} does not hold chunk {chunk}"),
        )
    }
}
