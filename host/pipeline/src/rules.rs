//! Sampling rules, compiled into plan words.
//!
//! The first rule that matches an operation decides it; what none matches is kept in `capture.detail`. A plan word stands
//! for a whole class (collective, power of two of sizes). Where a rule's byte range covers a class only in part, the word is
//! the most permissive of the rules in question with [`PlanWord::EXACT_CHECK`], and the assembler asks [`Rules::exact`].

use collander_config::{Capture, Config, Keep, SamplingRule};
use collander_event::{
    Collective, Communicator, Detail, EventKind, PLAN_COLLECTIVES, PLAN_SIZE_CLASSES, PLAN_WORDS, PlanWord, Rate,
};
use rustc_hash::FxHashMap;

use crate::labels::selects;
use crate::rate_control::RateControl;

/// No rule: the default decides.
pub const NO_RULE: u16 = u16::MAX;

/// The plan of all communicators that the same rules match.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Plan words by `collander_event::plan_index`.
    pub words: Box<[u64; PLAN_WORDS]>,
    /// The rule behind each word; where several are in question the first.
    rules: Box<[u16; PLAN_WORDS]>,
    /// Collectives of which some are left out, a bit each.
    sampled: u16,
    /// The rules that match the communicator, in order.
    matching: Vec<u16>,
}

impl Plan {
    /// Rule behind a word, by index; `NO_RULE` for the default.
    #[must_use]
    pub fn rule(&self, index: usize) -> u16 {
        self.rules.get(index).copied().unwrap_or(NO_RULE)
    }

    /// Whether some of this collective are left out: gaps in their sequence numbers are ours.
    #[must_use]
    pub const fn samples(&self, collective: Collective) -> bool {
        self.sampled & (1 << collective as u16) != 0
    }
}

/// A change of one plan word, to be stored in the communicator's table on the hot side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanChange {
    /// Ordinal of the communicator.
    pub communicator: u32,
    /// Index of the word.
    pub index: usize,
    /// The new word.
    pub word: u64,
}

/// All rules, and the current rates of those that say "at most so many a second".
#[derive(Clone, Debug)]
pub struct Rules {
    rules: Vec<SamplingRule>,
    capture: Capture,
    rates: Vec<RateControl>,
    plans: Vec<Plan>,
    by_matching: FxHashMap<Vec<u16>, u32>,
}

/// Sizes of a class, from inclusive to exclusive; `u64::MAX` stands for no bound.
const fn class_bounds(class: usize) -> (u64, u64) {
    match class {
        0 => (0, 1),
        _ if class == PLAN_SIZE_CLASSES - 1 => (1 << (class - 1), u64::MAX),
        _ => (1 << (class - 1), 1 << class),
    }
}

/// Greater keeps more.
const fn permissiveness(rate: Rate) -> u8 {
    match rate {
        Rate::None => 0,
        Rate::OneIn(n) => 64 - if n > 63 { 63 } else { n },
        Rate::All => 255,
    }
}

impl Rules {
    /// Takes the rules of a configuration. Rules beyond the 65 534th are ignored.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let rules: Vec<_> = config.sampling.iter().take(usize::from(NO_RULE) - 1).cloned().collect();
        let rates = rules
            .iter()
            .map(|rule| RateControl::new(if let Keep::PerSecond(limit) = rule.keep { Some(limit) } else { None }))
            .collect();
        Self { rules, capture: config.capture.clone(), rates, plans: Vec::new(), by_matching: FxHashMap::default() }
    }

    /// The bits of NCCL's activation mask that the capture settings and all rules together want. The caller keeps those
    /// that the interface version knows.
    #[must_use]
    pub fn mask(&self) -> u32 {
        let mut mask = 0;
        if self.capture.collectives {
            mask |= EventKind::Coll.bit();
        }
        if self.capture.p2p {
            mask |= EventKind::P2p.bit();
        }
        if mask == 0 {
            return 0;
        }
        let detail = self
            .rules
            .iter()
            .filter(|rule| rule.keep != Keep::None)
            .filter_map(|rule| rule.detail)
            .fold(self.capture.detail, Detail::union)
            .completed();
        if detail.contains(Detail::PHASES) && self.capture.collectives {
            mask |= EventKind::CeColl.bit();
        }
        mask | detail.mask()
    }

    /// The plan table of a communicator with the rates of now. For `init`, on any thread; the assembler has its own.
    #[must_use]
    pub fn compile(&self, communicator: &Communicator) -> Plan {
        self.build(self.matching(communicator))
    }

    /// Index of the plan of a communicator, made if it is new.
    pub(crate) fn plan_of(&mut self, communicator: &Communicator) -> u32 {
        let matching = self.matching(communicator);
        if let Some(index) = self.by_matching.get(&matching) {
            return *index;
        }
        let index = self.plans.len() as u32;
        self.plans.push(self.build(matching.clone()));
        self.by_matching.insert(matching, index);
        index
    }

    /// A plan by index.
    pub(crate) fn plan(&self, index: u32) -> &Plan {
        &self.plans[index as usize]
    }

    /// Whether any rate is not what `compile` of a fresh `Rules` would have.
    pub(crate) fn adjusted(&self) -> bool {
        self.rates.iter().any(|rate| rate.n() != 0)
    }

    fn matching(&self, communicator: &Communicator) -> Vec<u16> {
        (0u16..).zip(&self.rules).filter(|(_, rule)| selects(&rule.selector, communicator)).map(|(i, _)| i).collect()
    }

    fn build(&self, matching: Vec<u16>) -> Plan {
        let mut words = Box::new([0; PLAN_WORDS]);
        let mut rules = Box::new([NO_RULE; PLAN_WORDS]);
        let mut sampled = 0;
        for (c, collective) in Collective::ALL.into_iter().enumerate().take(PLAN_COLLECTIVES) {
            for class in 0..PLAN_SIZE_CLASSES {
                let (word, rule) = self.class_word(&matching, collective, class);
                let index = c * PLAN_SIZE_CLASSES + class;
                words[index] = word.0;
                rules[index] = rule;
                if word.rate() != Rate::All || word.0 & PlanWord::EXACT_CHECK != 0 {
                    sampled |= 1 << c;
                }
            }
        }
        Plan { words, rules, sampled, matching }
    }

    fn class_word(&self, matching: &[u16], collective: Collective, class: usize) -> (PlanWord, u16) {
        if !self.captures(collective) {
            return (PlanWord::new(Rate::None, Detail(0), 0), NO_RULE);
        }
        let (from, to) = class_bounds(class);
        let mut found: Option<(Rate, Detail, u32, u16)> = None;
        let mut count = 0;
        let mut decided = false;
        for index in matching {
            let rule = &self.rules[usize::from(*index)];
            if !applies(rule, collective) || rule.max_bytes <= from || (to != u64::MAX && rule.min_bytes >= to) {
                continue;
            }
            found = Some(merge(found, self.decision(*index)));
            count += 1;
            if rule.min_bytes <= from && rule.max_bytes >= to {
                decided = true;
                break;
            }
        }
        if !decided {
            found = Some(merge(found, self.decision(NO_RULE)));
            count += 1;
        }
        let (rate, detail, sinks, rule) = found.unwrap_or(self.decision(NO_RULE));
        let mut word = PlanWord::new(rate, detail, sinks);
        if count > 1 {
            word.0 |= PlanWord::EXACT_CHECK;
        }
        (word, rule)
    }

    fn decision(&self, rule: u16) -> (Rate, Detail, u32, u16) {
        let Some(found) = self.rules.get(usize::from(rule)) else {
            return (Rate::All, self.capture.detail.completed(), u32::MAX, NO_RULE);
        };
        let rate = match found.keep {
            Keep::All => Rate::All,
            Keep::None => Rate::None,
            Keep::OneIn(n) => Rate::OneIn(n.min(40)),
            Keep::PerSecond(_) => match self.rates[usize::from(rule)].n() {
                0 => Rate::All,
                n => Rate::OneIn(n),
            },
        };
        (rate, found.detail.unwrap_or(self.capture.detail).completed(), found.sinks, rule)
    }

    const fn captures(&self, collective: Collective) -> bool {
        if collective.is_p2p() { self.capture.p2p } else { self.capture.collectives }
    }

    /// What the rules say of an operation whose bytes are known: the word, and the rule behind it.
    #[must_use]
    pub fn exact(&self, plan: &Plan, collective: Collective, bytes: u64) -> (PlanWord, u16) {
        if !self.captures(collective) {
            return (PlanWord::new(Rate::None, Detail(0), 0), NO_RULE);
        }
        let rule = plan
            .matching
            .iter()
            .copied()
            .find(|index| {
                let rule = &self.rules[usize::from(*index)];
                applies(rule, collective)
                    && rule.min_bytes <= bytes
                    && (bytes < rule.max_bytes || rule.max_bytes == u64::MAX)
            })
            .unwrap_or(NO_RULE);
        let (rate, detail, sinks, rule) = self.decision(rule);
        (PlanWord::new(rate, detail, sinks), rule)
    }

    /// Counts an operation that a rule kept; it stands for all that the rule's rate left out.
    #[inline]
    pub(crate) fn count(&mut self, rule: u16) {
        if let Some(rate) = self.rates.get_mut(usize::from(rule)) {
            rate.count();
        }
    }

    /// Adjusts the rates of "at most so many a second" to what was seen. `now_ns`: any clock that goes forward. Returns the
    /// words that change: (plan, index, word).
    pub(crate) fn adjust(&mut self, now_ns: u64) -> Vec<(u32, usize, u64)> {
        let mut changed = false;
        for rate in &mut self.rates {
            changed |= rate.adjust(now_ns);
        }
        let mut changes = Vec::new();
        if changed {
            for index in 0..self.plans.len() {
                let fresh = self.build(self.plans[index].matching.clone());
                for (at, (old, new)) in self.plans[index].words.iter().zip(fresh.words.iter()).enumerate() {
                    if old != new {
                        changes.push((index as u32, at, *new));
                    }
                }
                self.plans[index] = fresh;
            }
        }
        changes
    }
}

fn applies(rule: &SamplingRule, collective: Collective) -> bool {
    rule.collectives.is_empty() || rule.collectives.contains(&collective)
}

fn merge(found: Option<(Rate, Detail, u32, u16)>, next: (Rate, Detail, u32, u16)) -> (Rate, Detail, u32, u16) {
    let Some(found) = found else { return next };
    let rate = if permissiveness(next.0) > permissiveness(found.0) { next.0 } else { found.0 };
    (rate, found.1.union(next.1), found.2 | next.2, found.3)
}

#[cfg(test)]
pub(crate) mod tests;
