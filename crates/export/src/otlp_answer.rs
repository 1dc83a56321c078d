//! A collector's answers to requests with profiles.

use prost::Message;

/// The rejected part of an accepted request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OtlpAnswer {
    /// Number of rejected profiles.
    pub rejected: u64,
    /// The reason, or a warning.
    pub message: String,
}

/// `ExportProfilesServiceResponse`
#[derive(Clone, PartialEq, Message)]
struct ExportProfilesResponse {
    #[prost(message, optional, tag = "1")]
    partial: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(string, tag = "2")]
    message: String,
}

/// `google.rpc.Status`
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

impl OtlpAnswer {
    /// Parses the body of an answer to an accepted request. Any other body means that nothing was rejected.
    #[must_use]
    pub fn from_response_body(body: &[u8]) -> Self {
        let response = ExportProfilesResponse::decode(body).unwrap_or_default();
        let partial = response.partial.unwrap_or_default();
        OtlpAnswer {
            rejected: u64::try_from(partial.rejected).unwrap_or(0),
            message: partial.message,
        }
    }

    /// Returns the reason in the body of an answer to a refused request.
    #[must_use]
    pub fn refusal_message(body: &[u8]) -> Option<String> {
        let status = RpcStatus::decode(body).ok()?;
        (!status.message.is_empty()).then_some(status.message)
    }
}

#[cfg(test)]
mod otlp_answer_tests {
    use super::*;

    #[test]
    fn answers_are_read_whoever_wrote_them() {
        let partial = ExportProfilesResponse {
            partial: Some(PartialSuccess {
                rejected: 2,
                message: "too old".into(),
            }),
        };
        let expected = OtlpAnswer {
            rejected: 2,
            message: "too old".into(),
        };
        assert_eq!(
            OtlpAnswer::from_response_body(&partial.encode_to_vec()),
            expected
        );
        for body in [&b""[..], b"<html>", b"\xff\xff\xff\xff"] {
            assert_eq!(OtlpAnswer::from_response_body(body), OtlpAnswer::default());
            assert_eq!(OtlpAnswer::refusal_message(body), None);
        }
        let status = RpcStatus {
            code: 3,
            message: "not this".into(),
        };
        let message = OtlpAnswer::refusal_message(&status.encode_to_vec());
        assert_eq!(message.as_deref(), Some("not this"));
    }
}
