//! Barriers from plans of other collectives, whose lightpaths carry signals in place of bytes.
//!
//! In an all_reduce every rank learns something of all, and in an all_gather too. With a signal in place of
//! whatever a lightpath carries, united with what its receiver has heard, a rank has heard at least of whom it
//! would hold a contribution to one chunk. So all have heard of all at the end: a barrier. Two lightpaths of a step
//! between the same ranks are one signal, and signals that tell their receivers nothing new are left out.

use super::contest::{Contender, Contest, ContestOutcome, Made};
use super::two_phases::{flat, nested};
use super::{Planned, Planner, PlannerError, Question, find, least};
use crate::collective::{Collective, CollectiveKind};
use crate::family::wdm_ring::WdmRing;
use crate::interrupt;
use crate::plan::{AnyPlan, Lightpath, Plan};
use crate::schedule::{Claims, Schedule, Transfer};
use crate::simulate::Policy;
use crate::spec::{OptionRecord, Spec};
use crate::units::{Bytes, Time};
use std::collections::BTreeSet;

/// The planner of barriers.
pub(super) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("of", "collective whose plan carries the signals")
            .range("all_reduce, all_gather")
            .default("all_reduce"),
        OptionRecord::new(
            "plan",
            "algorithm of that collective, such as grouped/groups=17/core=exchange",
        )
        .range("algorithms of that collective")
        .default("the fastest found"),
    ],
    by_size: true,
    candidates: contenders,
    ..Planner::on_rings(
        NAME,
        "Signals",
        &[CollectiveKind::Barrier],
        "The lightpaths of an all_reduce or all_gather in few slots, with signals in place of bytes",
        "opticoll",
        plan,
    )
};

const NAME: &str = "signals";

/// What every rank has heard is a row of bits for each rank: more ranks than that take more than 8 MiB.
const MOST_RANKS: u32 = 1 << 13;

/// The planners whose plans take few slots when there is little to send.
const OF_FEW_SLOTS: [&str; 2] = ["grouped", "detour"];

/// The question for the collective whose plan carries the signals, of a byte.
fn inner<'a>(question: &Question<'a>, kind: CollectiveKind) -> Result<Question<'a>, PlannerError> {
    Ok(Question {
        collective: Collective::new(kind, question.collective.ranks())?,
        size: Bytes::new(1),
        most_work: question.most_work / 2,
        ..*question
    })
}

fn contenders<'a>(question: &Question<'a>) -> Result<Vec<Contender<'a>>, PlannerError> {
    let ring = question.fabric.downcast::<WdmRing>();
    if ring.is_none_or(|ring| ring.ranks < 2 || ring.ranks > MOST_RANKS) {
        return Ok(Vec::new());
    }
    let mut contenders: Vec<Contender<'a>> = Vec::new();
    for kind in [CollectiveKind::AllReduce, CollectiveKind::AllGather] {
        if !contenders.is_empty() {
            break;
        }
        let inner = inner(question, kind)?;
        let planners = OF_FEW_SLOTS.iter().filter_map(|name| find(kind, name));
        for planner in planners {
            for one in (planner.candidates)(&inner)? {
                let plan = flat(&one.name);
                let spec = Spec::new(NAME).with("of", kind).with("plan", plan);
                let (make, name, question) = (one.make, spec.to_string(), *question);
                contenders.push(Contender {
                    name: name.clone(),
                    least: least::of_collective(&question)?,
                    make: Box::new(move |_| match make(None)? {
                        Made::Plan(plan) => {
                            signalled(&question, &plan.unfold(), name).map(Made::from)
                        }
                        other => Ok(other),
                    }),
                    ..one
                });
            }
        }
    }
    if matches!(question.policy(), Policy::OnChange | Policy::PerPort) {
        contenders.push(around(question)?);
    }
    Ok(contenders)
}

/// Signals from neighbour to neighbour both ways around, over circuits that are set up once.
fn around<'a>(question: &Question<'a>) -> Result<Contender<'a>, PlannerError> {
    let plan = Spec::new("ring_bidirectional");
    let spec = Spec::new(NAME).with("of", CollectiveKind::AllGather);
    let name = spec.with("plan", flat(&plan.to_string())).to_string();
    let inner = inner(question, CollectiveKind::AllGather)?;
    let (ranks, question) = (u64::from(question.fabric.ranks()), *question);
    let least = least::of_collective(&question)?;
    Ok(Contender {
        name: name.clone(),
        slots: ranks / 2,
        least,
        estimate: least,
        transfers: ranks * ranks,
        make: Box::new(move |_| {
            let planned = inner.answer(&plan)?;
            signalled(&question, &planned.plan.unfold(), name).map(Made::from)
        }),
    })
}

fn plan(spec: &Spec, question: &Question<'_>) -> Result<Planned, PlannerError> {
    if question.fabric.ranks() < 2 {
        return Ok(question.nothing_to_do(spec));
    }
    let kind = match spec.option("of") {
        None | Some("all_reduce") => CollectiveKind::AllReduce,
        Some("all_gather") => CollectiveKind::AllGather,
        Some(_) => return Err(spec.refuse("of", "must be all_reduce or all_gather").into()),
    };
    if spec.options().next().is_none() {
        let contenders = contenders(question)?;
        let least = Time::ZERO;
        let contest = Contest { question, least };
        let ContestOutcome { fastest, .. } = contest.run(contenders, Vec::new())?;
        return Ok(fastest?.0.into());
    }
    let inner = inner(question, kind)?;
    let planned = match spec.option("plan") {
        Some(text) => inner.answer(&nested(text)?)?,
        None => inner.fastest()?,
    };
    let plan = planned.plan.unfold();
    let named = Spec::new(NAME)
        .with("of", kind)
        .with("plan", flat(&plan.algorithm));
    signalled(question, &plan, named.to_string()).map(Planned::from)
}

/// The barrier along the lightpaths of a plan.
fn signalled(
    question: &Question<'_>,
    plan: &Plan,
    algorithm: String,
) -> Result<AnyPlan, PlannerError> {
    let ranks = question.collective.ranks();
    question.fits(u64::from(ranks).pow(2) / 64)?;
    let mut heard = Heard::new(ranks);
    let mut barrier = Plan {
        fabric: question.fabric.clone(),
        schedule: Schedule::new(question.collective),
        algorithm,
        step_slots: Vec::new(),
        ..plan.without_lightpaths()
    };
    let mut slots = 0;
    for step in 0..plan.schedule.steps() {
        let told = new_signals(&heard, plan, step);
        if told.is_empty() {
            continue;
        }
        barrier.schedule.begin_step();
        let lit: BTreeSet<u32> = told.iter().map(|&index| plan.slot[index]).collect();
        let lit: Vec<u32> = lit.into_iter().collect();
        let before = heard.clone();
        for index in told {
            let (source, destination) = plan.schedule.ends(index);
            heard.tell(&before, source, destination);
            let place = lit.partition_point(|&slot| slot < plan.slot[index]) as u32;
            barrier.push(Lightpath {
                slot: slots + place,
                light: plan.light_of(index),
                transfer: Transfer::reduce(0, source, destination),
            });
        }
        barrier.step_slots.push(slots..slots + lit.len() as u32);
        slots += lit.len() as u32;
    }
    if !heard.all() {
        return Err(PlannerError::NotFound { pieces: 1 });
    }
    barrier.schedule.claims = Claims {
        schedule_steps: Some(barrier.schedule.steps() as u32),
        ..Claims::default()
    };
    Ok(AnyPlan::Full(barrier))
}

/// The first transfer of a step between each two ranks that tells something new.
fn new_signals(heard: &Heard, plan: &Plan, step: usize) -> Vec<usize> {
    let mut pairs = BTreeSet::new();
    let mut told: Vec<usize> = plan.schedule.step(step).collect();
    told.sort_by_key(|&index| plan.slot[index]);
    told.retain(|&index| {
        interrupt::check();
        let (source, destination) = plan.schedule.ends(index);
        heard.knows_more(source, destination) && pairs.insert((source, destination))
    });
    told.sort_unstable();
    told
}

/// Of which ranks each rank has heard: rows of bits.
#[derive(Clone)]
struct Heard {
    ranks: u32,
    words: usize,
    bits: Vec<u64>,
}

impl Heard {
    /// Each of itself.
    fn new(ranks: u32) -> Heard {
        let words = ranks.div_ceil(64) as usize;
        let mut bits = vec![0; words * ranks as usize];
        for rank in 0..ranks as usize {
            bits[rank * words + rank / 64] |= 1 << (rank % 64);
        }
        Heard { ranks, words, bits }
    }

    fn row(&self, rank: u32) -> &[u64] {
        &self.bits[rank as usize * self.words..][..self.words]
    }

    fn knows_more(&self, source: u32, destination: u32) -> bool {
        let both = self.row(source).iter().zip(self.row(destination));
        both.into_iter().any(|(from, to)| from & !to != 0)
    }

    /// The destination hears what the source had heard before.
    fn tell(&mut self, before: &Heard, source: u32, destination: u32) {
        let own = &mut self.bits[destination as usize * self.words..][..self.words];
        for (word, new) in own.iter_mut().zip(before.row(source)) {
            *word |= new;
        }
    }

    fn all(&self) -> bool {
        let heard: u64 = self
            .bits
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum();
        heard == u64::from(self.ranks).pow(2)
    }
}
