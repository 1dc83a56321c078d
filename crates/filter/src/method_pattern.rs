//! Patterns of methods: `CLASS.METHOD`.

use std::fmt;

use crate::PatternError;
use crate::pattern::ClassPattern;

/// A pattern of methods.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MethodPattern {
    class: ClassPattern,
    method: ClassPattern,
    /// The name of the group that it belongs to.
    group: Option<&'static str>,
}

impl fmt::Display for MethodPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.class, self.method)
    }
}

impl MethodPattern {
    /// Parses a pattern of classes, a dot, and a method's name with stars.
    ///
    /// # Errors
    /// The pattern is malformed.
    pub fn parse(text: &str) -> Result<MethodPattern, PatternError> {
        let refuse = |why: &str| PatternError(format!("pattern '{text}': {why}"));
        let Some((class, method)) = text.rsplit_once('.') else {
            return Err(refuse(
                "names no method; write CLASS.METHOD, such as com.acme.Repo.find",
            ));
        };
        let Some(method) = ClassPattern::parse_method(method) else {
            return Err(refuse(
                "no method has such a name; write CLASS.METHOD, such as com.acme.Repo.find or com.acme.Repo.*",
            ));
        };
        Ok(MethodPattern {
            class: ClassPattern::parse(class)?,
            method,
            group: None,
        })
    }

    /// Makes the pattern part of a group, which is printed in its place.
    #[must_use]
    pub fn in_group(self, name: &'static str) -> MethodPattern {
        MethodPattern {
            group: Some(name),
            ..self
        }
    }

    /// Whether it is part of a group. A program need not have the methods of a group.
    #[must_use]
    pub fn is_in_group(&self) -> bool {
        self.group.is_some()
    }

    /// Whether the method of the class, `a.b.C` or `a/b/C`, matches.
    #[must_use]
    pub fn matches_method(&self, class: &str, method: &str) -> bool {
        self.method.matches_text(method) && self.class.matches_class(class)
    }

    /// Whether it names one class.
    #[must_use]
    pub fn names_one_class(&self) -> bool {
        self.class.is_plain()
    }
}

/// A list of patterns of methods.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MethodPatternList(Vec<MethodPattern>);

/// Prints the groups and then the other patterns, joined by `+`.
impl fmt::Display for MethodPatternList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts: Vec<String> = Vec::new();
        for pattern in &self.0 {
            match pattern.group {
                Some(group) if texts.first().is_some_and(|text| *text == group) => {}
                Some(group) => texts.insert(0, group.to_owned()),
                None => texts.push(pattern.to_string()),
            }
        }
        f.write_str(&texts.join("+"))
    }
}

impl MethodPatternList {
    /// Adds a pattern, unless the list has it.
    pub fn add(&mut self, pattern: MethodPattern) {
        if !self.0.contains(&pattern) {
            self.0.push(pattern);
        }
    }

    /// Whether there is no pattern.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the patterns.
    pub fn iter(&self) -> impl Iterator<Item = &MethodPattern> {
        self.0.iter()
    }

    /// Whether the method of the class, `a.b.C` or `a/b/C`, matches a pattern.
    #[must_use]
    pub fn matches_method(&self, class: &str, method: &str) -> bool {
        let mut patterns = self.0.iter();
        patterns.any(|pattern| pattern.matches_method(class, method))
    }

    /// Whether the class, `a.b.C` or `a/b/C`, may have a method that matches a pattern.
    #[must_use]
    pub fn matches_class(&self, class: &str) -> bool {
        let mut patterns = self.0.iter();
        patterns.any(|pattern| pattern.class.matches_class(class))
    }
}
