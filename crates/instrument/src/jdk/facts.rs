//! All rows of all tables as one list: the methods of the JDK that they name.
//!
//! `facts.txt` has a line for each row, with the versions of the JDK that have such a method. A test reads the classes
//! of the JDKs, writes the file, and compares it from then on (`closed_world_tests.rs`).

use crate::jdk::{
    agents, hidden, intrinsics, io, leaf_methods, recorder, roles, untracked_calls, vm_calls,
};

/// For each fact: the table, the class, the method, and the JDKs that have it.
pub const FACTS: &str = include_str!("facts.txt");

/// A method that a table names. Class and method are patterns; `*` at the end makes a prefix.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct JdkFact {
    pub table: &'static str,
    pub class: String,
    /// A name, optionally with its descriptor.
    pub method: String,
}

/// Returns the rows of all tables, sorted.
pub fn all_facts() -> Vec<JdkFact> {
    let mut facts = Vec::new();
    let mut add = |table, class: &str, method: &str| {
        facts.push(JdkFact {
            table,
            class: class.into(),
            method: method.into(),
        });
    };
    let entered = vm_calls::METHODS.iter().chain(&vm_calls::JVMCI);
    for (class, method) in entered.chain(&vm_calls::ONLY_ENTERED) {
        add("vm_calls", class, method);
    }
    for (class, method) in &vm_calls::FINALIZABLE {
        add("vm_calls", class, method);
    }
    for (class, method) in &recorder::CALLED {
        add("recorder", class, method);
    }
    for (class, methods) in &leaf_methods::LEAVES {
        for method in methods.unwrap_or(&["*"]) {
            add("leaves", class, method);
        }
    }
    for class in &untracked_calls::CLASSES {
        add("quiet", class, "*");
    }
    for (class, methods) in &untracked_calls::METHODS {
        for method in *methods {
            add("quiet", class, method);
        }
    }
    for intrinsic in &intrinsics::INTRINSICS {
        let method = format!("{}{}", intrinsic.name, intrinsic.descriptor);
        add("intrinsics", intrinsic.class, &method);
    }
    for (class, method) in &roles::CALLED_BY_UNSAFE {
        add("roles", class, method);
    }
    for (class, method) in &roles::CUSTOMIZING {
        add("roles", class, method);
    }
    for method in &roles::MOUNTING {
        add("roles", "java/lang/Thread", method);
    }
    for (class, methods) in &hidden::HIDDEN {
        for method in *methods {
            add("hidden", class, method);
        }
    }
    for operation in &io::OPERATIONS {
        let method = format!("{}{}", operation.name, operation.descriptor);
        add("io", operation.owner, &method);
    }
    for method in ["transform", agents::RUNS] {
        add("agents", agents::IMPLEMENTATION, method);
    }
    facts.sort();
    facts.dedup();
    facts
}

impl JdkFact {
    /// Whether the fact applies to this method.
    pub fn matches_method(&self, class: &str, method: &str, descriptor: &str) -> bool {
        let owns = match self.class.strip_suffix('*') {
            Some(prefix) => class.starts_with(prefix),
            None => self.class == class,
        };
        owns && match self.method.strip_suffix('*') {
            Some(prefix) => method.starts_with(prefix),
            None => self
                .method
                .strip_prefix(method)
                .is_some_and(|rest| rest.is_empty() || rest == descriptor),
        }
    }
}
