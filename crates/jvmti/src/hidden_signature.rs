//! Signatures of classes that are anonymous for the VM of JDK 11, in the form of hidden classes of later JDKs.

/// Returns the signature of JDK 11 in the later form; `None`: the class is not named like one that is anonymous for the
/// VM.
///
/// JDK 11 has a hash of the class behind a slash, `La/B$$Lambda$1/93122545;`. Later JDKs have an address behind a dot,
/// `La/B$$Lambda$1.0x58ceff1;`. Another class may be named like this, too, but the VM can change that one.
pub fn hidden_signature(signature: &str) -> Option<String> {
    let (class, hash) = signature.strip_suffix(';')?.rsplit_once('/')?;
    if !hash.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let hash: u64 = hash.parse().ok()?;
    Some(format!("{class}.{hash:#x};"))
}

#[cfg(test)]
mod hidden_signature_tests {
    use super::*;

    #[test]
    fn only_a_number_behind_the_last_slash_is_a_hash() {
        let hidden = hidden_signature("La/B$$Lambda$1/93122545;");
        assert_eq!(hidden.as_deref(), Some("La/B$$Lambda$1.0x58ceff1;"));
        for other in [
            "La/B;",
            "La/B1;",
            "La/1/B;",
            "La/;",
            "La/B.0x58ceff1;",
            "LB;",
            "[I",
            "I",
            "La/99999999999999999999999;",
        ] {
            assert_eq!(hidden_signature(other), None, "{other}");
        }
    }
}
