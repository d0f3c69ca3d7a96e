//! Properties of whole plans, beside the times of their single messages.

use opticoll::collective::CollectiveKind;
use opticoll::fabric::Fabric;
use opticoll::simulate;
use opticoll::simulate::TimingModel;
use opticoll::simulate::fluid::{FlowOptions, MessageTime, StartRule, message_times};
use opticoll::simulate::outcome::Flowing;
use opticoll::units::Bytes;

use crate::electrical::proved;

/// The simulator replays most steps of a ring, and no step of a recursive doubling.
#[test]
fn steps_and_path_of_a_plan_are_those_of_its_messages() {
    let fabric = Fabric::parse("fat_tree:down=4x4,up=1x2,links=1x1,latency=100ns").unwrap();
    for (kind, algorithm) in [
        (CollectiveKind::AllGather, "ring"),
        (CollectiveKind::AllReduce, "ring"),
        (CollectiveKind::AllGather, "recursive_doubling"),
        (CollectiveKind::AllReduce, "halving_doubling"),
        (CollectiveKind::AllToAll, "bruck"),
        (CollectiveKind::Broadcast, "chain:segments=40"),
    ] {
        let plan = proved(kind, algorithm, &fabric);
        for start in StartRule::ALL {
            let case = format!("{kind} by {algorithm}, {start:?}");
            let size = Bytes::new(1_000_003);
            let method = TimingModel {
                start: Some(start),
                ..TimingModel::default()
            };
            let outcome = simulate::run(&plan, size, &method).unwrap();
            let messages = message_times(&plan, size, start, &FlowOptions::default()).unwrap();
            for step in 0..plan.schedule.steps() {
                let range = plan.schedule.step(step);
                let own = messages
                    .iter()
                    .filter(|message| range.contains(&message.transfer));
                let first = own.clone().map(|message| message.start).min();
                let last = own.clone().map(|message| message.end).max();
                let found = (outcome.slots.start[step], outcome.slots.end[step]);
                assert_eq!((Some(found.0), Some(found.1)), (first, last), "{case}");
                let lightpaths = outcome.slots.lightpaths[step];
                assert_eq!(lightpaths, own.count() as u64, "{case}");
            }
            let path = &outcome.critical_path;
            assert_eq!(path.last().unwrap().end, outcome.time, "{case}");
            for one in path {
                let same = |message: &&MessageTime| message.transfer == one.transfer;
                let message = messages.iter().find(same).unwrap();
                let times = (message.start, message.end);
                assert_eq!((one.start, one.end), times, "{case}");
            }
            let flowing = outcome.details.get::<Flowing>().unwrap();
            assert_eq!(flowing.critical_path.bottleneck.len(), path.len(), "{case}");
            // What bounds a message is on its way.
            for (one, link) in path.iter().zip(&flowing.critical_path.bottleneck) {
                let (source, destination) = plan.schedule.ends(one.transfer);
                let network = fabric.network().unwrap();
                let mut route = Vec::new();
                network.route(source, destination, &mut route);
                assert!(route.contains(&link.unwrap()), "{case}");
            }
        }
    }
}
