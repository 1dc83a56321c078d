//! The page of `lucce explain`: one file of HTML with a style and no script.

use lucce_page::{escape_html, render_text_page};

use super::explanation::{ExplainedFinding, Explanation};

impl Explanation<'_> {
    pub fn to_page(&self) -> String {
        let mut head = Vec::new();
        // A vector takes all that is written.
        let _ = self.head.write(&mut head);
        let mut body = String::from("<h1>lucce explain</h1>\n");
        let head = String::from_utf8_lossy(&head).into_owned();
        for line in head.lines().map(str::to_owned).chain(self.summary_lines()) {
            body.push_str(&format!("<p>{}</p>\n", escape_html(&line)));
        }
        for finding in &self.findings {
            finding.add_to_page(&mut body);
        }
        render_text_page("lucce explain", &body)
    }
}

impl ExplainedFinding<'_> {
    fn add_to_page(&self, body: &mut String) {
        let heading = format!("{} at {}", self.detector, self.line);
        body.push_str(&format!(
            "<section>\n<h2>{}</h2>\n<p>{}: {}</p>\n<pre>{}</pre>\n<p>counted: {}</p>\n<p>{}</p>\n<pre>{}</pre>\n</section>\n",
            escape_html(&heading),
            escape_html(&self.cost),
            escape_html(&self.finding),
            escape_html(&self.trace.join("\n")),
            escape_html(&self.counted),
            escape_html(&self.advice),
            escape_html(&self.command),
        ));
    }
}
