//! Encodings by their names.

use lucce_callgraph::numbering::{AcyclicNumbering, FastMap, NumberingRules};
use lucce_callgraph::{ContextLayout, EncodingPolicy};
use lucce_encodings::{
    ContextEncoding, DacceEncoding, DacceTuning, LuccePaperEncoding, PccEncoding, PcceEncoding,
    PcceHybridEncoding, VersionedEncoding,
};

use crate::RecordingSurvey;

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
pub fn create_encoding(name: &str, survey: &RecordingSurvey) -> Option<Box<dyn ContextEncoding>> {
    let layout = ContextLayout::DEFAULT;
    let profile = &survey.profile;
    Some(match name {
        "lucce" => Box::new(VersionedEncoding::new(
            "lucce",
            layout,
            EncodingPolicy::LUCCE,
        )),
        "adaptive" => Box::new(VersionedEncoding::new(
            "adaptive",
            layout,
            EncodingPolicy::ADAPTIVE,
        )),
        "static" => Box::new(planned_encoding(layout, survey)),
        "cct" => Box::new(VersionedEncoding::new("cct", layout, EncodingPolicy::CCT)),
        "lucce-paper" => Box::new(LuccePaperEncoding::new(63)),
        "pcce" => Box::new(PcceEncoding::new(profile, PcceEncoding::BITS, false)),
        "pcce-hybrid" => {
            let depth = FastMap::default();
            Box::new(PcceHybridEncoding::new(
                profile,
                PcceEncoding::BITS,
                false,
                depth,
            ))
        }
        "dacce" => Box::new(DacceEncoding::new(DacceTuning::DEFAULT)),
        "pcc" => Box::new(PccEncoding::new(32)),
        _ => return None,
    })
}

fn planned_encoding(layout: ContextLayout, survey: &RecordingSurvey) -> VersionedEncoding {
    let profile: Vec<_> = [&survey.profile[..], &survey.event_profile[..]].concat();
    let plan = AcyclicNumbering::from_edges(
        &profile,
        &NumberingRules::for_base_version(layout, &EncodingPolicy::STATIC),
    );
    VersionedEncoding::with_numbering_plan("static", layout, EncodingPolicy::STATIC, plan)
}
