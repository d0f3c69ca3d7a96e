use opticoll::simulate::burst::*;
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let net = BurstNetwork::parse(&args[0]).unwrap();
    let texts: Vec<(&str, &str)> = args[1..].iter().map(|a| a.split_once('=').unwrap()).collect();
    let s = Settings::from_texts(texts).unwrap();
    let t = std::time::Instant::now();
    let o = simulate(&net, &Work::Random, &s, 1, |_| true).unwrap();
    println!("{:?} wall; bursts {} lost {} loss {:.4e} [{:.3e} {:.3e}] wait {} util max {:.4} wasted {:.4} causes {} {} {} hops {:?}", t.elapsed(), o.bursts, o.lost, o.loss, o.loss_low, o.loss_high, o.mean_wait,
      o.links.iter().map(|l| l.utilisation).fold(0.0, f64::max), o.links.iter().map(|l| l.wasted).fold(0.0, f64::max), o.lost_at_links, o.lost_at_converters, o.lost_at_receivers, o.by_hops);
    if s.source == Source::Poisson { println!("{:?}", erlang::fixed_point(&net, s.intensity, s.destinations).loss_between_nodes); }
}
