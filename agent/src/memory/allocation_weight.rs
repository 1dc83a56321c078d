//! The number of allocations that a sample represents.
//!
//! HotSpot takes a sample after a random number of bytes. It draws that number from the exponential distribution
//! whose mean is the sampling interval (JEP 331). The probability that an object of `size` bytes is a sample is
//! therefore `1 − e^(−size/interval)`. The sample represents as many objects as the inverse of that probability. The
//! fraction is carried to the thread's next sample, whatever its context, so sums are right.

use lucce_options::kinds::VARIANCE_UNIT;

/// The remainder of a thread's samples.
#[derive(Default, Debug)]
pub struct AllocationWeight {
    remainder: f64,
}

impl AllocationWeight {
    /// The number of objects that a sample of `size` bytes represents; 1 if `interval` is 0.
    pub fn count_objects(&mut self, size: u64, interval: u32) -> u64 {
        if interval == 0 || size == 0 {
            return 1;
        }
        let exact = 1.0 / sample_chance(size, interval) + self.remainder;
        let whole = exact.floor();
        self.remainder = exact - whole;
        whole as u64
    }
}

/// The probability that an object of `size` bytes is a sample.
fn sample_chance(size: u64, interval: u32) -> f64 {
    -(-(size as f64) / f64::from(interval)).exp_m1()
}

/// The variance that a sample of `size` bytes adds to the sum of bytes, in units of [`VARIANCE_UNIT`]: that of chance, and that of
/// rounding to whole objects.
pub fn sample_variance(size: u64, interval: u32) -> u64 {
    if interval == 0 || size == 0 {
        return 0;
    }
    let chance = sample_chance(size, interval);
    let objects = 1.0 / chance;
    // The remainder comes from other samples: one object more with this probability.
    let part = objects.fract();
    let variance = objects * objects * (1.0 - chance) + part * (1.0 - part);
    ((size as f64).powi(2) * variance / VARIANCE_UNIT).round() as u64
}

#[cfg(test)]
mod allocation_weight_tests {
    use super::*;
    use crate::memory::random_numbers::RandomNumbers;

    #[test]
    fn each_allocation_has_weight_one_when_all_are_sampled() {
        assert_eq!(AllocationWeight::default().count_objects(16, 0), 1);
    }

    /// The mean of n draws with probability p is Poisson's for small p: each sample adds the square of its weight.
    #[test]
    fn a_small_object_adds_the_square_of_the_interval() {
        let square = (512.0 * 1024.0_f64).powi(2) / VARIANCE_UNIT;
        let variance = sample_variance(16, 512 << 10) as f64;
        assert!((variance / square - 1.0).abs() < 1e-4, "{variance}");
        assert_eq!(sample_variance(1 << 30, 1 << 10), 0);
        assert_eq!(sample_variance(16, 0), 0);
    }

    /// Draws samples like the VM, many times. The thread's other context shares the remainder.
    #[test]
    fn sums_of_all_sizes_are_within_two_deviations_in_95_of_100_runs() {
        const ROUNDS: u32 = 1000;
        let interval = 512_u32 << 10;
        let mut random = RandomNumbers(7);
        // Sizes in intervals, and numbers of objects.
        let cases = [
            (0.1_f64, 2000_u64),
            (1.0, 400),
            (2.0, 400),
            (3.0, 400),
            (5.0, 400),
        ];
        for (relative, objects) in cases {
            let size = (relative * f64::from(interval)).round() as u64;
            let chance = 1.0 - (-relative).exp();
            let mut within = 0;
            for _ in 0..ROUNDS {
                let mut weight = AllocationWeight::default();
                let (mut counted, mut variance) = (0_u64, 0_u64);
                for _ in 0..objects {
                    let other = (random.uniform() * f64::from(interval)) as u64;
                    weight.count_objects(other, interval);
                    if random.uniform() < chance {
                        counted += weight.count_objects(size, interval);
                        variance += sample_variance(size, interval);
                    }
                }
                let error = 2.0 * (variance as f64 * VARIANCE_UNIT).sqrt();
                within += u32::from((size * objects.abs_diff(counted)) as f64 <= error);
            }
            let is_right = within >= ROUNDS * 93 / 100;
            assert!(is_right, "{relative} intervals: {within} of {ROUNDS}");
        }
    }

    #[test]
    fn a_large_object_has_weight_one_and_small_ones_have_their_share() {
        let mut weight = AllocationWeight::default();
        assert_eq!(weight.count_objects(1 << 30, 1 << 10), 1);
        let sum: u64 = (0..1000).map(|_| weight.count_objects(16, 512 << 10)).sum();
        // 512 Ki / 16 = 32,768, plus half an object because it was sampled.
        assert!((32_768_400..32_768_600).contains(&sum), "{sum}");
    }
}
