//! Members of v5 to v7's descriptors, read when `callbacks` needs them.

use std::ffi::c_char;

use collander_abi::v7::Descriptor;

use super::{number, read};
use crate::callbacks::{ApiSource, CollSource};

/// Makes the functions of a `CollSource` or `ApiSource` over a descriptor.
macro_rules! members {
    ($($name:ident: $type:ty = |$d:ident| $read:expr;)+) => {
        $(
            #[inline(always)]
            fn $name(self) -> $type {
                let $d = self.0;
                // SAFETY: the descriptor is valid, of this kind and version (promised to `at`).
                unsafe { $read }
            }
        )+
    };
}

/// A CollApi's members.
#[derive(Clone, Copy)]
pub(super) struct CollApiAt<const API: u8>(*const Descriptor);

impl<const API: u8> CollApiAt<API> {
    /// # Safety
    /// A descriptor of this kind and of version `API`, valid as long as the result is used.
    #[inline(always)]
    pub(super) const unsafe fn at(d: *const Descriptor) -> Self {
        Self(d)
    }
}

impl<const API: u8> ApiSource for CollApiAt<API> {
    members! {
        parent: u64 = |d| number(read!(d.parent_obj));
        function: *const c_char = |d| read!(d.payload.coll_api.func);
        datatype: *const c_char = |d| read!(d.payload.coll_api.datatype);
        count: u64 = |d| read!(d.payload.coll_api.count) as u64;
        root: i32 = |d| read!(d.payload.coll_api.root);
        stream: u64 = |d| number(read!(d.payload.coll_api.stream));
        captured: bool = |d| read!(d.payload.coll_api.graph_captured) != 0;
        user_tag: u64 = |d| if API >= 7 { read!(d.payload.coll_api.user_tag) } else { 0 };
    }
}

/// A Coll's members.
#[derive(Clone, Copy)]
pub(super) struct CollAt<const API: u8>(*const Descriptor);

impl<const API: u8> CollAt<API> {
    /// # Safety
    /// A descriptor of this kind and of version `API`, valid as long as the result is used.
    #[inline(always)]
    pub(super) const unsafe fn at(d: *const Descriptor) -> Self {
        Self(d)
    }
}

impl<const API: u8> CollSource for CollAt<API> {
    members! {
        parent: u64 = |d| number(read!(d.parent_obj));
        texts: [*const c_char; 4] = |d| [
            read!(d.payload.coll.func),
            read!(d.payload.coll.datatype),
            read!(d.payload.coll.algo),
            read!(d.payload.coll.proto),
        ];
        count: u64 = |d| read!(d.payload.coll.count) as u64;
        sequence: u64 = |d| read!(d.payload.coll.seq_number);
        root: i32 = |d| read!(d.payload.coll.root);
        // They lie side by side (asserted in `places`).
        channels_and_warps: u16 = |d| (&raw const (*d).payload.coll.n_channels).cast::<u16>().read();
        in_place: bool = |d| read!(d.payload.coll.send_buff) == read!(d.payload.coll.recv_buff).cast_const();
        is_unusual: bool = |d| {
            // One branch for all three.
            API >= 7
                && (read!(d.payload.coll.user_tag)
                    | number(read!(d.payload.coll.kernel_variant).cast_mut())
                    | u64::from(read!(d.payload.coll.is_sym_coll)))
                    != 0
        };
    }
}
