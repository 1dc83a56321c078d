//! The file: a template, a style, a script and the data. A policy in the page forbids all else, so what
//! names in a log may say, nothing is run and nothing is loaded.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::to_string;
use sha2::{Digest, Sha256};

use super::columns::Data;

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = concat!(
    include_str!("page/model.js"),
    include_str!("page/flame.js"),
    include_str!("page/tables.js"),
    include_str!("page/live.js"),
    include_str!("page/main.js"),
);

/// See [`super::Page::policy`].
pub fn policy(is_live: bool) -> String {
    let data = if is_live { "connect-src 'self'; " } else { "" };
    let (script, style) = (hash(SCRIPT), hash(STYLE));
    format!(
        "default-src 'none'; {data}script-src '{script}'; style-src '{style}'; base-uri 'none'; form-action 'none'"
    )
}

pub fn page(title: &str, policy: &str, data: &Data) -> String {
    // The data have no value that JSON cannot say.
    let data = to_string(data).unwrap_or_default();
    // Within a script element only `</` and `<!--` mean anything.
    let data = data.replace('<', "\\u003c");
    let parts = [
        ("{title}", escaped(title)),
        ("{version}", env!("CARGO_PKG_VERSION").into()),
        ("{policy}", policy.to_owned()),
        ("{style}", STYLE.into()),
        ("{script}", SCRIPT.into()),
        ("{data}", data),
    ];
    filled(&parts)
}

/// One pass, so that what is put in is not looked at again.
fn filled(parts: &[(&str, String)]) -> String {
    let mut page = String::new();
    let mut rest = TEMPLATE;
    while let Some((before, behind)) = rest.split_once('{') {
        page.push_str(before);
        let found = parts.iter().find_map(|(name, text)| {
            let behind = behind.strip_prefix(name.trim_start_matches('{'))?;
            Some((text, behind))
        });
        match found {
            Some((text, behind)) => {
                page.push_str(text);
                rest = behind;
            }
            None => {
                page.push('{');
                rest = behind;
            }
        }
    }
    page + rest
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_ends_the_script() {
        let data = Data::of_types(vec![
            "</script><script>alert(1)</script><!-- {script}".into(),
        ]);
        let page = page("a</title><b>", &policy(false), &data);
        assert_eq!(page.matches("</script>").count(), 2);
        assert_eq!(page.matches("<script").count(), 2);
        assert!(!page.contains("<b>") && !page.contains("<!--"));
        assert_eq!(
            page.matches("\"use strict\"").count(),
            5,
            "the script is there once"
        );
    }

    #[test]
    fn the_policy_names_what_is_in_the_page() {
        let page = page("", &policy(false), &Data::of_types(Vec::new()));
        for text in [hash(STYLE), hash(SCRIPT)] {
            assert!(page.contains(&format!("'{text}'")));
        }
        assert!(page.contains("default-src 'none'"));
        assert!(
            !page.contains("unsafe-inline") && !page.contains("http:") && !page.contains("https:")
        );
        assert!(!page.contains("connect-src"), "a file loads nothing");
        let live = policy(true);
        assert_eq!(live.replace("connect-src 'self'; ", ""), policy(false));
    }
}
