use collander_config::{Drain, GpuTimer, Job, Ring, Selector};
use collander_event::plan_index;

use super::*;

pub(crate) fn config(sampling: Vec<SamplingRule>) -> Config {
    Config {
        enabled: true,
        capture: Capture {
            collectives: true,
            p2p: true,
            detail: Detail::CHANNELS,
            gpu_timer: GpuTimer::Auto,
            assume_ranks: 0,
        },
        ring: Ring { total_bytes: 64 << 20, large_bytes: 16 << 20, small_bytes: 1 << 20 },
        drain: Drain {
            period: std::time::Duration::from_millis(5),
            operation_timeout: std::time::Duration::from_secs(600),
            settle: std::time::Duration::from_millis(250),
            max_open: 262_144,
            max_orphans: 65_536,
        },
        labels: Vec::new(),
        sampling,
        sinks: Vec::new(),
        job: Job::default(),
    }
}

fn rule(collectives: &[Collective], bytes: std::ops::Range<u64>, keep: Keep) -> SamplingRule {
    SamplingRule {
        name: "r".into(),
        selector: Selector::default(),
        collectives: collectives.to_vec(),
        min_bytes: bytes.start,
        max_bytes: bytes.end,
        keep,
        detail: None,
        sinks: u32::MAX,
    }
}

fn word(plan: &Plan, collective: Collective, bytes: u64) -> PlanWord {
    PlanWord(plan.words[plan_index(collective as u8, bytes)])
}

#[test]
fn without_rules_all_is_kept_in_the_default_detail() {
    let rules = Rules::new(&config(Vec::new()));
    assert_eq!(rules.mask(), 0x46);
    let plan = rules.compile(&Communicator::default());
    for word in plan.words.iter().map(|word| PlanWord(*word)) {
        assert_eq!((word.rate(), word.detail(), word.sinks()), (Rate::All, Detail::CHANNELS, u32::MAX));
    }
}

#[test]
fn first_match_wins_and_covers_whole_classes() {
    let rules = Rules::new(&config(vec![
        rule(&[Collective::AllReduce], 0..1 << 20, Keep::OneIn(4)),
        rule(&[], 0..u64::MAX, Keep::None),
    ]));
    let plan = rules.compile(&Communicator::default());
    assert_eq!(word(&plan, Collective::AllReduce, 4096).rate(), Rate::OneIn(4));
    assert_eq!(word(&plan, Collective::AllReduce, 1 << 20).rate(), Rate::None);
    assert_eq!(word(&plan, Collective::Send, 0).rate(), Rate::None);
    assert!(plan.words.iter().all(|word| word & PlanWord::EXACT_CHECK == 0));
    assert!(plan.samples(Collective::AllReduce));
}

#[test]
fn a_class_covered_in_part_is_checked_exactly() {
    let mut narrow = rule(&[], 3000..5000, Keep::None);
    narrow.sinks = 2;
    let rules = Rules::new(&config(vec![narrow, rule(&[], 0..1 << 40, Keep::OneIn(3))]));
    let plan = rules.compile(&Communicator::default());
    for bytes in [2048, 3000, 4096, 5000] {
        let word = word(&plan, Collective::AllGather, bytes);
        assert_eq!((word.rate(), word.0 & PlanWord::EXACT_CHECK != 0), (Rate::OneIn(3), true), "{bytes}");
    }
    assert_eq!(word(&plan, Collective::AllGather, 1024).0 & PlanWord::EXACT_CHECK, 0);
    let exact = |bytes| rules.exact(&plan, Collective::AllGather, bytes).0.rate();
    assert_eq!([2999, 3000, 4999, 5000].map(exact), [Rate::OneIn(3), Rate::None, Rate::None, Rate::OneIn(3)]);
    assert_eq!(exact(1 << 41), Rate::All, "the default");
}

#[test]
fn every_word_agrees_with_the_exact_rules_or_says_so() {
    let rules = Rules::new(&config(vec![
        rule(&[Collective::Send, Collective::Recv], 100..1 << 13, Keep::OneIn(2)),
        rule(&[], 1 << 10..1 << 12, Keep::All),
        rule(&[Collective::Send], 0..u64::MAX, Keep::OneIn(7)),
    ]));
    let plan = rules.compile(&Communicator::default());
    for collective in [Collective::Send, Collective::Recv, Collective::AllReduce] {
        for bytes in [0, 1, 99, 100, 127, 128, 1023, 1024, 4095, 4096, 8191, 8192, 1 << 46, u64::MAX] {
            let (word, exact) = (word(&plan, collective, bytes), rules.exact(&plan, collective, bytes).0);
            if word.0 & PlanWord::EXACT_CHECK == 0 {
                assert_eq!(word, exact, "{collective:?} {bytes}");
            } else {
                assert!(permissiveness(word.rate()) >= permissiveness(exact.rate()), "{collective:?} {bytes}");
            }
        }
    }
}

#[test]
fn selectors_choose_the_rules_and_plans_are_shared() {
    let mut tp = rule(&[], 0..u64::MAX, Keep::None);
    tp.selector.labels = vec!["tp".into()];
    let mut rules = Rules::new(&config(vec![tp]));
    let tp = Communicator { label: "tp".into(), ..Communicator::default() };
    let (a, b, c) = (
        rules.plan_of(&tp),
        rules.plan_of(&Communicator::default()),
        rules.plan_of(&Communicator { ordinal: 9, ..Communicator::default() }),
    );
    assert_eq!(word(rules.plan(a), Collective::AllReduce, 8).rate(), Rate::None);
    assert_eq!(word(rules.plan(b), Collective::AllReduce, 8).rate(), Rate::All);
    assert!(b == c && a != b);
}

#[test]
fn capture_switches_and_details_make_the_mask() {
    let mut settings = config(vec![rule(&[], 0..u64::MAX, Keep::All)]);
    settings.capture.p2p = false;
    settings.sampling[0].detail = Some(Detail::STEP_LIST);
    let rules = Rules::new(&settings);
    assert_eq!(rules.mask(), 1 << 1 | 1 << 3 | 1 << 4 | 1 << 6);
    let plan = rules.compile(&Communicator::default());
    assert_eq!(word(&plan, Collective::Send, 8).rate(), Rate::None);
    assert!(word(&plan, Collective::AllReduce, 8).detail().contains(Detail::PROXY_OPERATIONS));
    settings.capture.collectives = false;
    assert_eq!(Rules::new(&settings).mask(), 0);
}

#[test]
fn a_rate_limit_changes_the_words() {
    let mut rules = Rules::new(&config(vec![rule(&[Collective::AllReduce], 0..u64::MAX, Keep::PerSecond(100))]));
    let plan = rules.plan_of(&Communicator::default());
    assert!(rules.adjust(0).is_empty() && !rules.adjusted());
    (0..1000).for_each(|_| rules.count(0));
    let changes = rules.adjust(1_000_000_000);
    assert_eq!(changes.len(), PLAN_SIZE_CLASSES);
    assert!(changes.iter().all(|(p, _, word)| *p == plan && PlanWord(*word).rate() == Rate::OneIn(4)));
    assert!(rules.adjusted());
}
