//! `budget=PERCENT`: what recording allocations may cost.

use crate::OptionError;

/// The part of the program's CPU time that recording may take, in percent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CostBudget(u32);

impl CostBudget {
    /// Less would leave samples without a useful accuracy.
    const LEAST: u32 = 1;
    /// More than every allocation costs in programs that do little else.
    const MOST: u32 = 400;
    /// What hooks that count nothing may cost, in percent: about the most of twelve applications (`cargo xtask bench`).
    pub const HOOKS: u32 = 60;
    /// From this budget on, enough is left for counting. A smaller one is for samples without hooks.
    pub const LEAST_WITH_HOOKS: u32 = 75;
    /// Bounds of the sampling interval in bytes.
    pub const LEAST_INTERVAL: u32 = 1 << 10;
    pub const MOST_INTERVAL: u32 = 4 << 20;

    /// Parses `20%` or `20`.
    ///
    /// # Errors
    /// The number is malformed or out of range.
    pub fn parse(value: &str) -> Result<CostBudget, OptionError> {
        let digits = value.strip_suffix('%').unwrap_or(value);
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        let percent = digits.parse::<u32>().ok().filter(|_| is_plain);
        let expected = "a percentage from 1% to 400%, such as 10%";
        percent
            .filter(|percent| (CostBudget::LEAST..=CostBudget::MOST).contains(percent))
            .map(CostBudget)
            .ok_or_else(|| OptionError::malformed("budget", value, expected))
    }

    #[must_use]
    pub fn percent(self) -> u32 {
        self.0
    }

    /// Whether the budget pays for hooks, if the JVM starts with the agent.
    #[must_use]
    pub fn pays_for_hooks(self) -> bool {
        self.0 >= CostBudget::LEAST_WITH_HOOKS
    }

    /// What hooks leave for counting, in percent of the program's CPU time.
    #[must_use]
    pub fn counting_percent(self) -> u32 {
        self.0.saturating_sub(CostBudget::HOOKS)
    }

    /// `10%`
    #[must_use]
    pub fn to_text(self) -> String {
        format!("{}%", self.0)
    }
}
