//! A plan in whatever form it has: what the planner returns and the rest of the program takes.

use std::borrow::Cow;

use super::{FoldedPlan, Lightpath, PipelinedPlan, Plan};

/// A plan in the form in which it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnyPlan {
    /// Every lightpath.
    Full(Plan),
    /// What rank 0 sends, for all ranks.
    Folded(FoldedPlan),
    /// How the first chunks move, for all of them.
    Pipelined(PipelinedPlan),
}

/// A plan in either form, borrowed. Functions that take `impl Into<PlanRef>` take a reference to
/// either form.
#[derive(Debug, Clone, Copy)]
pub enum PlanRef<'a> {
    /// Every lightpath.
    Full(&'a Plan),
    /// What rank 0 sends, for all ranks.
    Folded(&'a FoldedPlan),
    /// How the first chunks move, for all of them.
    Pipelined(&'a PipelinedPlan),
}

impl AnyPlan {
    /// What is kept: all lightpaths, those that leave rank 0, or those of the first chunks. Fabric, collective, claims, steps,
    /// slots and size are the plan's in any case.
    pub fn representative(&self) -> &Plan {
        match self {
            AnyPlan::Full(plan) => plan,
            AnyPlan::Folded(plan) => &plan.orbits,
            AnyPlan::Pipelined(plan) => &plan.first,
        }
    }

    /// What is kept, to be changed.
    pub fn kept_mut(&mut self) -> &mut Plan {
        match self {
            AnyPlan::Full(plan) => plan,
            AnyPlan::Folded(plan) => &mut plan.orbits,
            AnyPlan::Pipelined(plan) => &mut plan.first,
        }
    }

    /// The number of time slots.
    pub fn slots(&self) -> u32 {
        self.representative().slots()
    }

    /// The number of lightpaths of the whole plan.
    pub fn transfers(&self) -> u64 {
        PlanRef::from(self).transfers()
    }

    /// Every lightpath.
    pub fn unfold(self) -> Plan {
        match self {
            AnyPlan::Full(plan) => plan,
            AnyPlan::Folded(plan) => plan.unfold(),
            AnyPlan::Pipelined(plan) => plan.unfold(),
        }
    }
}

impl<'a> PlanRef<'a> {
    /// What is kept (see [`AnyPlan::representative`]).
    pub fn representative(self) -> &'a Plan {
        match self {
            PlanRef::Full(plan) => plan,
            PlanRef::Folded(plan) => &plan.orbits,
            PlanRef::Pipelined(plan) => &plan.first,
        }
    }

    /// How many lightpaths of the whole plan each one that is kept stands for.
    pub fn copies(self) -> u64 {
        match self {
            PlanRef::Full(_) => 1,
            PlanRef::Folded(plan) => plan.orbits.fabric.ranks().into(),
            PlanRef::Pipelined(plan) => plan.copies(),
        }
    }

    /// The number of lightpaths of the whole plan.
    pub fn transfers(self) -> u64 {
        self.representative().len() as u64 * self.copies()
    }

    /// The lightpath with an index in the whole plan; `None` beyond the last.
    pub fn lightpath(self, index: u64) -> Option<Lightpath> {
        if index >= self.transfers() {
            return None;
        }
        Some(match self {
            PlanRef::Full(plan) => plan.lightpath(index as usize),
            PlanRef::Folded(plan) => {
                let ranks = u64::from(plan.orbits.fabric.ranks());
                plan.copy((index / ranks) as usize, (index % ranks) as u32)
            }
            PlanRef::Pipelined(plan) => plan.lightpath(index),
        })
    }

    /// The lightpaths of a slot, with their indices in the whole plan.
    pub fn of_slot(self, slot: u32) -> Box<dyn Iterator<Item = (u64, Lightpath)> + 'a> {
        if let PlanRef::Pipelined(plan) = self {
            return Box::new((plan.before(slot)..).zip(plan.of_slot(slot)));
        }
        let copies = self.copies();
        let here = self.representative().slot.iter().enumerate();
        let indices =
            here.filter(move |(_, own)| **own == slot)
                .flat_map(move |(representative, _)| {
                    representative as u64 * copies..(representative as u64 + 1) * copies
                });
        Box::new(indices.filter_map(move |index| Some((index, self.lightpath(index)?))))
    }

    /// The plan, every lightpath of it or in the form that it has.
    pub fn cloned(self) -> AnyPlan {
        match self {
            PlanRef::Full(plan) => AnyPlan::Full(plan.clone()),
            PlanRef::Folded(plan) => AnyPlan::Folded(plan.clone()),
            PlanRef::Pipelined(plan) => AnyPlan::Pipelined(plan.clone()),
        }
    }

    /// Every lightpath.
    pub fn unfold(self) -> Cow<'a, Plan> {
        match self {
            PlanRef::Full(plan) => Cow::Borrowed(plan),
            PlanRef::Folded(plan) => Cow::Owned(plan.unfold()),
            PlanRef::Pipelined(plan) => Cow::Owned(plan.unfold()),
        }
    }
}

impl<'a> From<&'a Plan> for PlanRef<'a> {
    fn from(plan: &'a Plan) -> PlanRef<'a> {
        PlanRef::Full(plan)
    }
}

impl<'a> From<&'a FoldedPlan> for PlanRef<'a> {
    fn from(plan: &'a FoldedPlan) -> PlanRef<'a> {
        PlanRef::Folded(plan)
    }
}

impl<'a> From<&'a PipelinedPlan> for PlanRef<'a> {
    fn from(plan: &'a PipelinedPlan) -> PlanRef<'a> {
        PlanRef::Pipelined(plan)
    }
}

impl<'a> From<&'a AnyPlan> for PlanRef<'a> {
    fn from(plan: &'a AnyPlan) -> PlanRef<'a> {
        match plan {
            AnyPlan::Full(plan) => PlanRef::Full(plan),
            AnyPlan::Folded(plan) => PlanRef::Folded(plan),
            AnyPlan::Pipelined(plan) => PlanRef::Pipelined(plan),
        }
    }
}
