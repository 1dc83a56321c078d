//! Median and spread of measurements.

use serde::Serialize;

/// Five numbers that describe a distribution. Quartiles use linear interpolation between order statistics (type 7 of
/// Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996).
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    pub count: usize,
    pub mean: f64,
    pub min: f64,
    pub lower_quartile: f64,
    pub median: f64,
    pub upper_quartile: f64,
    pub max: f64,
}

/// The number that represents a distribution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Centre {
    /// Not affected by one slow iteration.
    #[default]
    Median,
    /// As in the paper.
    Mean,
}

impl Spread {
    pub fn centre(&self, centre: Centre) -> f64 {
        match centre {
            Centre::Median => self.median,
            Centre::Mean => self.mean,
        }
    }

    /// `None`: there are no values, or one is not a number.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        if sorted.iter().any(|value| !value.is_finite()) {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        Some(Spread {
            count: sorted.len(),
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            min: quantile(&sorted, 0.0)?,
            lower_quartile: quantile(&sorted, 0.25)?,
            median: quantile(&sorted, 0.5)?,
            upper_quartile: quantile(&sorted, 0.75)?,
            max: quantile(&sorted, 1.0)?,
        })
    }
}

fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let at = share * sorted.len().checked_sub(1)? as f64;
    let below = *sorted.get(at.floor() as usize)?;
    let above = *sorted.get(at.ceil() as usize)?;
    Some(below + (above - below) * at.fract())
}

/// `None`: there are no values, or one is not above 0.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || !values.iter().all(|value| *value > 0.0) {
        return None;
    }
    let logs: f64 = values.iter().map(|value| value.ln()).sum();
    Some((logs / values.len() as f64).exp())
}

#[cfg(test)]
mod spread_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_values() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]).unwrap();
        let five = [1.0, 1.75, 2.5, 3.25, 4.0];
        let quantiles = [
            spread.min,
            spread.lower_quartile,
            spread.median,
            spread.upper_quartile,
            spread.max,
        ];
        assert_eq!(quantiles, five);
        assert_eq!(spread.mean, 2.5);
        let skewed = Spread::of([1.0, 2.0, 9.0]).unwrap();
        assert_eq!(skewed.centre(Centre::Median), 2.0);
        assert_eq!(skewed.centre(Centre::Mean), 4.0);
        assert_eq!(Spread::of([7.0]).unwrap().lower_quartile, 7.0);
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([1.0, f64::NAN]), None);
        assert_eq!(geometric_mean(&[1.0, 4.0]), Some(2.0));
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
    }

    proptest! {
        /// At least half of the values lie on either side of the median.
        #[test]
        fn the_median_halves_the_values(values in prop::collection::vec(-1e9..1e9_f64, 1..40)) {
            let spread = Spread::of(values.iter().copied()).unwrap();
            let below = values.iter().filter(|v| **v <= spread.median).count();
            let above = values.iter().filter(|v| **v >= spread.median).count();
            prop_assert!(2 * below >= values.len() && 2 * above >= values.len());
            prop_assert!(spread.min <= spread.lower_quartile && spread.lower_quartile <= spread.median);
            prop_assert!(spread.median <= spread.upper_quartile && spread.upper_quartile <= spread.max);
        }

        /// Ratios of geometric means are geometric means of ratios: which side is the baseline
        /// does not matter.
        #[test]
        fn the_geometric_mean_of_inverses_is_the_inverse(values in prop::collection::vec(1e-3..1e3_f64, 1..20)) {
            let inverses: Vec<f64> = values.iter().map(|v| 1.0 / v).collect();
            let product = geometric_mean(&values).unwrap() * geometric_mean(&inverses).unwrap();
            prop_assert!((product - 1.0).abs() < 1e-9);
        }
    }
}
