//! A plan, folded or not: what the planner returns and the rest of the program takes.

use super::{FoldedPlan, Lightpath, Plan};

/// A plan in the form in which it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnyPlan {
    /// Every lightpath.
    Full(Plan),
    /// What rank 0 sends, for all ranks.
    Folded(FoldedPlan),
}

/// A plan in either form, borrowed. Functions that take `impl Into<PlanRef>` take a reference to
/// either form.
#[derive(Debug, Clone, Copy)]
pub enum PlanRef<'a> {
    /// Every lightpath.
    Full(&'a Plan),
    /// What rank 0 sends, for all ranks.
    Folded(&'a FoldedPlan),
}

impl AnyPlan {
    /// What is kept: all lightpaths, or those that leave rank 0. Fabric, collective, claims, steps,
    /// slots and size are the plan's in any case.
    pub fn representative(&self) -> &Plan {
        match self {
            AnyPlan::Full(plan) => plan,
            AnyPlan::Folded(plan) => &plan.orbits,
        }
    }

    /// What is kept, to be changed.
    pub fn kept_mut(&mut self) -> &mut Plan {
        match self {
            AnyPlan::Full(plan) => plan,
            AnyPlan::Folded(plan) => &mut plan.orbits,
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
        }
    }
}

impl<'a> PlanRef<'a> {
    /// What is kept (see [`AnyPlan::representative`]).
    pub fn representative(self) -> &'a Plan {
        match self {
            PlanRef::Full(plan) => plan,
            PlanRef::Folded(plan) => &plan.orbits,
        }
    }

    /// How many lightpaths of the whole plan each one that is kept stands for.
    pub fn copies(self) -> u32 {
        match self {
            PlanRef::Full(_) => 1,
            PlanRef::Folded(plan) => plan.orbits.fabric.ranks(),
        }
    }

    /// The number of lightpaths of the whole plan.
    pub fn transfers(self) -> u64 {
        self.representative().len() as u64 * u64::from(self.copies())
    }

    /// The lightpath with an index in the whole plan; `None` beyond the last.
    pub fn lightpath(self, index: u64) -> Option<Lightpath> {
        if index >= self.transfers() {
            return None;
        }
        let copies = u64::from(self.copies());
        let (representative, source) = ((index / copies) as usize, (index % copies) as u32);
        Some(match self {
            PlanRef::Full(plan) => plan.lightpath(representative),
            PlanRef::Folded(plan) => plan.copy(representative, source),
        })
    }

    /// The lightpaths of a slot, with their indices in the whole plan.
    pub fn of_slot(self, slot: u32) -> impl Iterator<Item = (u64, Lightpath)> + 'a {
        let copies = u64::from(self.copies());
        let here = self.representative().slot.iter().enumerate();
        here.filter(move |(_, own)| **own == slot)
            .flat_map(move |(representative, _)| {
                representative as u64 * copies..(representative as u64 + 1) * copies
            })
            .filter_map(move |index| Some((index, self.lightpath(index)?)))
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

impl<'a> From<&'a AnyPlan> for PlanRef<'a> {
    fn from(plan: &'a AnyPlan) -> PlanRef<'a> {
        match plan {
            AnyPlan::Full(plan) => PlanRef::Full(plan),
            AnyPlan::Folded(plan) => PlanRef::Folded(plan),
        }
    }
}
