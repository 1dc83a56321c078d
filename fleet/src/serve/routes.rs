//! What there is to ask for; the description is made of the same list.

use crate::error::FleetError;
use crate::http::{ServerRequest, ServerResponse};

/// The parameter that says the form of an answer, which no question has.
pub const FORMAT: &str = "format";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ApiRoute {
    Health,
    Context,
    Number,
    Decode,
    Questions,
    Ask,
    View,
    Metrics,
    OpenApi,
}

impl ApiRoute {
    pub const ALL: [ApiRoute; 9] = [
        ApiRoute::Health,
        ApiRoute::Context,
        ApiRoute::Number,
        ApiRoute::Decode,
        ApiRoute::Questions,
        ApiRoute::Ask,
        ApiRoute::View,
        ApiRoute::Metrics,
        ApiRoute::OpenApi,
    ];

    /// As OpenAPI and metrics have it.
    pub fn path_template(self) -> &'static str {
        match self {
            ApiRoute::Health => "/health",
            ApiRoute::Context => "/runs/{run}/contexts/{number}",
            ApiRoute::Number => "/contexts/{number}",
            ApiRoute::Decode => "/decode",
            ApiRoute::Questions => "/ask",
            ApiRoute::Ask => "/ask/{question}",
            ApiRoute::View => "/view/{question}",
            ApiRoute::Metrics => "/metrics",
            ApiRoute::OpenApi => "/openapi.json",
        }
    }

    pub fn method(self) -> &'static str {
        match self {
            ApiRoute::Decode => "POST",
            _ => "GET",
        }
    }

    /// The route, and the values of the parts in braces.
    ///
    /// # Errors
    /// The answer: there is nothing, or this method is not allowed.
    pub fn match_request(
        method: &str,
        path: &[&str],
    ) -> Result<(ApiRoute, Vec<String>), ServerResponse> {
        let matched = ApiRoute::ALL
            .into_iter()
            .find_map(|route| Some((route, route.match_path(path)?)));
        let Some((route, parts)) = matched else {
            return Err(ServerResponse::from_message(
                404,
                "there is nothing here; /openapi.json says what there is",
            ));
        };
        if method != route.method() {
            let allowed = match route.method() {
                "GET" => "GET, HEAD",
                other => other,
            };
            let words = format!("{allowed} is what can be done here");
            return Err(ServerResponse::from_message(405, words)
                .with_header("Allow", allowed)
                .with_route(route.path_template()));
        }
        Ok((route, parts))
    }

    fn match_path(self, path: &[&str]) -> Option<Vec<String>> {
        let own: Vec<_> = self.path_template().split('/').skip(1).collect();
        if own.len() != path.len() {
            return None;
        }
        let mut parts = Vec::new();
        for (own, part) in own.iter().zip(path) {
            match own.starts_with('{') {
                true => parts.push((*part).to_owned()),
                false if own == part => {}
                false => return None,
            }
        }
        Some(parts)
    }
}

/// How an answer is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResponseFormat {
    Text,
    Json,
    Csv,
}

impl ResponseFormat {
    /// Of a trace, by the ending, else by what the client accepts; text if it does not say.
    pub fn for_context<'p>(part: &'p str, request: &ServerRequest) -> (&'p str, ResponseFormat) {
        if let Some(part) = part.strip_suffix(".json") {
            return (part, ResponseFormat::Json);
        }
        if let Some(part) = part.strip_suffix(".txt") {
            return (part, ResponseFormat::Text);
        }
        let accepted = request.header_text("accept").unwrap_or_default();
        match first_accepted(accepted, &["application/json", "text/plain"]) {
            Some("application/json") => (part, ResponseFormat::Json),
            _ => (part, ResponseFormat::Text),
        }
    }

    /// Of rows, by the parameter `format`, else by what the client accepts; JSON if it does not say.
    pub fn for_rows(request: &ServerRequest) -> Result<ResponseFormat, FleetError> {
        let mut format = request.query().iter().rev();
        let format = format
            .find(|(name, _)| name == FORMAT)
            .map(|(_, form)| form.as_str());
        match format {
            Some("json") => return Ok(ResponseFormat::Json),
            Some("csv") => return Ok(ResponseFormat::Csv),
            Some("table") => return Ok(ResponseFormat::Text),
            Some(_) => {
                let words = "format: json, csv or table was expected";
                return Err(FleetError::Usage(words.into()));
            }
            None => {}
        }
        let accepted = request.header_text("accept").unwrap_or_default();
        let media_types = ["application/json", "text/csv", "text/plain"];
        Ok(match first_accepted(accepted, &media_types) {
            Some("text/csv") => ResponseFormat::Csv,
            Some("text/plain") => ResponseFormat::Text,
            _ => ResponseFormat::Json,
        })
    }
}

/// The first of what a client accepts that is known.
fn first_accepted<'k>(accepted: &str, known: &[&'k str]) -> Option<&'k str> {
    accepted.split(',').find_map(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let mut known = known.iter();
        known
            .find(|known| known.eq_ignore_ascii_case(kind))
            .copied()
    })
}

#[cfg(test)]
mod routes_tests {
    use super::*;

    #[test]
    fn each_route_is_found_by_its_own_name() {
        for route in ApiRoute::ALL {
            let path: Vec<_> = route.path_template().split('/').skip(1).collect();
            let (matched, _) = ApiRoute::match_request(route.method(), &path).unwrap();
            assert_eq!(matched, route);
            let refused = ApiRoute::match_request("PATCH", &path).unwrap_err();
            assert_eq!(
                (refused.status(), refused.route()),
                (405, route.path_template())
            );
        }
        for nothing in [&[""][..], &["ask", "top", ""], &["runs"], &["..", "ask"]] {
            assert_eq!(
                ApiRoute::match_request("GET", nothing)
                    .unwrap_err()
                    .status(),
                404
            );
        }
    }

    #[test]
    fn what_is_accepted_first_is_answered() {
        let media_types = ["application/json", "text/plain"];
        let first = |accepted| first_accepted(accepted, &media_types);
        assert_eq!(
            first("text/html, Text/Plain;q=0.5, application/json"),
            Some("text/plain")
        );
        assert_eq!(first("*/*"), None);
        assert_eq!(first(""), None);
    }
}
