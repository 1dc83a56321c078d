//! Removes frames of logging libraries: `%lucce` takes the context id deep inside the library, but a reader wants the line
//! that logged.

use lucce_decoder::{StackFrame, StackTrace};

/// The classes that take context ids for `%lucce` and for the MDC.
const CONVERTERS: [&str; 3] = [
    "io.lucce.logback.Lucce",
    "io.lucce.log4j2.Lucce",
    "io.lucce.slf4j.Lucce",
];

const LIBRARIES: [&str; 5] = [
    "ch.qos.logback.",
    "org.apache.logging.",
    "org.apache.log4j.",
    "org.apache.commons.logging.",
    "org.slf4j.",
];

/// Removes the frames up to the caller of the library. Other traces stay. The content id stays that of the whole trace, as
/// in other outputs.
pub fn remove_logging_frames(trace: &mut StackTrace) {
    let is_converted = trace
        .frames
        .first()
        .is_some_and(|frame| is_of_package(frame, &CONVERTERS));
    if !is_converted {
        return;
    }
    let own = |frame: &StackFrame| {
        !frame.is_jdk_frame()
            && !is_of_package(frame, &CONVERTERS)
            && !is_of_package(frame, &LIBRARIES)
    };
    if let Some(caller) = trace.frames.iter().position(own) {
        trace.frames.drain(..caller);
    }
}

fn is_of_package(frame: &StackFrame, names: &[&str]) -> bool {
    names.iter().any(|name| frame.class.starts_with(name))
}

#[cfg(test)]
mod logging_frames_tests {
    use super::*;
    use lucce_contentid::StackId;
    use lucce_decoder::{CodeOrigin, ContextId};

    fn left(classes: &[&str]) -> Vec<String> {
        let frame = |class: &&str| StackFrame {
            class: (*class).to_owned(),
            method: "m".into(),
            file: None,
            line: 1,
            origin: match class.starts_with("com.acme.") {
                true => CodeOrigin::Application,
                false => CodeOrigin::from_foreign_name(class),
            },
        };
        let mut trace = StackTrace {
            id: ContextId(1),
            stack: StackId::EMPTY,
            allocated: None,
            frames: classes.iter().map(frame).collect(),
        };
        remove_logging_frames(&mut trace);
        trace.frames.into_iter().map(|frame| frame.class).collect()
    }

    #[test]
    fn a_converters_trace_begins_where_the_line_was_logged() {
        let logback = "ch.qos.logback.classic.Logger";
        let converter = "io.lucce.logback.LucceConverter";
        let app = "com.acme.Shop";
        let frames = left(&[
            converter,
            logback,
            "java.util.ArrayList",
            logback,
            app,
            logback,
            app,
        ]);
        assert_eq!(frames, [app, logback, app]);
        let data = "io.lucce.log4j2.LucceContextData";
        let frames = left(&[data, "org.apache.logging.log4j.spi.AbstractLogger", app]);
        assert_eq!(frames, [app]);
    }

    #[test]
    fn other_traces_stay_as_they_are() {
        let logback = "ch.qos.logback.classic.Logger";
        assert_eq!(left(&[logback, "com.acme.Shop"]).len(), 2);
        // All frames belong to the logging library: there is no caller to name.
        assert_eq!(
            left(&[
                "io.lucce.logback.LucceConverter",
                logback,
                "java.lang.Thread"
            ])
            .len(),
            3
        );
        assert_eq!(left(&[]).len(), 0);
    }
}
