//! What the present VM supports: its version, its samples, and messages about what is missing.

use lucce_instrument::jdk::{TESTED_JDKS, closest_tested_jdk};
use lucce_jvmti::{JvmError, Jvmti};

use crate::options::AgentOptions;

/// Checks the VM's Java version.
///
/// # Errors
/// The agent does not know the JDK's names and what its VM does.
pub fn check_jdk_supported(jvmti: Jvmti) -> Result<(), String> {
    check_feature_supported(jvmti.java_version().map_err(unsupported_message("JVMTI"))?)
}

/// The names of JDK 11 changed in JDK 12 to 16, which were not examined.
fn check_feature_supported(feature: u32) -> Result<(), String> {
    match feature {
        11 | 17.. => Ok(()),
        _ => Err(format!(
            "this is JDK {feature}, and lucce needs 11, or 17 or later"
        )),
    }
}

const NEWEST: u32 = TESTED_JDKS[TESTED_JDKS.len() - 1];
/// On a newer JDK, every N-th event is compared with the VM's own trace.
const SAMPLE: u32 = 1000;

/// If the JDK is not among the tested ones, the program runs, and known facts are compared with the present JDK.
pub fn adapt_to_untried_jdk(jvmti: Jvmti, options: &mut AgentOptions) {
    if let Ok(feature) = jvmti.java_version() {
        adapt_to_untried_feature(feature, options);
    }
}

fn adapt_to_untried_feature(feature: u32, options: &mut AgentOptions) {
    if options.facts || !TESTED_JDKS.contains(&feature) {
        options.compared_jdk = Some(closest_tested_jdk(feature));
    }
    if feature <= NEWEST {
        return;
    }
    if options.verify == 0 {
        options.verify = SAMPLE;
    }
    options.add_warning(format!(
        "JDK {feature} is newer than {NEWEST}, the newest that lucce was tried on: what differs from what lucce knows is told, \
         and one event in {} is compared with the JVM's own stack trace; `lucce check` tells whether one was wrong",
        options.verify
    ));
}

/// Sets the sampling interval in bytes before the VM creates its first thread.
///
/// The VM draws a thread's distance to its first sample when it creates the thread. A draw with the VM's own interval of 512 KB
/// would hide the beginning of the main thread. `None`: there are no samples.
pub fn set_sampling_interval_early(jvmti: Jvmti, interval: Option<u32>) {
    if let Some(interval) = interval {
        // If the VM refuses, it refuses again when sampling starts, and the user gets a message.
        let _ = jvmti.set_sampling_interval(interval);
    }
}

/// The message if the VM does not let this agent sample allocations.
pub fn sampling_taken_message(JvmError(code): JvmError) -> String {
    format!(
        "events=leak, alloc=SIZE: another agent samples allocations, and the VM lets only one (error {code})"
    )
}

/// The message if the VM does not support `what`.
pub fn unsupported_message(what: &'static str) -> impl Fn(JvmError) -> String {
    move |JvmError(code)| format!("this VM does not support {what} (error {code})")
}

#[cfg(test)]
mod vm_support_tests {
    use super::*;

    #[test]
    fn jdks_with_unknown_names_are_refused() {
        let refused = [8, 10, 12, 16].map(|feature| check_feature_supported(feature).unwrap_err());
        assert_eq!(
            refused[3],
            "this is JDK 16, and lucce needs 11, or 17 or later"
        );
        for feature in TESTED_JDKS.into_iter().chain([18, 26]) {
            assert_eq!(check_feature_supported(feature), Ok(()));
        }
    }

    #[test]
    fn jdks_that_were_not_tried_are_compared() {
        let of = |feature, text| {
            let mut options = AgentOptions::parse(text).unwrap();
            adapt_to_untried_feature(feature, &mut options);
            (options.compared_jdk, options.verify, options.warnings)
        };
        for tried in TESTED_JDKS {
            assert_eq!(of(tried, "log=none"), (None, 0, Vec::new()));
            assert_eq!(of(tried, "log=none,facts=on").0, Some(tried));
        }
        assert_eq!(of(19, "log=none"), (Some(17), 0, Vec::new()));
        let (like, verify, warnings) = of(NEWEST + 1, "log=none");
        assert_eq!((like, verify), (Some(NEWEST), SAMPLE));
        assert!(
            warnings[0].starts_with("JDK 26 is newer than 25"),
            "{warnings:?}"
        );
        assert_eq!(of(NEWEST + 1, "log=none,verify=7").1, 7);
    }
}
