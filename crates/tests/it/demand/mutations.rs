//! Plans that are wrong in one place: each is rejected, for the reason that it is wrong.

use super::*;
use opticoll::family::circuit_switch::SwitchedLight;
use opticoll::verify::ViolationKind;

/// A plan of single and cut blocks on two planes, as text.
fn written() -> String {
    let fabric = Fabric::parse("circuit_switch:ranks=6,ports=2,planes=2").unwrap();
    let collective = demanding(generated("random:seed=5", 6));
    let plan = proved(
        "decomposition:longest=1KiB",
        &fabric,
        collective,
        1 << 13,
        &Method::default(),
    );
    text::write(&plan)
}

/// What the verifier says of a text.
fn found(text: &str) -> Vec<ViolationKind> {
    let plan = text::read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify(&plan).iter().map(|one| one.kind).collect()
}

/// The text with each transfer written for itself.
fn one_by_one(text: &str) -> Vec<String> {
    let plan = text::read(text).unwrap();
    let mut lines: Vec<String> = Vec::new();
    let head = text.lines().take_while(|line| !line.starts_with("slot"));
    lines.extend(head.map(str::to_owned));
    for slot in 0..plan.slots() {
        lines.push(format!("slot {slot}"));
        for index in (0..plan.len()).filter(|index| plan.slot[*index] == slot) {
            let transfer = plan.schedule.transfer(index);
            let light = SwitchedLight::from(plan.light[index]);
            let (out, into) = (light.source_port, light.destination_port);
            let (source, destination) = (transfer.source, transfer.destination);
            lines.push(format!(
                "copy {} {source}>{destination} {out}.{into}",
                transfer.chunk
            ));
        }
    }
    lines.push(format!("end {}", plan.len()));
    assert!(found(&lines.join("\n")).is_empty());
    lines
}

#[test]
fn a_chunk_that_is_not_sent_is_missing() {
    let lines = one_by_one(&written());
    let (mut removed, count) = (
        lines.clone(),
        lines.iter().filter(|line| line.starts_with("copy")).count(),
    );
    let place = lines
        .iter()
        .position(|line| line.starts_with("copy"))
        .unwrap();
    removed.remove(place);
    *removed.last_mut().unwrap() = format!("end {}", count - 1);
    assert_eq!(found(&removed.join("\n")), [ViolationKind::Missing]);
}

#[test]
fn a_chunk_that_goes_elsewhere_is_missing() {
    for line in one_by_one(&written())
        .iter()
        .filter(|line| line.starts_with("copy"))
    {
        let (before, rest) = line.split_once('>').unwrap();
        let (destination, light) = rest.split_once(' ').unwrap();
        let source: u32 = before.rsplit(' ').next().unwrap().parse().unwrap();
        let destination: u32 = destination.parse().unwrap();
        let other = (0..6)
            .find(|rank| *rank != source && *rank != destination)
            .unwrap();
        let wrong = format!("{before}>{other} {light}");
        let text = one_by_one(&written())
            .join("\n")
            .replacen(line.as_str(), &wrong, 1);
        assert!(found(&text).contains(&ViolationKind::Missing), "{wrong}");
    }
}

#[test]
fn a_port_has_one_circuit_in_a_slot() {
    let lines = one_by_one(&written());
    // Transfers of slot 1 in slot 0, over ports that are in use there.
    let second = lines.iter().position(|line| line == "slot 1").unwrap();
    let places = (second + 1..lines.len()).take_while(|place| lines[*place].starts_with("copy"));
    let with_moved = places.map(|place| {
        let mut moved = lines.clone();
        let transfer = moved.remove(place);
        moved.insert(second, transfer);
        found(&moved.join("\n"))
    });
    let kinds: Vec<Vec<ViolationKind>> = with_moved.collect();
    let in_use = |kinds: &Vec<ViolationKind>| kinds.contains(&ViolationKind::Ports);
    assert!(kinds.iter().any(in_use), "{kinds:?}");
}

#[test]
fn another_demand_is_not_what_the_plan_carries_out() {
    let lines = one_by_one(&written());
    let demand = lines
        .iter()
        .position(|line| line.starts_with("demand 0"))
        .unwrap();
    // One pair more: the numbers of all chunks after it change.
    let mut more = lines.clone();
    let words: Vec<&str> = lines[demand].split(' ').collect();
    more[demand] = [&words[..2], &["0=7"], &words[2..]].concat().join(" ");
    assert!(!found(&more.join("\n")).is_empty());
    for (line, problem) in [
        ("demand 0 1", "DESTINATION"),
        ("demand 0 1=0", "a byte or more"),
        ("demand 0 9=1", "6 ranks"),
        ("demand 0 1=2 1=3", "increase"),
        ("demand 0", "the line ends"),
        ("demand 0 1=18446744073709551615 2=1", "2^64"),
        ("demand 0 1=x", "no number"),
    ] {
        let mut wrong = lines.clone();
        wrong[demand] = line.to_owned();
        let error = text::read(&wrong.join("\n")).unwrap_err();
        assert_eq!(error.line, 1 + demand, "{error}");
        assert!(
            error.problem.contains(problem) || problem == "DESTINATION",
            "{error}"
        );
    }
}
