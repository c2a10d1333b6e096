//! Links in Markdown files: what they point to in the repository must be there, headings too.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result};

/// Checks all links of all Markdown files; appends what is wrong to `findings`.
///
/// # Errors
/// A file cannot be read.
pub fn check(root: &Path, files: &[PathBuf], findings: &mut Vec<String>) -> Result<()> {
    for file in files.iter().filter(|file| is_markdown(file)) {
        let text =
            std::fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {}", file.display()))?;
        for (line, link) in links(&text) {
            if let Some(problem) = problem(root, file, &text, &link) {
                findings.push(format!("{}:{line}: link to {link}: {problem}", file.display()));
            }
        }
    }
    Ok(())
}

fn is_markdown(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "md")
}

fn problem(root: &Path, file: &Path, text: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = link.split_once('#').map_or((link, None), |(path, heading)| (path, Some(heading)));
    if path.is_empty() {
        return heading.and_then(|heading| missing_heading(text, heading));
    }
    let Some(target) = inside(&file.parent().unwrap_or(Path::new("")).join(path)) else {
        return Some("outside the repository".to_owned());
    };
    let target = root.join(target);
    if !target.exists() {
        return Some("no such file".to_owned());
    }
    let heading = heading.filter(|_| is_markdown(&target))?;
    missing_heading(&std::fs::read_to_string(&target).unwrap_or_default(), heading)
}

/// The path without `.` and `..`; None if it leaves the repository.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => result.push(name),
            Component::ParentDir => {
                if !result.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(result)
}

fn missing_heading(text: &str, heading: &str) -> Option<String> {
    let found = outside_code(text).any(|(_, line)| {
        let title = line.trim_start_matches('#');
        title.len() < line.len() && anchor(title) == heading
    });
    (!found).then(|| format!("no heading #{heading}"))
}

/// A heading's anchor: lower case, words joined by hyphens, punctuation gone.
fn anchor(title: &str) -> String {
    title
        .trim()
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// Targets of `[text](target)` with their line numbers, outside code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in outside_code(text) {
        // Every second piece between backticks is code.
        for piece in line.split('`').step_by(2) {
            let mut rest = piece;
            while let Some(at) = rest.find("](") {
                rest = &rest[at + 2..];
                let Some(end) = rest.find(')') else { break };
                let target = rest[..end].split_whitespace().next().unwrap_or("");
                found.push((number, target.trim_matches(['<', '>']).to_owned()));
                rest = &rest[end..];
            }
        }
        // A link whose text is code: `[`x`](target)` is split above, so look for its end at a piece's beginning.
        for piece in line.split('`').skip(2).step_by(2) {
            if let Some(rest) = piece.strip_prefix("](")
                && let Some(end) = rest.find(')')
                && !found.iter().any(|(at, link)| *at == number && link == &rest[..end])
            {
                found.push((number, rest[..end].to_owned()));
            }
        }
    }
    found
}

/// Lines with their numbers from 1, without fenced code.
fn outside_code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_code() {
        let text = "[a](one.md) and [`b`](two.md#x)\n```text\n[c](three.md)\n```\n`[d](four.md)` [e](<five.md>)\n";
        let expected = [(1, "one.md"), (1, "two.md#x"), (5, "five.md")];
        assert_eq!(links(text), expected.map(|(line, link)| (line, link.to_owned())));
    }

    #[test]
    fn anchors_are_made_as_code_hosts_do() {
        assert_eq!(anchor(" What is written, where?"), "what-is-written-where");
        assert_eq!(missing_heading("# A `code` title\n", "a-code-title"), None);
        assert!(missing_heading("```\n# not a heading\n```\n", "not-a-heading").is_some());
    }

    #[test]
    fn paths_may_not_leave_the_repository() {
        assert_eq!(inside(Path::new("docs/../README.md")), Some(PathBuf::from("README.md")));
        assert_eq!(inside(Path::new("docs/../../x")), None);
        assert_eq!(inside(Path::new("/etc/passwd")), None);
    }
}
