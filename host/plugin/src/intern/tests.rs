use super::*;

#[test]
fn content_decides_not_the_address() {
    startup::rings_for_tests();
    let mut cache = NameCache::new();
    let mut scratch = [0u8; 64];
    let mut at = |cache: &mut NameCache, text: &str| {
        scratch[..text.len()].copy_from_slice(text.as_bytes());
        scratch[text.len()] = 0;
        // SAFETY: a NUL-terminated text in `scratch`.
        unsafe { cache.name(scratch.as_ptr().cast()) }
    };
    let texts =
        ["AllReduce", "AllGather", "AllGatherV", "LL", "LL128", "Send", "ncclBfloat16", "ncclFloat8e4m3", "x", ""];
    let first: Vec<Name> = texts.iter().map(|t| at(&mut cache, t)).collect();
    for round in 0..3 {
        for (n, text) in texts.iter().enumerate() {
            assert_eq!(at(&mut cache, text), first[n], "{text} in round {round}");
            assert_eq!(at(&mut cache, text), first[n], "{text} again");
        }
    }
    for (n, a) in first.iter().enumerate() {
        assert!(first.iter().skip(n + 1).all(|b| a.code != b.code), "{:?}", texts[n]);
    }
    assert_eq!(first[0].collective, Collective::AllReduce as u8);
    assert_eq!(first[6].size, 2);
    assert_eq!(first[9].code, 0);
    let long = "a name that is longer than sixteen bytes";
    assert_eq!(at(&mut cache, long), at(&mut cache, long));
    // SAFETY: NULL is allowed.
    assert_eq!(unsafe { cache.name(std::ptr::null()) }, Name::default());
}

#[test]
fn fours_and_pairs_are_known_until_a_text_changes() {
    startup::rings_for_tests();
    let mut cache = NameCache::new();
    let texts = std::cell::RefCell::new([[0u8; 16]; 4]);
    let write = |n: usize, text: &str| {
        let place = &mut texts.borrow_mut()[n];
        place.fill(b'?');
        place[..text.len()].copy_from_slice(text.as_bytes());
        place[text.len()] = 0;
    };
    let base = texts.as_ptr().cast::<c_char>();
    let at = [0, 1, 2, 3].map(|n| base.wrapping_add(n * 16).cast_const());
    for (n, text) in ["AllReduce", "ncclFloat8e4m3", "RING", "SIMPLE"].into_iter().enumerate() {
        write(n, text);
    }
    // SAFETY: four NUL-terminated texts.
    unsafe {
        assert_eq!(cache.known_four(at), None);
        let first = cache.four(at);
        assert_eq!((first.collective, first.size), (Collective::AllReduce as usize, 1));
        assert_eq!(first.codes, u32::from_le_bytes(at.map(|text| cache.name(text).code)));
        assert!(cache.known_four(at) == Some(&first) || at.iter().any(|text| *text as usize & 4095 > 4080));
        for (n, other) in ["AllGather", "ncclFloat32", "RINGS", "S"].into_iter().enumerate() {
            let before = texts.borrow()[n];
            write(n, other);
            assert_eq!(cache.known_four(at), None, "{other}");
            assert_ne!(cache.four(at).codes, first.codes, "{other}");
            texts.borrow_mut()[n] = before;
            assert_eq!(cache.four(at), first);
        }
        let pair = cache.pair(at[0], at[1]);
        assert_eq!(pair.collective, Collective::AllReduce as u8);
        assert_eq!(cache.pair(at[0], at[1]), pair);
        write(1, "ncclInt8");
        assert_eq!(cache.known_pair(at[0], at[1]), None);
        assert_ne!(cache.pair(at[0], at[1]).datatype, pair.datatype);
    }
}

#[test]
fn a_text_at_the_end_of_a_page_is_read_no_further() {
    startup::rings_for_tests();
    let mut cache = NameCache::new();
    // SAFETY: two fresh pages, the second without access; the text lies whole in the first.
    unsafe {
        let pages = libc::mmap(
            std::ptr::null_mut(),
            8192,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        assert_ne!(pages, libc::MAP_FAILED);
        assert_eq!(libc::mprotect(pages.byte_add(4096), 4096, libc::PROT_NONE), 0);
        for text in ["Ring", "AllReduce", "LL"] {
            let place = pages.cast::<u8>().add(4096 - text.len() - 1);
            std::ptr::copy_nonoverlapping(text.as_ptr(), place, text.len());
            place.add(text.len()).write(0);
            let once = cache.name(place.cast());
            assert_eq!(cache.name(place.cast()), once);
            assert_ne!(once.code, 0);
        }
    }
}

#[test]
fn one_address_with_texts_that_take_turns() {
    startup::rings_for_tests();
    let mut cache = NameCache::new();
    let mut scratch = [[0u8; 16]; 2];
    let base = scratch.as_mut_ptr();
    let mut first = std::collections::HashMap::new();
    for round in 0..40 {
        for function in ["Send", "Recv", "AllReduce"] {
            for datatype in ["ncclInt8", "ncclFloat32"] {
                // SAFETY: two texts of our own, NUL-terminated.
                let (pair, four) = unsafe {
                    for (n, text) in [function, datatype].into_iter().enumerate() {
                        let place = base.add(n).cast::<u8>();
                        std::ptr::copy_nonoverlapping(text.as_ptr(), place, text.len());
                        place.add(text.len()).write(0);
                    }
                    let (a, b) = (base.cast::<c_char>().cast_const(), base.add(1).cast::<c_char>().cast_const());
                    (cache.pair(a, b), cache.four([a, b, c"RING".as_ptr(), c"LL".as_ptr()]))
                };
                assert_eq!(pair.collective, Collective::from_text(function) as u8, "{function} in round {round}");
                assert_eq!(pair.size, Datatype::from_text(datatype).size(), "{datatype} in round {round}");
                assert_eq!((four.collective, four.size), (pair.collective as usize, u64::from(pair.size)));
                assert_eq!(*first.entry((function, datatype)).or_insert((pair, four)), (pair, four));
            }
        }
    }
}
