//! Option `reach`: maximum number of links of a lightpath, or the rate of each length.

use crate::fabric::FabricError;
use opticoll_base::names::terminal_text;
use opticoll_base::spec::{Spec, whole_number};
use opticoll_base::units::{Rate, UnitError};

/// Maximum number of links of a lightpath, and pairs (number of links, rate) in ascending order.
type Reach = (Option<u32>, Vec<(u32, Rate)>);

/// Parses `8`, or `8@100Gb/s+2@200Gb/s`.
pub(super) fn read(spec: &Spec) -> Result<Reach, FabricError> {
    let refuse = |problem: String| spec.refuse("reach", problem);
    let Some(text) = spec.option("reach") else {
        return Ok((None, Vec::new()));
    };
    if !text.contains(['+', '@']) {
        return Ok((spec.count("reach", 1, u32::MAX)?, Vec::new()));
    }
    let mut rates = Vec::new();
    for item in text.split('+') {
        let shown = || terminal_text(item.trim());
        let (links, rate) = item.split_once('@').ok_or_else(|| {
            refuse(format!(
                "`{}` has no rate; write 8@100Gb/s, for example",
                shown()
            ))
        })?;
        let links = whole_number(links.trim()).filter(|&links: &u32| links > 0);
        let links = links.ok_or_else(|| {
            refuse(format!(
                "`{}` does not begin with a number of links",
                shown()
            ))
        })?;
        let rate = rate.trim().parse::<Rate>();
        rates.push((
            links,
            rate.map_err(|error: UnitError| refuse(error.to_string()))?,
        ));
    }
    rates.sort_unstable();
    for pair in rates.windows(2) {
        let [(shorter, faster), (longer, slower)] = [pair[0], pair[1]];
        if shorter == longer {
            return Err(refuse(format!("has two rates for {longer} links")).into());
        }
        if slower >= faster {
            let problem = format!(
                "{longer} links have {slower}, and {shorter} links have {faster}; the rate of \
                 longer lightpaths must be lower"
            );
            return Err(refuse(problem).into());
        }
    }
    Ok((rates.last().map(|&(links, _)| links), rates))
}

/// Formats a reach such that [`read`] parses it, the greatest length first.
pub(super) fn print((reach, rates): &Reach) -> Option<String> {
    if rates.is_empty() {
        return reach.map(|links| links.to_string());
    }
    let items = rates.iter().rev();
    let items: Vec<String> = items
        .map(|(links, rate)| format!("{links}@{rate}"))
        .collect();
    Some(items.join("+"))
}
