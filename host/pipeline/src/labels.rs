//! Selectors: which communicators a rule is about, and the labels that rules give them.

use collander_config::{LabelRule, Selector};
use collander_event::Communicator;

/// Whether `text` matches `pattern`: `*` any run of characters, `?` any one, `[a-z]`, `[abc]`, `[!a]` one of (not of) a set,
/// `\` takes the next character literally. A `[` that is never closed stands for itself. Linear in practice, never
/// exponential: only the last `*` is tried again.
#[must_use]
pub fn glob_matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    // Where to go on when what follows the last `*` did not match: after the star, one character further.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&'*') {
            retry = Some((p + 1, t));
            p += 1;
            continue;
        }
        if let Some(next) = one_matches(&pattern, p, text[t]) {
            (p, t) = (next, t + 1);
            continue;
        }
        match retry {
            Some((star, from)) => {
                retry = Some((star, from + 1));
                (p, t) = (star, from + 1);
            }
            None => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Whether the one-character pattern at `p` takes `c`; where the pattern goes on.
fn one_matches(pattern: &[char], p: usize, c: char) -> Option<usize> {
    match *pattern.get(p)? {
        '?' => Some(p + 1),
        '\\' if p + 1 < pattern.len() => (pattern[p + 1] == c).then_some(p + 2),
        '[' => match set_matches(pattern, p, c) {
            Some((matches, next)) => matches.then_some(next),
            None => (c == '[').then_some(p + 1),
        },
        other => (other == c).then_some(p + 1),
    }
}

/// A set `[…]` that opens at `p`: whether it takes `c`, and where it ends. None: it is never closed.
fn set_matches(pattern: &[char], p: usize, c: char) -> Option<(bool, usize)> {
    let negated = matches!(pattern.get(p + 1), Some('!' | '^'));
    let first = p + 1 + usize::from(negated);
    // A `]` right at the beginning belongs to the set.
    let close = (first + 1..pattern.len()).find(|i| pattern[*i] == ']')?;
    let set = &pattern[first..close];
    let mut found = false;
    let mut i = 0;
    while i < set.len() {
        if i + 2 < set.len() && set[i + 1] == '-' {
            found |= (set[i]..=set[i + 2]).contains(&c);
            i += 3;
        } else {
            found |= set[i] == c;
            i += 1;
        }
    }
    Some((found != negated, close + 1))
}

/// Whether a selector is about this communicator. What a selector asks for and the communicator does not know (ranks in v1
/// to v3) does not match.
#[must_use]
pub fn selects(selector: &Selector, communicator: &Communicator) -> bool {
    let any = |globs: &[String], text: &str| globs.is_empty() || globs.iter().any(|glob| glob_matches(glob, text));
    let within = |range: Option<(u32, u32)>, value: Option<u32>| match (range, value) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some((from, to)), Some(value)) => (from..=to).contains(&value),
    };
    any(&selector.names, &communicator.name)
        && (selector.ids.is_empty() || any(&selector.ids, &format!("{:#018x}", communicator.hash)))
        && any(&selector.labels, &communicator.label)
        && within(selector.ranks, communicator.ranks)
        && within(selector.nodes, communicator.nodes)
        && within(selector.rank, u32::try_from(communicator.rank).ok())
        && within(selector.ordinal, Some(communicator.ordinal))
}

/// The label that the rules give a communicator: the first that matches; "" if none does.
#[must_use]
pub fn label_of<'r>(rules: &'r [LabelRule], communicator: &Communicator) -> &'r str {
    rules.iter().find(|rule| selects(&rule.selector, communicator)).map_or("", |rule| &rule.label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("tp_*", "tp_0", true),
            ("tp_*", "xtp_0", false),
            ("*tp*", "a tp b", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[a-c]x", "dx", false),
            ("[!a-c]x", "dx", true),
            ("[!a]", "a", false),
            ("[]]", "]", true),
            ("[", "[", true),
            ("a[b", "a[b", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("*a*a*a*a*a*a*a*a*b", &"a".repeat(2000), false),
            ("é*", "école", true),
            ("0x00000000000000ff", "0x00000000000000ff", true),
            ("*.*.c", "a.b.c.b.c", true),
        ] {
            assert_eq!(glob_matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn selectors() {
        let communicator = Communicator {
            ordinal: 3,
            hash: 0xff,
            name: "mp_group".into(),
            label: "tp".into(),
            rank: 2,
            ranks: Some(8),
            nodes: None,
            ..Communicator::default()
        };
        let matches = |change: fn(&mut Selector)| {
            let mut selector = Selector::default();
            change(&mut selector);
            selects(&selector, &communicator)
        };
        assert!(matches(|_| ()));
        assert!(matches(|s| s.names = vec!["x".into(), "mp*".into()]));
        assert!(!matches(|s| s.names = vec!["x".into()]));
        assert!(matches(|s| s.ids = vec!["0x00000000000000f?".into()]));
        assert!(!matches(|s| s.ids = vec!["0x0".into()]));
        assert!(matches(|s| s.labels = vec!["tp".into()]));
        assert!(matches(|s| s.ranks = Some((8, 8))) && !matches(|s| s.ranks = Some((9, 99))));
        assert!(!matches(|s| s.nodes = Some((0, 99))), "not known: no match");
        assert!(matches(|s| s.rank = Some((0, 2))) && matches(|s| s.ordinal = Some((3, 3))));
    }

    #[test]
    fn first_label_wins() {
        let rule = |ranks, label: &str| LabelRule {
            selector: Selector { ranks: Some(ranks), ..Selector::default() },
            label: label.into(),
        };
        let rules = [rule((2, 4), "tp"), rule((4, 8), "dp")];
        let of = |ranks| label_of(&rules, &Communicator { ranks: Some(ranks), ..Communicator::default() });
        assert_eq!([of(4), of(8), of(16)], ["tp", "dp", ""]);
    }
}
