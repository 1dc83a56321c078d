//! Numbers for tests that draw samples like the VM.

/// Numbers that seem random and are the same each time.
pub struct RandomNumbers(pub u64);

impl RandomNumbers {
    /// From 0 to below 1.
    pub fn uniform(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}
