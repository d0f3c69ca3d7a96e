//! Plans on electrical fabrics, from the specification of the fabric to the time.

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::planner;
use opticoll::simulate::TimingModel;
use opticoll::units::Bytes;
use opticoll::verify::verify;

mod bounds;
mod bulk_synchronous;
mod in_network;
mod library;
mod refused;
pub(crate) mod times;

const FABRICS: &[&str] = &[
    "crossbar:ranks=16,rate=12.5GB/s",
    "fat_tree:down=4x4,up=1x2,rate=12.5GB/s",
    "dragonfly:terminals_per_router=2,routers_per_group=2,groups=4,global_per_router=2",
    "torus:dims=4x4",
    "mesh:dims=4x4",
    "ladder:rungs=8",
    "electrical_ring:ranks=16",
    "fully_connected:ranks=16",
];

/// Returns the verified plan of an algorithm.
pub(crate) fn proved(kind: CollectiveKind, algorithm: &str, fabric: &Fabric) -> Plan {
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let spec = algorithm.parse().unwrap();
    let method = TimingModel::default();
    let planned = planner::plan(&spec, fabric, collective, Bytes::new(4 << 20), &method);
    let plan = planned.unwrap_or_else(|error| panic!("{algorithm} on {fabric}: {error}"));
    let plan = plan.plan.into_expanded();
    let violations = verify(&plan);
    let first = violations.first().map(|violation| &violation.sentence);
    assert_eq!(first, None, "{kind} by {algorithm} on {fabric}");
    plan
}
