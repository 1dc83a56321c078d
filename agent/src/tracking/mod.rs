//! How a thread keeps the contexts of its frames.
//!
//! The agent keeps them lazily: frames publish their call sites, and an event computes its context from the graph. The lab's
//! agent (feature `lab`) also has other ways, for comparison. Both have the types below, with equal methods.

#[cfg(not(feature = "lab"))]
mod lazy_tracking;

#[cfg(feature = "lab")]
pub use crate::comparison::{
    LabInputs as TrackingInputs, LabThreadTracking as ThreadTracking,
    LabTracking as ContextTracking, RecordedFrame, ThreadCallRecord,
};
#[cfg(not(feature = "lab"))]
pub use lazy_tracking::{ContextTracking, ThreadTracking, TrackingInputs};

use crate::options::AgentOptions;

/// The library that has what the options of [`refuse_lab_options`] select.
const LAB_LIBRARY: &str = "liblucce-lab.so";

/// Refuses options that only the lab's agent can follow.
///
/// # Errors
/// One line for the user: the option, and the library to load.
pub fn refuse_lab_options(options: &AgentOptions) -> Result<(), String> {
    match options.find_lab_setting() {
        Some(option) if !cfg!(feature = "lab") => Err(format!(
            "{option} needs {LAB_LIBRARY}: load it in place of this library"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tracking_tests {
    use super::*;

    #[test]
    fn only_the_lab_follows_its_options() {
        let answer = |text| refuse_lab_options(&AgentOptions::parse(text).unwrap());
        assert_eq!(answer("events=alloc,stream=on,verify=1"), Ok(()));
        for (text, option) in [
            ("tracking=cct", "tracking=cct"),
            ("tracking=paper", "tracking=paper"),
            ("calls=on", "calls=on"),
            ("encoding=static,graph=a.lucce", "encoding=static"),
        ] {
            let expected = match cfg!(feature = "lab") {
                true => Ok(()),
                false => Err(format!(
                    "{option} needs liblucce-lab.so: load it in place of this library"
                )),
            };
            assert_eq!(answer(text), expected);
        }
    }
}
