//! What there is to ask for; the description is made of the same list.

use crate::error::Error;
use crate::http::{Request, Response};

/// The parameter that says the form of an answer, which no question has.
pub const FORMAT: &str = "format";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
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

impl Route {
    pub const ALL: [Route; 9] = [
        Route::Health,
        Route::Context,
        Route::Number,
        Route::Decode,
        Route::Questions,
        Route::Ask,
        Route::View,
        Route::Metrics,
        Route::OpenApi,
    ];

    /// As OpenAPI and metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Route::Health => "/health",
            Route::Context => "/runs/{run}/contexts/{number}",
            Route::Number => "/contexts/{number}",
            Route::Decode => "/decode",
            Route::Questions => "/ask",
            Route::Ask => "/ask/{question}",
            Route::View => "/view/{question}",
            Route::Metrics => "/metrics",
            Route::OpenApi => "/openapi.json",
        }
    }

    pub fn method(self) -> &'static str {
        match self {
            Route::Decode => "POST",
            _ => "GET",
        }
    }

    /// The route, and what stands for the parts in braces.
    ///
    /// # Errors
    /// The answer: there is nothing, or it cannot be asked for by this method.
    pub fn of(method: &str, path: &[&str]) -> Result<(Route, Vec<String>), Response> {
        let found = Route::ALL
            .into_iter()
            .find_map(|route| Some((route, route.parts(path)?)));
        let Some((route, parts)) = found else {
            return Err(Response::words(
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
            return Err(Response::words(405, words)
                .with("Allow", allowed)
                .of(route.name()));
        }
        Ok((route, parts))
    }

    fn parts(self, path: &[&str]) -> Option<Vec<String>> {
        let own: Vec<_> = self.name().split('/').skip(1).collect();
        if own.len() != path.len() {
            return None;
        }
        let mut parts = Vec::new();
        for (own, said) in own.iter().zip(path) {
            match own.starts_with('{') {
                true => parts.push((*said).to_owned()),
                false if own == said => {}
                false => return None,
            }
        }
        Some(parts)
    }
}

/// How an answer is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    Text,
    Json,
    Csv,
}

impl Form {
    /// Of a trace, by the ending, else by what the client accepts; text if it does not say.
    pub fn of_context<'p>(part: &'p str, request: &Request) -> (&'p str, Form) {
        if let Some(part) = part.strip_suffix(".json") {
            return (part, Form::Json);
        }
        if let Some(part) = part.strip_suffix(".txt") {
            return (part, Form::Text);
        }
        let accepted = request.header("accept").unwrap_or_default();
        match accepted_first(accepted, &["application/json", "text/plain"]) {
            Some("application/json") => (part, Form::Json),
            _ => (part, Form::Text),
        }
    }

    /// Of rows, by the parameter `format`, else by what the client accepts; JSON if it does not say.
    pub fn of_rows(request: &Request) -> Result<Form, Error> {
        let mut said = request.query().iter().rev();
        let said = said
            .find(|(name, _)| name == FORMAT)
            .map(|(_, form)| form.as_str());
        match said {
            Some("json") => return Ok(Form::Json),
            Some("csv") => return Ok(Form::Csv),
            Some("table") => return Ok(Form::Text),
            Some(_) => {
                let words = "format: json, csv or table was expected";
                return Err(Error::Usage(words.into()));
            }
            None => {}
        }
        let accepted = request.header("accept").unwrap_or_default();
        let known = ["application/json", "text/csv", "text/plain"];
        Ok(match accepted_first(accepted, &known) {
            Some("text/csv") => Form::Csv,
            Some("text/plain") => Form::Text,
            _ => Form::Json,
        })
    }
}

/// The first of what a client accepts that is known.
fn accepted_first<'k>(accepted: &str, known: &[&'k str]) -> Option<&'k str> {
    accepted.split(',').find_map(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let mut known = known.iter();
        known
            .find(|known| known.eq_ignore_ascii_case(kind))
            .copied()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_route_is_found_by_its_own_name() {
        for route in Route::ALL {
            let path: Vec<_> = route.name().split('/').skip(1).collect();
            let (found, _) = Route::of(route.method(), &path).unwrap();
            assert_eq!(found, route);
            let refused = Route::of("PATCH", &path).unwrap_err();
            assert_eq!((refused.status(), refused.route()), (405, route.name()));
        }
        for nothing in [&[""][..], &["ask", "top", ""], &["runs"], &["..", "ask"]] {
            assert_eq!(Route::of("GET", nothing).unwrap_err().status(), 404);
        }
    }

    #[test]
    fn what_is_accepted_first_is_answered() {
        let known = ["application/json", "text/plain"];
        let first = |accepted| accepted_first(accepted, &known);
        assert_eq!(
            first("text/html, Text/Plain;q=0.5, application/json"),
            Some("text/plain")
        );
        assert_eq!(first("*/*"), None);
        assert_eq!(first(""), None);
    }
}
