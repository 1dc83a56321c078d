//! How many allocations a sample stands for.
//!
//! HotSpot takes a sample when a number of bytes has been allocated that is drawn anew each time from the
//! exponential distribution with the interval as its mean (JEP 331). So an object of `size` bytes is a
//! sample with probability `1 − e^(−size/interval)`, and stands for as many objects as that is smaller
//! than 1. What is left of a whole number goes to the next sample: sums are right.

/// The remainder of a thread's samples.
#[derive(Default, Debug)]
pub struct AllocationWeight {
    remainder: f64,
}

impl AllocationWeight {
    /// Objects that a sample of `size` bytes stands for; with `interval` 0 one.
    pub fn count_objects(&mut self, size: u64, interval: u32) -> u64 {
        if interval == 0 || size == 0 {
            return 1;
        }
        let chance = -(-(size as f64) / f64::from(interval)).exp_m1();
        let exact = 1.0 / chance + self.remainder;
        let whole = exact.floor();
        self.remainder = exact - whole;
        whole as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_allocation_stands_for_itself_when_all_are_seen() {
        assert_eq!(AllocationWeight::default().count_objects(16, 0), 1);
    }

    #[test]
    fn a_large_object_stands_for_itself_and_small_ones_for_their_share() {
        let mut weight = AllocationWeight::default();
        assert_eq!(weight.count_objects(1 << 30, 1 << 10), 1);
        let sum: u64 = (0..1000).map(|_| weight.count_objects(16, 512 << 10)).sum();
        // 512 Ki / 16 = 32,768, and half an object for having been hit.
        assert!((32_768_400..32_768_600).contains(&sum), "{sum}");
    }
}
