//! `resource=`: methods of the program and its libraries that open resources, and methods that close them.

use std::fmt;

use lucce_filter::{MethodPattern, MethodPatternList};

use crate::OptionError;

/// The form of one rule, for messages.
const FORM: &str = "CLASS.METHOD:CLOSE, such as com.acme.Pool.take:com.acme.Pool.giveBack or com.acme.Store.open:close";

/// Methods that open resources, each with those that close them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ResourceRules {
    openers: MethodPatternList,
    /// Methods with a class.
    closers: MethodPatternList,
    /// Names of methods of any class of the program.
    closer_names: Vec<String>,
    /// The rules as written.
    rules: Vec<String>,
}

/// Prints the rules, joined by `+`.
impl fmt::Display for ResourceRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rules.join("+"))
    }
}

impl ResourceRules {
    /// Adds rules, joined by `+`.
    ///
    /// # Errors
    /// A rule is malformed.
    pub fn add_rules(&mut self, text: &str) -> Result<(), OptionError> {
        for rule in text.split('+') {
            self.add_rule(rule)?;
        }
        Ok(())
    }

    fn add_rule(&mut self, rule: &str) -> Result<(), OptionError> {
        let refuse = || OptionError::malformed("resource", rule, FORM);
        let (opener, closer) = rule.split_once(':').ok_or_else(refuse)?;
        let opener = MethodPattern::parse(opener).map_err(|_| refuse())?;
        match closer.contains('.') {
            true => {
                let closer = MethodPattern::parse(closer).map_err(|_| refuse())?;
                self.closers.add(closer);
            }
            false if is_method_name(closer) => self.closer_names.push(closer.to_owned()),
            false => return Err(refuse()),
        }
        self.openers.add(opener);
        self.rules.push(rule.to_owned());
        Ok(())
    }

    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether the class, `a.b.C` or `a/b/C`, may have such a method. Names of methods alone are those of the program.
    #[must_use]
    pub fn concerns_class(&self, class: &str) -> bool {
        const JDK: [&str; 3] = ["java/", "jdk/", "sun/"];
        let is_of_program = || !JDK.iter().any(|package| class.starts_with(package));
        self.openers.matches_class(class)
            || self.closers.matches_class(class)
            || !self.closer_names.is_empty() && is_of_program()
    }

    /// Whether the method of the class, `a.b.C` or `a/b/C`, opens resources.
    #[must_use]
    pub fn opens(&self, class: &str, method: &str) -> bool {
        self.openers.matches_method(class, method)
    }

    /// Whether the method of the class closes resources.
    #[must_use]
    pub fn closes(&self, class: &str, method: &str) -> bool {
        self.closer_names.iter().any(|name| name == method)
            || self.closers.matches_method(class, method)
    }
}

fn is_method_name(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    !text.is_empty() && text.chars().all(is_part)
}

#[cfg(test)]
mod resources_tests {
    use super::*;

    #[test]
    fn a_rule_names_methods_that_open_and_close() {
        let mut rules = ResourceRules::default();
        let text = "com.acme.Pool.take*:com.acme.Pool.giveBack+com.acme.Store.<init>:close";
        rules.add_rules(text).unwrap();
        assert_eq!(rules.to_string(), text);
        assert!(rules.opens("com/acme/Pool", "takeOne") && rules.opens("com.acme.Store", "<init>"));
        assert!(!rules.opens("com/acme/Pool", "giveBack"));
        assert!(rules.closes("com/acme/Pool", "giveBack") && rules.closes("any/Other", "close"));
        assert!(!rules.closes("any/Other", "giveBack"));
    }

    #[test]
    fn malformed_rules_are_refused() {
        for text in [
            "",
            "com.acme.Pool.take",
            "take:close",
            "a.B.c:",
            "a.B.c:x y",
            "a.B.c:d+e",
        ] {
            let refused = ResourceRules::default().add_rules(text);
            assert!(refused.is_err(), "{text}");
        }
    }
}
