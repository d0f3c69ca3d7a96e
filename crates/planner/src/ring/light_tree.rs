//! Broadcasts along light trees, on rings with multicast.

use crate::selection::contest::{Contender, Made};
use crate::{
    OnMachine, Planned, Planner, PlannerError, Question, Scope, ensure, ring::relay_tree::multicast,
};
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_plan::collective::CollectiveKind;

/// The planner of light trees.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("pieces", "chunks that the vector is cut into")
            .range("1 to 8192")
            .default("1"),
    ],
    ..Planner::new(
        NAME,
        "Light tree",
        &[CollectiveKind::Broadcast],
        "Light that every rank on its way takes a share of, on rings with multicast",
        "opticoll",
        Scope::Rings(OnMachine::new(plan, contenders)),
    )
};

/// The planner's name.
pub(crate) const NAME: &str = "light_tree";

/// More pieces than that are more than any two directions have channels.
const MOST_PIECES: u32 = 1 << 13;

/// Broadcasts of the whole vector and of as many pieces as fill one direction, or both.
fn contenders<'a>(
    question: &Question<'a>,
    ring: &'a WdmRing,
) -> Result<Vec<Contender<'a>>, PlannerError> {
    if ring.ranks < 2 || !ring.multicast {
        return Ok(Vec::new());
    }
    let mut contenders = Vec::new();
    for pieces in [1, ring.channels(), 2 * ring.channels()] {
        let transfers = u64::from(pieces) * u64::from(ring.ranks);
        let size = question.size.get().max(1);
        if transfers > question.most_transfers || u64::from(pieces) > size {
            continue;
        }
        let least = question.least()?;
        let spec = Spec::new(NAME).with("pieces", pieces);
        let question = *question;
        contenders.push(Contender {
            name: spec.to_string(),
            slots: 1,
            least,
            estimate: least,
            transfers,
            make: Box::new(move |_| Ok(Made::from(plan(&spec, &question, ring)?.plan))),
        });
    }
    Ok(contenders)
}

fn plan(spec: &Spec, question: &Question<'_>, ring: &WdmRing) -> Result<Planned, PlannerError> {
    let reason = "its ranks take no share of passing light; multicast=drop_and_continue lets them";
    ensure(ring.multicast, NAME, ring.ranks, reason)?;
    let pieces = spec.count("pieces", 1, MOST_PIECES)?.unwrap_or(1);
    let collective = question.collective.with_pieces(pieces)?;
    let plan = multicast::broadcast(ring, collective, NAME);
    let mut plan = plan.ok_or(PlannerError::CutOff)?;
    plan.algorithm = spec.to_string();
    Ok(plan.into())
}
