//! The methods of `events=call:METHODS` and `events=time:METHODS`, and what was found of them.

use std::sync::atomic::{AtomicU64, Ordering};

use lucce_bytecode::ClassFile;
use lucce_filter::MethodPattern;
use lucce_instrument::MethodInstrumentation;
use lucce_instrument::kinds::named_methods::unrecorded_reason;
use lucce_options::MethodSelection;

use crate::core::AgentCore;
use crate::memory::counter::increment_counter;
use crate::memory::locks::WatchedMutex;
use crate::options::LogLevel;

/// What was found of named methods.
#[derive(Default)]
pub struct NamedMethods {
    /// The patterns, as text, for which no class with such a method was seen yet.
    unmatched: WatchedMutex<Vec<String>>,
    /// Methods that match a pattern of several classes and are not recorded.
    unrecorded: AtomicU64,
}

impl AgentCore {
    /// Notes the patterns, of which no method was seen yet.
    pub fn expect_named_methods(&self) {
        let patterns = self.options.events.methods().iter();
        let patterns = patterns.filter(|pattern| !pattern.is_in_group());
        *self.named_methods.unmatched.lock() = patterns.map(ToString::to_string).collect();
    }

    /// Reports the named methods of a class that are not recorded. `instrumentations`: none if the class is out of scope.
    pub fn report_named_methods(
        &self,
        class: &ClassFile<'_>,
        instrumentations: Option<&[MethodInstrumentation]>,
    ) {
        let methods = self.options.events.methods();
        if methods.is_empty() || !methods.matches_class(class.name()) {
            return;
        }
        for (index, method) in class.methods().iter().enumerate() {
            let Some(named) = methods.find_use(class.name(), &method.name) else {
                continue;
            };
            self.mark_matched(methods, (class.name(), &method.name));
            let instrumentation = instrumentations.and_then(|all| all.get(index));
            let reason = match instrumentation {
                Some(instrumentation) => unrecorded_reason(method, instrumentation, named),
                None => Some("calls not counted: its class is out of scope"),
            };
            if let Some(reason) = reason {
                self.report_unrecorded(methods, (class.name(), &method.name), reason);
            }
        }
    }

    /// Notes that the class has a method that patterns match.
    pub fn mark_matched(&self, methods: &MethodSelection, (class, method): (&str, &str)) {
        let mut unmatched = self.named_methods.unmatched.lock();
        for pattern in methods
            .iter()
            .filter(|one| one.matches_method(class, method))
        {
            let text = pattern.to_string();
            unmatched.retain(|other| *other != text);
        }
    }

    /// Reports a method that is not recorded. A pattern of many classes matches many natives: those are counted only.
    pub fn report_unrecorded(
        &self,
        methods: &MethodSelection,
        (class, method): (&str, &str),
        reason: &str,
    ) {
        let mut patterns = methods.iter();
        let is_named = |pattern: &MethodPattern| {
            pattern.names_one_class() && pattern.matches_method(class, method)
        };
        match patterns.any(is_named) {
            true => self.report_skipped(class, Some(method), reason),
            false => {
                increment_counter(&self.named_methods.unrecorded);
            }
        }
    }

    /// Reports patterns without a method, and how many methods were not recorded.
    pub fn finish_named_methods(&self) {
        for pattern in self.named_methods.unmatched.lock().iter() {
            let text = format!("no method of a loaded class matches {pattern}");
            self.report_message(LogLevel::Warn, &text);
        }
        // Relaxed: a number; no other data depends on it.
        let unrecorded = self.named_methods.unrecorded.load(Ordering::Relaxed);
        if unrecorded > 0 {
            let text = format!(
                "{unrecorded} methods that match call:METHODS or time:METHODS are native or needed by the hooks, and not counted"
            );
            self.report_message(LogLevel::Warn, &text);
        }
    }
}
