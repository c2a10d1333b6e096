//! Instructions a call, counted by valgrind's callgrind with everything on one thread.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::category::Category;
use crate::scenario::{Runner, Scenario, Who, run};

/// Calls of one kind and the instructions that the library spent in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Calls.
    pub calls: u64,
    /// Instructions.
    pub instructions: u64,
}

/// Instructions a call in the steady state, by kind; kinds that are not called are left out. Two runs of different
/// length are subtracted, so that what happens once (rings, caches of names) does not count.
///
/// # Errors
/// valgrind is missing or fails.
pub fn per_call(
    runner: &Runner,
    who: Who,
    scenario: Scenario,
    mask: u64,
    scratch: &Path,
) -> Result<Vec<(Category, f64)>> {
    let (short, long) = if scenario == Scenario::Everything { (20, 120) } else { (200, 1_200) };
    let short = count(runner, who, scenario, mask, scratch, short)?;
    let long = count(runner, who, scenario, mask, scratch, long)?;
    let per_call = |category: &Category| {
        let (short, long) = (short.get(category.symbol()).copied().unwrap_or_default(), long.get(category.symbol())?);
        let calls = long.calls.checked_sub(short.calls).filter(|&calls| calls > 0)?;
        Some((*category, long.instructions.saturating_sub(short.instructions) as f64 / calls as f64))
    };
    Ok(Category::ALL.iter().filter_map(per_call).collect())
}

fn count(
    runner: &Runner,
    who: Who,
    scenario: Scenario,
    mask: u64,
    scratch: &Path,
    collectives: u64,
) -> Result<HashMap<String, Cost>> {
    let profile = scratch.join("callgrind.out");
    let to_file = format!("--callgrind-out-file={}", profile.display());
    let valgrind = ["valgrind", "--quiet", "--tool=callgrind", &to_file];
    let mut arguments = vec!["--inline".to_owned(), "--bulk".to_owned(), "-w".to_owned(), "0".to_owned()];
    arguments.extend(["-n".to_owned(), collectives.to_string()]);
    if scenario == Scenario::Everything {
        arguments.push("-b".to_owned());
    }
    run(&mut runner.command(&valgrind, who, scenario, mask, &arguments)?)?;
    let text = std::fs::read_to_string(&profile).with_context(|| format!("cannot read {}", profile.display()))?;
    Ok(parse(&text))
}

/// Reads callgrind's output: for each function of ours through which calls go, what its callees cost.
fn parse(text: &str) -> HashMap<String, Cost> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut costs: HashMap<String, Cost> = HashMap::new();
    let mut current: Option<&str> = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(function) = line.strip_prefix("fn=") {
            current = Some(resolve(&mut names, function)).filter(|name| name.starts_with("bench_call_"));
        } else if let Some(function) = line.strip_prefix("cfn=") {
            resolve(&mut names, function);
        } else if let Some(calls) = line.strip_prefix("calls=") {
            // The next line is the callee's inclusive cost: position, instructions.
            let cost = lines.next().unwrap_or_default();
            let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
            if let Some(name) = current {
                let entry = costs.entry(name.to_owned()).or_default();
                entry.calls += number(calls.split_whitespace().next());
                entry.instructions += number(cost.split_whitespace().nth(1));
            }
        }
    }
    costs
}

/// Names are written once, as `(id) name`, and then as `(id)`.
fn resolve<'t>(names: &mut HashMap<&'t str, &'t str>, text: &'t str) -> &'t str {
    match text.split_once(' ') {
        Some((id, name)) => {
            names.insert(id, name);
            name
        }
        None => names.get(text).copied().unwrap_or(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callees_are_added_up_by_caller() {
        let text = "\
version: 1
events: Ir
fn=(1) bench_call_coll_start
12 40
cob=(2) library.so
cfn=(3) start
calls=10 0
12 590
+1 20
fn=(4) other
cfn=(1)
calls=10 12
+3 650
fn=(1)
cfn=(3)
calls=2 0
12 110
";
        let costs = parse(text);
        assert_eq!(costs.len(), 1);
        assert_eq!(costs["bench_call_coll_start"], Cost { calls: 12, instructions: 700 });
    }
}
