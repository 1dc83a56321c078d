//! Options of `lucce attach`: the agent's options that work without hooks, and `alloc=` and `tell=`.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use lucce_instrument::EventKindSet;
use lucce_instrument::kinds::KindConflict;

use crate::options::{AgentOptions, EventSelection, parse_size};

/// HotSpot's default sampling interval in bytes.
pub const DEFAULT_INTERVAL: u32 = 512 << 10;

/// Options that work without hooks. All others are rejected.
const KEYS: [&str; 10] = [
    "ctl",
    "encoding",
    "events",
    "exclude",
    "include",
    "instrument",
    "limit",
    "log",
    "out",
    "verify",
];

/// The options of `lucce attach`.
#[derive(Debug)]
pub struct AttachOptions {
    pub options: AgentOptions,
    /// Sampling interval in bytes. 0: every allocation.
    pub sampling_interval: u32,
}

impl AttachOptions {
    /// Parses the options.
    ///
    /// # Errors
    /// One line that names the option.
    pub fn parse(text: &str) -> Result<AttachOptions, String> {
        let mut interval = None;
        let mut rest = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("alloc", value)) => interval = Some(parse_interval(value)?),
                Some(("tell", _)) => {}
                _ => rest.push(part),
            }
        }
        // The JVM's terminal belongs to another program.
        if !rest.iter().any(|part| part.starts_with("log=")) {
            rest.push("log=warn");
        }
        let options = AgentOptions::parse(&rest.join(",")).map_err(|e| e.to_string())?;
        let needs_hooks = |part: &&&str| {
            let key = part.split_once('=').map_or("", |(key, _)| key);
            !KEYS.contains(&key)
        };
        if let Some(option) = rest.iter().find(needs_hooks) {
            return Err(format!(
                "{option} needs the agent from the start (-agentpath)"
            ));
        }
        check_events(&options.events)?;
        let interval = choose_interval(interval, options.events.leak_interval())?;
        Ok(AttachOptions {
            options,
            sampling_interval: interval,
        })
    }
}

/// Rejects events that a running JVM does not report without hooks.
fn check_events(events: &EventSelection) -> Result<(), String> {
    let nothing = (events.kinds() == EventKindSet::default())
        .then_some("events=none: there is nothing to attach for");
    match events.find_refusal(KindConflict::Attach).or(nothing) {
        Some(why) => Err(why.into()),
        None => Ok(()),
    }
}

/// The VM has one sampling interval, for counted allocations and followed objects.
fn choose_interval(alloc: Option<u32>, leak: Option<u32>) -> Result<u32, String> {
    match (alloc, leak) {
        (Some(alloc), Some(leak)) if alloc != leak => Err(
            "alloc= and events=leak want samples of different sizes, and the JVM takes them of one: leave \
             alloc= out and say events=alloc+leak=64k"
                .into(),
        ),
        _ => Ok(alloc.or(leak).unwrap_or(DEFAULT_INTERVAL)),
    }
}

/// `all`, or a sampling interval in bytes.
fn parse_interval(value: &str) -> Result<u32, String> {
    if value == "all" {
        return Ok(0);
    }
    let bytes = parse_size("alloc", value).map_err(|e| format!("{e}, or all"))?;
    match u32::try_from(bytes)
        .ok()
        .filter(|n| i32::try_from(*n).is_ok() && *n > 0)
    {
        Some(bytes) => Ok(bytes),
        None => Err(format!(
            "option alloc={value} is malformed: from 1 to 2147483647 bytes, or all"
        )),
    }
}

/// Writes why the agent does not stay to the existing file that `tell=` names.
pub fn write_refusal(text: &str, message: &str) {
    let file = text.split(',').find_map(|part| part.strip_prefix("tell="));
    let Some(file) = file else { return };
    let opened = std::fs::OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(file);
    // The JVM's standard error shows the message as well.
    let _ = opened.and_then(|mut file| file.write_all(message.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::LogLevel;
    use lucce_instrument::kinds::LOCK;

    #[test]
    fn allocations_are_sampled_unless_all_are_wanted() {
        let of = |text| AttachOptions::parse(text).unwrap().sampling_interval;
        assert_eq!(of(""), 512 << 10);
        assert_eq!(of("alloc=all,verify=1"), 0);
        assert_eq!(of("alloc=64k,tell=/x"), 64 << 10);
        assert_eq!(
            AttachOptions::parse("").unwrap().options.log,
            LogLevel::Warn
        );
        assert_eq!(of("events=leak=16k"), 16 << 10);
        assert_eq!(of("events=alloc+leak"), 512 << 10);
        assert_eq!(of("events=alloc+leak=0,alloc=all"), 0);
        let locks = AttachOptions::parse("events=lock,include=a.*").unwrap();
        assert!(locks.options.events == EventSelection::from_kinds(&[&LOCK]));
    }

    #[test]
    fn what_needs_hooks_is_refused() {
        for bad in [
            "record=calls",
            "tracking=cct",
            "events=none",
            "events=exception",
            "events=alloc+thread",
            "events=io",
            "events=call",
            "events=alloc+leak=64k,alloc=all",
            "events=leak=lots",
            "events=alloc=all",
            "include=a..b",
            "alloc=0",
            "alloc=lots",
            "alloc=9g",
            "evnts=alloc",
            "record-limit=5m",
        ] {
            assert!(AttachOptions::parse(bad).is_err(), "{bad}");
        }
    }
}
