//! How deep stacks are, over all calls.

use serde::Serialize;

/// A histogram: how many calls met each depth.
#[derive(Clone, Debug, Default)]
pub struct DepthDistribution(Vec<u64>);

impl DepthDistribution {
    pub(crate) fn add_depth(&mut self, depth: usize) {
        if depth >= self.0.len() {
            self.0.resize(depth + 1, 0);
        }
        if let Some(count) = self.0.get_mut(depth) {
            *count += 1;
        }
    }

    #[must_use]
    pub fn max_depth(&self) -> usize {
        self.0.len().saturating_sub(1)
    }

    #[must_use]
    pub fn mean_depth(&self) -> f64 {
        let sum: f64 = self
            .0
            .iter()
            .enumerate()
            .map(|(depth, count)| depth as f64 * *count as f64)
            .sum();
        sum / self.count_all().max(1) as f64
    }

    /// The smallest depth that so many percent of the calls do not exceed.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> usize {
        let wanted = u128::from(self.count_all()) * u128::from(percent);
        let mut seen = 0u128;
        let within = |count: &u64| {
            seen += u128::from(*count);
            seen * 100 >= wanted
        };
        self.0.iter().position(within).unwrap_or(0)
    }

    /// Points (depth, share of calls that do not exceed it), where the share changes visibly.
    #[must_use]
    pub fn cumulative_shares(&self) -> Vec<CumulativeShare> {
        let total = self.count_all().max(1) as f64;
        let mut points: Vec<CumulativeShare> = Vec::new();
        let mut seen = 0;
        for (depth, count) in self.0.iter().enumerate() {
            seen += count;
            let share = seen as f64 / total;
            let last = points.last().map_or(-1.0, |point| point.share);
            if share - last >= 0.002 || depth + 1 == self.0.len() {
                points.push(CumulativeShare { depth, share });
            }
        }
        points
    }

    fn count_all(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Of a cumulative distribution.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CumulativeShare {
    pub depth: usize,
    pub share: f64,
}

#[cfg(test)]
mod depths_tests {
    use super::*;

    #[test]
    fn percentiles_and_shares() {
        let mut depths = DepthDistribution::default();
        (0..100).for_each(|n| depths.add_depth(n / 10));
        assert_eq!((depths.max_depth(), depths.mean_depth()), (9, 4.5));
        assert_eq!(
            [50, 90, 91, 100].map(|p| depths.percentile(p)),
            [4, 8, 9, 9]
        );
        let shares = depths.cumulative_shares();
        assert_eq!(shares.len(), 10);
        assert_eq!((shares[0].share, shares[9].share), (0.1, 1.0));
        assert_eq!(DepthDistribution::default().percentile(90), 0);
    }
}
