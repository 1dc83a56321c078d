//! Writes the page's file: a template, a style, a script and the data. The page's content security policy forbids
//! everything else, so names in a log cannot run or load anything.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::to_string;
use sha2::{Digest, Sha256};

use super::columns::PageData;

const TEMPLATE: &str = include_str!("assets/page.html");
const STYLE: &str = include_str!("assets/page.css");
const SCRIPT: &str = concat!(
    include_str!("assets/model.js"),
    include_str!("assets/flame.js"),
    include_str!("assets/tables.js"),
    include_str!("assets/live.js"),
    include_str!("assets/main.js"),
);

/// See [`super::HtmlPage::content_policy`].
pub fn content_policy(is_live: bool) -> String {
    let data = if is_live { "connect-src 'self'; " } else { "" };
    let (script, style) = (policy_hash(SCRIPT), policy_hash(STYLE));
    format!(
        "default-src 'none'; {data}script-src '{script}'; style-src '{style}'; base-uri 'none'; form-action 'none'"
    )
}

pub fn render_page(title: &str, policy: &str, data: &PageData) -> String {
    // All values of the data have a JSON form.
    let data = to_string(data).unwrap_or_default();
    // Within a script element only `</` and `<!--` have a meaning.
    let data = data.replace('<', "\\u003c");
    let parts = [
        ("{title}", escape_html(title)),
        ("{version}", env!("CARGO_PKG_VERSION").into()),
        ("{policy}", policy.to_owned()),
        ("{style}", STYLE.into()),
        ("{script}", SCRIPT.into()),
        ("{data}", data),
    ];
    fill_template(&parts)
}

/// Fills the template in one pass, so that inserted text is not searched again.
fn fill_template(parts: &[(&str, String)]) -> String {
    let mut page = String::new();
    let mut rest = TEMPLATE;
    while let Some((before, behind)) = rest.split_once('{') {
        page.push_str(before);
        let part = parts.iter().find_map(|(name, text)| {
            let behind = behind.strip_prefix(name.trim_start_matches('{'))?;
            Some((text, behind))
        });
        match part {
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

/// Escapes text for content and attributes of HTML.
#[must_use]
pub fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

pub(crate) fn policy_hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod html_tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_ends_the_script() {
        let data = PageData::from_types(vec![
            "</script><script>alert(1)</script><!-- {script}".into(),
        ]);
        let page = render_page("a</title><b>", &content_policy(false), &data);
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
        let page = render_page(
            "",
            &content_policy(false),
            &PageData::from_types(Vec::new()),
        );
        for text in [policy_hash(STYLE), policy_hash(SCRIPT)] {
            assert!(page.contains(&format!("'{text}'")));
        }
        assert!(page.contains("default-src 'none'"));
        assert!(
            !page.contains("unsafe-inline") && !page.contains("http:") && !page.contains("https:")
        );
        assert!(!page.contains("connect-src"), "a file loads nothing");
        let live = content_policy(true);
        assert_eq!(
            live.replace("connect-src 'self'; ", ""),
            content_policy(false)
        );
    }
}
