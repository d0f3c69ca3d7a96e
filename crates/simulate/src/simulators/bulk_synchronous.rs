//! Record of the simulator `bulk_synchronous`.

use super::fluid::has_links;
use crate::bulk_synchronous;
use crate::method::Simulator;

pub(super) const RECORD: Simulator = Simulator {
    run: Some(|case| bulk_synchronous::simulate(case.plan, case.size, case.method.step_overhead)),
    rule: |_, _| "step by step".into(),
    ..Simulator::new(
        "bulk_synchronous",
        "Steps one after the other, each as long as latency and the most loaded links of its \
         messages",
        "Valiant, A bridging model for parallel computation, CACM 1990; the cost of a schedule in \
         Cai et al., SCCL, PPoPP 2021, with loads of links",
        |fabric, _| has_links(fabric),
    )
};
