//! A small page of text: a template and a style, no script and no data.

use super::html::{escape_html, policy_hash};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
color:#1c1c1e;background:#fff}h2{font-size:1.1rem;margin:2rem 0 .3rem}p{margin:.3rem 0}\
pre{background:#f3f3f5;padding:.6rem;overflow-x:auto}\
@media(prefers-color-scheme:dark){body{color:#e8e8ea;background:#1c1c1e}pre{background:#2c2c2e}}";

/// A page with this body, which is HTML. Its policy allows its own style and nothing else.
#[must_use]
pub fn render_text_page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"lucce {}\">\n<title>{}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        policy_hash(STYLE),
        env!("CARGO_PKG_VERSION"),
        escape_html(title),
    )
}
