//! Which events NCCL calls with a plugin's mask: a type is called if any bit of its row is on.

use collander_event::EventKind;

const fn bits(kinds: &[EventKind]) -> u32 {
    let (mut mask, mut n) = (0, 0);
    while n < kinds.len() {
        mask |= kinds[n].bit();
        n += 1;
    }
    mask
}

use EventKind::{
    CeBatch, CeColl, CeSync, Coll, CollApi, Group, GroupApi, KernelCh, KernelLaunch, KernelPhase, NetPlugin, P2p,
    P2pApi, ProxyCtrl, ProxyOp, ProxyStep,
};

/// A kind of event, the first version of the interface that has it, and the bits any of which brings it.
pub const RULES: [(EventKind, u8, u32); 16] = [
    (GroupApi, 5, 0xffff & !bits(&[ProxyCtrl])),
    (CollApi, 5, bits(&[CollApi, Coll, ProxyOp, ProxyStep, KernelCh, NetPlugin, KernelPhase, CeColl, CeSync, CeBatch])),
    (P2pApi, 5, bits(&[P2pApi, P2p, ProxyOp, ProxyStep, KernelCh, NetPlugin, KernelPhase])),
    (KernelLaunch, 5, bits(&[KernelLaunch])),
    (Group, 1, bits(&[Group, Coll, P2p, ProxyOp, ProxyStep, KernelCh, NetPlugin, KernelPhase])),
    (Coll, 1, bits(&[Coll, ProxyOp, ProxyStep, KernelCh, NetPlugin, KernelPhase])),
    (P2p, 1, bits(&[P2p, ProxyOp, ProxyStep, KernelCh, NetPlugin, KernelPhase])),
    (ProxyOp, 1, bits(&[ProxyOp, ProxyStep, NetPlugin])),
    (ProxyStep, 1, bits(&[ProxyStep, NetPlugin])),
    (KernelCh, 3, bits(&[KernelCh, KernelPhase])),
    (ProxyCtrl, 1, bits(&[ProxyCtrl])),
    (NetPlugin, 3, bits(&[NetPlugin])),
    (CeColl, 6, bits(&[CeColl, CeSync, CeBatch])),
    (CeSync, 6, bits(&[CeSync])),
    (CeBatch, 6, bits(&[CeBatch])),
    (KernelPhase, 7, bits(&[KernelPhase])),
];

/// NCCL 2.27.7 differs in two rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// NetPlugin alone brings no P2p, and a ProxyOp with a NULL handle has no ProxyStep.
    pub nccl_2_27_7: bool,
}

impl Quirks {
    /// Of a version of NCCL, as `2.27.7`.
    #[must_use]
    pub fn of(nccl: &str) -> Self {
        Self { nccl_2_27_7: nccl == "2.27.7" }
    }
}

/// Whether NCCL calls for an event of this kind, with this mask, over this version of the interface.
#[must_use]
pub const fn is_called(kind: EventKind, mask: u32, api: u8, quirks: Quirks) -> bool {
    let mask = mask & EventKind::known_mask(api);
    let mut n = 0;
    while n < RULES.len() {
        let (row, since, mut any) = RULES[n];
        if row as u8 == kind as u8 {
            if quirks.nccl_2_27_7 && row as u8 == P2p as u8 {
                any &= !bits(&[NetPlugin]);
            }
            return api >= since && mask & any != 0;
        }
        n += 1;
    }
    false
}

/// Whether the version of the interface has the state.
#[must_use]
pub const fn has_state(state: u8, api: u8) -> bool {
    match state {
        0..=7 => api <= 3,
        8..=18 => true,
        19 | 20 | 22 => api >= 4,
        21 => api >= 3,
        23 | 24 => api >= 5,
        25..=30 => api >= 6,
        31 => api >= 7,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_come_unasked_and_zero_silences_all() {
        let called = |mask, api| {
            EventKind::ALL.into_iter().filter(|kind| is_called(*kind, mask, api, Quirks::default())).collect::<Vec<_>>()
        };
        assert_eq!(called(0, 7), []);
        assert_eq!(called(KernelCh.bit(), 4), [Group, Coll, P2p, KernelCh]);
        assert_eq!(called(KernelCh.bit(), 7), [Group, Coll, P2p, KernelCh, GroupApi, CollApi, P2pApi]);
        assert_eq!(called(KernelCh.bit(), 2), []);
        assert_eq!(called(KernelPhase.bit(), 6), []);
        assert_eq!(called(KernelPhase.bit(), 7).len(), 8);
        assert_eq!(called(ProxyCtrl.bit(), 7), [ProxyCtrl]);
        assert_eq!(called(CeSync.bit(), 7), [GroupApi, CollApi, CeColl, CeSync]);
        assert_eq!(called(KernelLaunch.bit(), 5), [GroupApi, KernelLaunch]);
        assert!(!is_called(P2p, NetPlugin.bit(), 4, Quirks::of("2.27.7")));
        assert!(is_called(P2p, NetPlugin.bit(), 4, Quirks::of("2.28.9")));
    }

    #[test]
    fn every_kind_has_a_row_that_its_own_bit_brings() {
        for kind in EventKind::ALL {
            assert!(is_called(kind, kind.bit(), 7, Quirks::default()), "{kind:?}");
        }
    }
}
