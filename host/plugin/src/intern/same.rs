//! How texts compare with what is remembered: sixteen bytes at once.

#[cfg(target_arch = "x86_64")]
mod by_cpu {
    use core::arch::x86_64::{__m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_load_si128, _mm_movemask_epi8, _mm_or_si128};

    use super::super::Text;

    /// All ones: the same.
    pub(in super::super) type Same = __m128i;

    /// # Safety
    /// `address .. address + 16` must lie in mapped, readable memory.
    #[inline(always)]
    pub(in super::super) unsafe fn same(text: &Text, address: usize) -> Same {
        let there: __m128i;
        // The bytes after a text's NUL may belong to no object that Rust knows: hence assembly, not a load of Rust's.
        // SAFETY: the caller promises that the memory is readable; nothing else is touched. The two arrays are aligned.
        unsafe {
            core::arch::asm!("movdqu {}, xmmword ptr [{}]", out(xmm_reg) there, in(reg) address, options(nostack, preserves_flags, readonly, pure));
            let bytes = _mm_load_si128((&raw const text.bytes).cast());
            let beyond = _mm_load_si128((&raw const text.beyond).cast());
            _mm_or_si128(_mm_cmpeq_epi8(there, bytes), beyond)
        }
    }

    #[inline(always)]
    pub(in super::super) fn both(a: Same, b: Same) -> Same {
        // SAFETY: SSE2 is in every x86-64.
        unsafe { _mm_and_si128(a, b) }
    }

    #[inline(always)]
    pub(in super::super) fn holds(same: Same) -> bool {
        // SAFETY: SSE2 is in every x86-64.
        unsafe { _mm_movemask_epi8(same) == 0xffff }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod by_cpu {
    use super::super::Text;

    /// Zero: the same.
    pub(in super::super) type Same = u64;

    /// # Safety
    /// `address .. address + 16` must lie in mapped, readable memory.
    #[inline(always)]
    pub(in super::super) unsafe fn same(text: &Text, address: usize) -> Same {
        let (low, high): (u64, u64);
        // The bytes after a text's NUL may belong to no object that Rust knows: hence assembly, not a load of Rust's.
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the caller promises that the memory is readable; nothing else is touched.
        unsafe {
            core::arch::asm!("ldp {}, {}, [{}]", out(reg) low, out(reg) high, in(reg) address, options(nostack, preserves_flags, readonly, pure));
        }
        #[cfg(not(target_arch = "aarch64"))]
        // SAFETY: the caller promises that the memory is readable.
        unsafe {
            (low, high) = (address as *const (u64, u64)).read_unaligned();
        }
        // SAFETY: arrays of sixteen bytes, aligned to sixteen.
        let ((a, b), (c, d)) = unsafe {
            ((&raw const text.bytes).cast::<(u64, u64)>().read(), (&raw const text.beyond).cast::<(u64, u64)>().read())
        };
        ((low ^ a) & !c) | ((high ^ b) & !d)
    }

    #[inline(always)]
    pub(in super::super) fn both(a: Same, b: Same) -> Same {
        a | b
    }

    #[inline(always)]
    pub(in super::super) fn holds(same: Same) -> bool {
        same == 0
    }
}

pub(super) use by_cpu::{both, holds, same};
