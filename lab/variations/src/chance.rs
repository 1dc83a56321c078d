//! Numbers that look random and that their arguments decide: SplitMix64.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeededChance(u64);

impl SeededChance {
    pub fn from_name(name: &str) -> SeededChance {
        name.bytes()
            .fold(SeededChance(0), |chance, byte| chance.mix(u64::from(byte)))
    }

    /// One that depends on `more`, too.
    pub fn mix(self, more: u64) -> SeededChance {
        let mut z = (self.0 ^ more).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        SeededChance(z ^ (z >> 31))
    }

    pub fn value(self) -> u64 {
        self.0
    }

    /// From 0 to `end`, without it.
    pub fn pick_below(self, end: u64) -> u64 {
        ((u128::from(self.0) * u128::from(end)) >> 64) as u64
    }
}
