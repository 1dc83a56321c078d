//! Selects classes by `include` and `exclude`, with one syntax for the agent's options and for `lucce`'s commands.
//!
//! ```text
//! patterns  = pattern { "+" pattern }
//! pattern   = class name with dots; "*" stands for any characters, including dots
//! ```
//!
//! `org.h2.*` means every class whose name starts with `org.h2.`, in all packages below as well. `com.acme.Foo` means
//! that class and the classes nested in it (`com.acme.Foo$…`). A class is admitted if it matches a pattern of
//! `include`, or there is none, and matches no pattern of `exclude`.
//!
//! A pattern of methods is a pattern of classes, a dot, and a method's name with stars: `com.acme.Repo.find*`. It means
//! all methods of that name, whatever their parameters. Constructors are `<init>`.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs
)]

mod method_pattern;
mod pattern;

use std::fmt;

pub use method_pattern::{MethodPattern, MethodPatternList};

use pattern::ClassPattern;

/// What is wrong with a list of patterns: one line that names the pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatternError(String);

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PatternError {}

/// A list of patterns.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PatternList(Vec<ClassPattern>);

/// Prints the patterns as [`PatternList::parse`] reads them.
impl fmt::Display for PatternList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, pattern) in self.0.iter().enumerate() {
            let plus = if number == 0 { "" } else { "+" };
            write!(f, "{plus}{pattern}")?;
        }
        Ok(())
    }
}

impl PatternList {
    /// Parses patterns joined by `+`.
    ///
    /// # Errors
    /// A pattern is malformed.
    pub fn parse(text: &str) -> Result<PatternList, PatternError> {
        let patterns = text.split('+').map(ClassPattern::parse);
        patterns.collect::<Result<_, _>>().map(PatternList)
    }

    /// Adds the patterns of another list.
    pub fn extend(&mut self, more: PatternList) {
        self.0.extend(more.0);
    }

    /// Whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the class, `a.b.C` or `a/b/C`, matches a pattern.
    pub fn matches_class(&self, class: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches_class(class))
    }
}

/// Whether a class, method or package name, with dots, begins like the JDK's. The program may have such names also.
#[must_use]
pub fn is_jdk_name(name: &str) -> bool {
    const PACKAGES: [&str; 5] = ["java.", "javax.", "jdk.", "sun.", "com.sun."];
    PACKAGES.iter().any(|package| name.starts_with(package))
}

/// The included and the excluded classes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ClassFilter {
    /// Only these classes; empty: all.
    pub include: PatternList,
    /// Never these classes.
    pub exclude: PatternList,
}

impl ClassFilter {
    /// Whether every class is admitted.
    pub fn is_open(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }

    /// Whether the class, `a.b.C` or `a/b/C`, is admitted.
    pub fn admits_class(&self, class: &str) -> bool {
        (self.include.is_empty() || self.include.matches_class(class))
            && !self.exclude.matches_class(class)
    }

    /// Whether a class whose name begins with `prefix`, such as `java/`, may be admitted. `false`: none is.
    pub fn admits_below(&self, prefix: &str) -> bool {
        let include = &self.include.0;
        let included = include.is_empty() || include.iter().any(|p| p.may_match_below(prefix));
        included && !self.exclude.0.iter().any(|p| p.matches_all_below(prefix))
    }
}
