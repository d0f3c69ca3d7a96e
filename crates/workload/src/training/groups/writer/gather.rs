//! Gathering of sharded parameters.
//!
//! Parameters are gathered unit by unit, in the order in which units run. With N units ahead
//! (prefetch), the all_gather of a unit starts together with the unit N places before it in the
//! same pass. The first all_gathers of a pass start before its activations arrive. If parameters
//! are sharded, every unit of every pass needs them. If only the optimizer's state or gradients are
//! sharded, parameters are gathered once: after the optimizer's step or, with prefetch, before the
//! first forward pass of each unit in the next iteration. In a steady sequence of iterations, the
//! latter takes place at the start of every iteration.

use super::super::super::TrainingError;
use super::super::super::buckets::Bucket;
use super::super::super::operators::VALUE;
use super::super::pipeline::Pass;
use super::super::{GroupKind, Sharding};
use super::RankWriter;
use opticoll_plan::collective::CollectiveKind;

/// Unit of a pass with its place in [`Order::gathers`]; `None` if it needs no gathering.
type UnitTurn = (usize, Option<usize>);

/// Order of the units of a schedule.
pub(super) struct Order {
    /// Units of each pass of the schedule, in order.
    units: Vec<Vec<Vec<UnitTurn>>>,
    /// Units whose parameters are gathered, in order.
    gathers: Vec<usize>,
}

impl Order {
    pub(super) fn new(writer: &RankWriter<'_>, schedule: &[Vec<Pass>]) -> Order {
        let mut order = Order {
            units: Vec::new(),
            gathers: Vec::new(),
        };
        for passes in schedule {
            let units: Vec<Vec<usize>> =
                passes.iter().map(|pass| writer.pass_units(pass)).collect();
            let mut turns = vec![Vec::new(); passes.len()];
            // Passes beside each other take turns.
            for place in 0..units.iter().map(Vec::len).max().unwrap_or(0) {
                for (number, pass) in passes.iter().enumerate() {
                    let Some(&unit) = units[number].get(place) else {
                        continue;
                    };
                    let turn = writer.gathers(pass).then(|| {
                        order.gathers.push(unit);
                        order.gathers.len() - 1
                    });
                    turns[number].push((unit, turn));
                }
            }
            order.units.push(turns);
        }
        order
    }

    /// Returns the units of the passes with index `number` in the schedule.
    pub(super) fn units(&self, number: usize) -> &[Vec<UnitTurn>] {
        &self.units[number]
    }
}

impl RankWriter<'_> {
    /// Returns the indices of the units of a pass, in order.
    fn pass_units(&self, pass: &Pass) -> Vec<usize> {
        let units = self.stage.units.iter().enumerate();
        let units = units.filter(|(_, unit)| unit.chunk == pass.chunk);
        let mut units: Vec<usize> = units.map(|(number, _)| number).collect();
        if pass.backward {
            units.reverse();
        }
        units
    }

    /// Returns whether the units of a pass need gathered parameters.
    fn gathers(&self, pass: &Pass) -> bool {
        match self.training.sharding {
            Sharding::Nothing => false,
            Sharding::Optimizer | Sharding::Gradients => {
                let first = !pass.backward && pass.micro_batch == 0;
                first && self.training.practice.prefetch.is_some()
            }
            Sharding::Parameters => true,
        }
    }

    /// Starts the all_gathers of the unit at place `turn` of the order of gathers, and of the units
    /// ahead in each of `passes` passes beside each other, unless they have started. Returns the
    /// event for which the unit waits.
    pub(super) fn gather(
        &mut self,
        order: &Order,
        turn: Option<usize>,
        passes: usize,
    ) -> Result<Option<u32>, TrainingError> {
        let Some(turn) = turn else {
            return Ok(None);
        };
        let ahead = self.training.practice.prefetch.unwrap_or(1) as usize * passes;
        while self.gathered.len() <= turn + ahead {
            let Some(&unit) = order.gathers.get(self.gathered.len()) else {
                break;
            };
            let unit = self.stage.units[unit];
            self.gather_parameters(GroupKind::Data, unit.dense)?;
            self.gather_parameters(GroupKind::ExpertData, unit.expert)?;
            self.gathered.push(self.replicas);
        }
        Ok(self.gathered[turn])
    }

    /// Gathers the parameters of all buckets after the optimizer's step, unless the next iteration
    /// gathers them.
    pub(super) fn gather_at_end(&mut self) -> Result<(), TrainingError> {
        let sharding = self.training.sharding;
        let once = [Sharding::Optimizer, Sharding::Gradients].contains(&sharding);
        if !once || self.training.practice.prefetch.is_some() {
            return Ok(());
        }
        let stage = self.stage;
        let parameters = |bucket: &Bucket| bucket.bytes.get() / self.training.gradient_bytes;
        let dense = stage.dense.iter().map(parameters);
        let expert = stage.expert.iter().map(parameters);
        let dense = dense.map(|count| (GroupKind::Data, count));
        let gathered: Vec<(GroupKind, u64)> = dense
            .chain(expert.map(|count| (GroupKind::ExpertData, count)))
            .collect();
        for (group, count) in gathered {
            self.gather_parameters(group, count)?;
        }
        Ok(())
    }

    fn gather_parameters(
        &mut self,
        group: GroupKind,
        parameters: u64,
    ) -> Result<(), TrainingError> {
        let ranks = u64::from(self.training.groups.size(group));
        let block = (VALUE * parameters).div_ceil(ranks);
        self.among_replicas(group, CollectiveKind::AllGather, block)
    }
}
