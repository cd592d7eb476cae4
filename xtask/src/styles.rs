//! The page's style sheets for a shadow tree: with the host in the place of the root, and without what is not used.

use anyhow::{Context as _, Result};

/// Rewrites a style sheet. `:root` and `body` become the host; rules go whose classes are not all used, and those that
/// go by ids, which only the page has.
pub(crate) fn for_shadow_tree(css: &str, is_used: &dyn Fn(&str) -> bool) -> Result<String> {
    let css = without_comments(css)?;
    let mut out = String::new();
    let mut rest = css.trim();
    while !rest.is_empty() {
        let (head, body, after) = block(rest)?;
        let head = head.trim();
        if head.starts_with("@media") {
            let inner = for_shadow_tree(body, is_used)?;
            if !inner.is_empty() {
                out.push_str(&format!("{head}{{{inner}}}\n"));
            }
        } else if head.starts_with('@') {
            out.push_str(&format!("{head}{{{body}}}\n"));
        } else {
            let kept: Vec<String> =
                parts(head, ',').filter_map(|selector| kept(selector.trim(), is_used)).collect();
            if !kept.is_empty() {
                out.push_str(&format!("{}{{{}}}\n", kept.join(","), squeezed(body)));
            }
        }
        rest = after.trim_start();
    }
    Ok(out)
}

fn without_comments(css: &str) -> Result<String> {
    let mut out = String::new();
    let mut rest = css;
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        rest = after.split_once("*/").context("a comment has no end")?.1;
    }
    out.push_str(rest);
    Ok(out)
}

/// What is before a block, what is in it, what comes after it.
fn block(css: &str) -> Result<(&str, &str, &str)> {
    let (head, rest) = css.split_once('{').context("a rule without a block")?;
    let mut depth = 1;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok((head, &rest[..at], &rest[at + 1..]));
        }
    }
    Err(anyhow::anyhow!("the block of `{}` has no end", head.trim()))
}

/// Splits where the mark is not in parentheses.
fn parts(text: &str, mark: char) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == mark && depth == 0
    })
}

fn kept(selector: &str, is_used: &dyn Fn(&str) -> bool) -> Option<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let names_after =
        |mark: char| selector.split(mark).skip(1).map(move |rest| rest.split(|c| !is_name(c)).next());
    if selector.contains('#') || !names_after('.').flatten().all(is_used) {
        return None;
    }
    if selector == "body" {
        return Some(":host".to_owned());
    }
    let Some((before, after)) = selector.split_once(":root") else { return Some(selector.to_owned()) };
    let end = parts(after, ' ').next().map_or(after.len(), str::len);
    let (own, below) = after.split_at(end);
    let host = if own.is_empty() { ":host".to_owned() } else { format!(":host({own})") };
    Some(format!("{before}{host}{below}"))
}

fn squeezed(body: &str) -> String {
    body.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_takes_the_place_of_the_root_and_what_is_not_used_goes() {
        let css = "/* all */ :root { --a: 1;\n --b: 2 }
            :root[data-theme=\"dark\"] .button.danger, .login { color: red }
            @media (prefers-color-scheme: dark) { :root:not([data-theme=\"light\"]) { --a: 3 } .login { top: 0 } }
            @media (max-width: 48rem) { .login { top: 0 } }
            @keyframes spin { to { transform: rotate(1turn); } }
            body { color: var(--a) }
            #content { top: 0 }
            .button:not(.danger, .login) { top: 0 }
            .button, h1 { top: 0 }";
        let used = |class: &str| ["button", "danger"].contains(&class);
        assert_eq!(
            for_shadow_tree(css, &used).unwrap(),
            ":host{--a: 1; --b: 2}\n\
             :host([data-theme=\"dark\"]) .button.danger{color: red}\n\
             @media (prefers-color-scheme: dark){:host(:not([data-theme=\"light\"])){--a: 3}\n}\n\
             @keyframes spin{ to { transform: rotate(1turn); } }\n\
             :host{color: var(--a)}\n\
             .button,h1{top: 0}\n"
        );
        assert!(for_shadow_tree("a { b", &used).is_err());
        assert!(for_shadow_tree("/* a", &used).is_err());
    }
}
