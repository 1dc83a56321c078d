//! Half of the changes are the fuzzer's own, half keep the file's sums right.

pub fn mutated(
    data: &mut [u8],
    (size, most): (usize, usize),
    seed: u32,
    mutate: fn(u64, &[u8]) -> Vec<u8>,
) -> usize {
    if seed.is_multiple_of(2) {
        return libfuzzer_sys::fuzzer_mutate(data, size, most);
    }
    let changed = mutate(seed.into(), &data[..size]);
    let kept = changed.len().min(most);
    data[..kept].copy_from_slice(&changed[..kept]);
    kept
}
