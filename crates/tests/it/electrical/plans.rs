//! Every algorithm that needs no light, proved on electrical fabrics.

use opticoll::algorithms;
use opticoll::fabric::Fabric;
use opticoll::plan::{fold, text};
use opticoll::simulate;
use opticoll::simulate::Method;
use opticoll::units::Bytes;
use opticoll::verify::verify;

use super::{FABRICS, proved};

#[test]
fn every_algorithm_that_needs_no_light_is_proved_on_every_fabric_and_read_back() {
    for fabric in FABRICS {
        let fabric = Fabric::parse(fabric).unwrap();
        let mut planned = 0;
        for record in algorithms::records_for(&fabric) {
            if matches!(record.name, "one_stage" | "wrht") {
                continue;
            }
            let plan = proved(record.collective, record.name, &fabric);
            assert!(plan.light.is_empty());
            assert_eq!(plan.slots() as usize, plan.schedule.steps());
            assert_eq!(fold(&plan), None);
            let written = text::write(&plan);
            assert!(!written.contains("cw"), "{written}");
            let read = text::read(&written).unwrap();
            assert_eq!(text::write(&read), written);
            assert_eq!(verify(&read), [], "{}", record.name);
            planned += 1;
        }
        assert!(planned > 40, "{planned}");
    }
}

#[test]
fn any_number_of_ranks_will_do() {
    for ranks in 1..=20 {
        let fabric = Fabric::parse(&format!("crossbar:ranks={ranks}")).unwrap();
        for record in algorithms::records_for(&fabric) {
            let lit = matches!(record.name, "one_stage" | "wrht");
            if !lit && (record.accepts)(ranks).is_ok() {
                let plan = proved(record.collective, record.name, &fabric);
                simulate::run(&plan, Bytes::new(1000), &Method::default()).unwrap();
            }
        }
    }
}
