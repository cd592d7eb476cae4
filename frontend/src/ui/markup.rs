//! Markup as text, for what is drawn anew as a whole many times a second: one text weighs far less in the page than a
//! tree of views, and the browser reads it faster than it is told node by node. What people have written goes through
//! [`Markup::text`] only.

/// Markup that is being written.
#[derive(Default)]
pub struct Markup(String);

impl Markup {
    /// Markup as it stands: nothing that somebody has typed.
    pub fn raw(mut self, markup: &str) -> Self {
        self.0.push_str(markup);
        self
    }

    /// A text, or the value of an attribute between double quotes; whatever is in it stays text.
    pub fn text(mut self, text: &str) -> Self {
        for letter in text.chars() {
            match letter {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                other => self.0.push(other),
            }
        }
        self
    }

    /// An element with a text in it: `start` is its tag with attributes, `<td class="number">`, `end` what closes it.
    pub fn element(self, start: &str, text: &str, end: &str) -> Self {
        self.raw(start).text(text).raw(end)
    }

    /// What was written.
    pub fn done(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Markup;

    #[test]
    fn what_people_have_written_stays_text() {
        let name = "<img src=x onerror=\"alert(1)\"> & 香港'";
        let cell = Markup::default().element("<td>", name, "</td>").done();
        assert_eq!(cell, "<td>&lt;img src=x onerror=&quot;alert(1)&quot;&gt; &amp; 香港'</td>");
    }
}
