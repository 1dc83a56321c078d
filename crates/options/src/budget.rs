//! `budget=PERCENT`: what samples may cost.

use crate::OptionError;

/// The part of the program's CPU time that samples may take, in percent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CostBudget(u32);

impl CostBudget {
    /// Less would leave samples without a useful accuracy.
    const LEAST: u32 = 1;
    /// Hooks in every call cost about as much, and more in some programs. No rate of samples can change that.
    const MOST: u32 = 25;
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
        let expected = match percent {
            Some(percent) if percent > CostBudget::MOST => {
                "1% to 25%, which samples keep to; beyond, every allocation can be recorded, at a cost that depends on \
                 the program: events=alloc without budget="
            }
            _ => "a percentage from 1% to 25%, such as 10%",
        };
        percent
            .filter(|percent| (CostBudget::LEAST..=CostBudget::MOST).contains(percent))
            .map(CostBudget)
            .ok_or_else(|| OptionError::malformed("budget", value, expected))
    }

    #[must_use]
    pub fn percent(self) -> u32 {
        self.0
    }

    /// `10%`
    #[must_use]
    pub fn to_text(self) -> String {
        format!("{}%", self.0)
    }
}
