//! Record of the simulator `bulk_synchronous`.

use super::fluid::has_links;
use crate::bulk_synchronous;
use crate::timing_model::Simulator;

pub(super) const RECORD: Simulator = Simulator {
    in_network: true,
    runs_steps: true,
    run: Some(|case| bulk_synchronous::simulate(case.plan, case.size, case.method)),
    rule: |_, _| "step by step".into(),
    ..Simulator::new(
        "bulk_synchronous",
        "Steps one after the other; latency and the most loaded link determine the time of a \
        step",
        "Valiant, A bridging model for parallel computation, CACM 1990; the cost of a schedule in \
         Cai et al., SCCL, PPoPP 2021, with loads of links",
        |fabric, _| has_links(fabric),
    )
};
