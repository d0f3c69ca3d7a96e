use opticoll::{algorithm, collective::*, fabric::Fabric, route, simulate, verify, wavelength};
use std::time::Instant;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let fabric = Fabric::parse(&args[1]).unwrap();
    let kind: CollectiveKind = args[2].parse().unwrap();
    let t = Instant::now();
    let c = Collective::new(kind, fabric.ranks()).unwrap();
    let s = algorithm::build(&args[3].parse().unwrap(), c, &fabric).unwrap();
    println!(
        "build {:?} {} transfers {} steps",
        t.elapsed(),
        s.len(),
        s.steps()
    );
    let Fabric::WdmRing(ring) = &fabric;
    let d = route::shortest_arcs(&s, ring);
    println!("route {:?}", t.elapsed());
    let a = wavelength::Assignment::parse(args.get(4).map_or("auto", |s| s)).unwrap();
    let p = wavelength::assign(s, d, &fabric, a, args[3].clone()).unwrap();
    println!(
        "assign {:?} slots {} per step {:?} claim {:?}",
        t.elapsed(),
        p.slots(),
        p.step_slots
            .iter()
            .map(|r| r.len())
            .take(12)
            .collect::<Vec<_>>(),
        p.schedule.claims.paper_steps
    );
    let v = verify::verify(&p);
    println!("verify {:?} {} violations", t.elapsed(), v.len());
    for x in v.iter().take(5) {
        println!("  {}", x.sentence);
    }
    for policy in simulate::Policy::ALL {
        let o = simulate::simulate(&p, "4MiB".parse().unwrap(), policy, "circuit").unwrap();
        println!(
            "{} {} recon {} util {:.3} {:?}",
            policy.name(),
            o.time,
            o.reconfigurations,
            o.utilisation,
            t.elapsed()
        );
    }
    println!(
        "configurations {} {:?}",
        simulate::circuit::configurations(&p),
        t.elapsed()
    );
    let text = opticoll::plan::text::write(&p);
    println!(
        "text {} bytes {} lines {:?}",
        text.len(),
        text.lines().count(),
        t.elapsed()
    );
    let q = opticoll::plan::text::read(&text).unwrap();
    println!("read {:?}", t.elapsed());
    if p.len() < 3_000_000 {
        let sorted = |p: &opticoll::plan::Plan| {
            let mut v: Vec<_> = p.lightpaths().collect();
            v.sort();
            v
        };
        assert!(sorted(&p) == sorted(&q));
    }
}
