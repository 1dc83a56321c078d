//! Encodings by their names.

use lucce_callgraph::encodings::{
    Dacce, Encoding, FastMap, Hybrid, LuccePaper, Numbering, Pcc, Pcce, Rules, Tuning, Versioned,
};
use lucce_callgraph::{Layout, Policy};

use crate::Survey;

/// All of them, ours first.
pub const NAMES: [&str; 9] = [
    "lucce",
    "adaptive",
    "static",
    "cct",
    "lucce-paper",
    "pcce",
    "pcce-hybrid",
    "dacce",
    "pcc",
];

/// A fresh encoding for the surveyed recording. The static ones know all its calls in advance, as if
/// a run with the same input had been recorded before.
#[must_use]
pub fn make(name: &str, survey: &Survey) -> Option<Box<dyn Encoding>> {
    let layout = Layout::DEFAULT;
    let profile = &survey.profile;
    Some(match name {
        "lucce" => Box::new(Versioned::new("lucce", layout, Policy::LUCCE)),
        "adaptive" => Box::new(Versioned::new("adaptive", layout, Policy::ADAPTIVE)),
        "static" => Box::new(planned(layout, survey)),
        "cct" => Box::new(Versioned::new("cct", layout, Policy::CCT)),
        "lucce-paper" => Box::new(LuccePaper::new(63)),
        "pcce" => Box::new(Pcce::new(profile, Pcce::BITS, false)),
        "pcce-hybrid" => {
            let depth = FastMap::default();
            Box::new(Hybrid::new(profile, Pcce::BITS, false, depth))
        }
        "dacce" => Box::new(Dacce::new(Tuning::DEFAULT)),
        "pcc" => Box::new(Pcc::new(32)),
        _ => return None,
    })
}

fn planned(layout: Layout, survey: &Survey) -> Versioned {
    let known: Vec<_> = [&survey.profile[..], &survey.event_profile[..]].concat();
    let plan = Numbering::of(&known, &Rules::planned(layout, &Policy::STATIC));
    Versioned::planned("static", layout, Policy::STATIC, plan)
}
