//! What a collector answers to a request with profiles.

use prost::Message;

/// Of a request that was taken: what of it was not.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OtlpAnswer {
    /// How many of its profiles were not taken.
    pub rejected: u64,
    /// Why, or a warning.
    pub message: String,
}

/// `ExportProfilesServiceResponse`
#[derive(Clone, PartialEq, Message)]
struct Response {
    #[prost(message, optional, tag = "1")]
    partial: Option<Partial>,
}

#[derive(Clone, PartialEq, Message)]
struct Partial {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(string, tag = "2")]
    message: String,
}

/// `google.rpc.Status`
#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

impl OtlpAnswer {
    /// The body of an answer to a request that was taken. Another server's, which is none: nothing was rejected.
    #[must_use]
    pub fn taken(body: &[u8]) -> Self {
        let response = Response::decode(body).unwrap_or_default();
        let partial = response.partial.unwrap_or_default();
        OtlpAnswer {
            rejected: u64::try_from(partial.rejected).unwrap_or(0),
            message: partial.message,
        }
    }

    /// The reason in the body of an answer to a request that was not taken.
    #[must_use]
    pub fn refused(body: &[u8]) -> Option<String> {
        let status = Status::decode(body).ok()?;
        (!status.message.is_empty()).then_some(status.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_whoever_wrote_them() {
        let partial = Response {
            partial: Some(Partial {
                rejected: 2,
                message: "too old".into(),
            }),
        };
        let expected = OtlpAnswer {
            rejected: 2,
            message: "too old".into(),
        };
        assert_eq!(OtlpAnswer::taken(&partial.encode_to_vec()), expected);
        for body in [&b""[..], b"<html>", b"\xff\xff\xff\xff"] {
            assert_eq!(OtlpAnswer::taken(body), OtlpAnswer::default());
            assert_eq!(OtlpAnswer::refused(body), None);
        }
        let status = Status {
            code: 3,
            message: "not this".into(),
        };
        let said = OtlpAnswer::refused(&status.encode_to_vec());
        assert_eq!(said.as_deref(), Some("not this"));
    }
}
