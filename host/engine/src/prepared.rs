//! A filter that is compiled, checked against the interface and linked: what instances are made of.

use wasmtime::Engine;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, HasSelf, InstancePre, Linker};

use crate::bindings::{head, host, lifecycle, tail, tail_packed};
use crate::error::LoadError;
use crate::host_imports::State;
use crate::types::INTERFACE_VERSION;

const PACKAGE: &str = "collander:filter";

/// Which of the two forms of traffic it looks at.
#[derive(Clone)]
pub(crate) enum TailIndices {
    Typed(tail::GuestIndices),
    Packed(tail_packed::GuestIndices),
}

/// A filter, ready to be instantiated. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) pre: InstancePre<State>,
    pub(crate) lifecycle: lifecycle::GuestIndices,
    pub(crate) head: head::GuestIndices,
    pub(crate) tail: TailIndices,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("packed", &matches!(self.tail, TailIndices::Packed(_))).finish_non_exhaustive()
    }
}

/// The linker with all imports of the host.
pub(crate) fn linker(engine: &Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    host::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    Ok(linker)
}

/// `collander:filter/tail@0.1.0` → (`tail`, `0.1.0`); None if it is another package's.
fn interface_of(name: &str) -> Option<(&str, &str)> {
    let (path, version) = name.split_once('@').unwrap_or((name, ""));
    let interface = path.strip_prefix(PACKAGE)?.strip_prefix('/')?;
    Some((interface, version))
}

/// Whether a filter that was built for this version runs here: the same minor version, at most our patch.
fn is_supported(version: &str) -> bool {
    let parse = |text: &str| -> Option<(u64, u64, u64)> {
        let mut parts = text.split('.').map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?))
    };
    match (parse(version), parse(INTERFACE_VERSION)) {
        (Some(wanted), Some(ours)) => (wanted.0, wanted.1) == (ours.0, ours.1) && wanted.2 <= ours.2,
        _ => false,
    }
}

/// Checks names and versions, links, looks the exports up.
pub(crate) fn prepare(engine: &Engine, linker: &Linker<State>, component: &Component) -> Result<Prepared, LoadError> {
    let ty = component.component_type();
    let names = ty.imports(engine).map(|(name, _)| name).chain(ty.exports(engine).map(|(name, _)| name));
    for name in names {
        if let Some((_, version)) = interface_of(name)
            && !is_supported(version)
        {
            return Err(LoadError::Version {
                wanted: if version.is_empty() { "no version".to_owned() } else { version.to_owned() },
                supported: INTERFACE_VERSION.to_owned(),
            });
        }
    }
    for (name, _) in ty.imports(engine) {
        if interface_of(name).is_none() {
            return Err(LoadError::UnknownImport { import: name.to_owned(), supported: INTERFACE_VERSION });
        }
    }
    let exports: Vec<&str> = ty
        .exports(engine)
        .filter(|(_, item)| matches!(item.ty, ComponentItem::ComponentInstance(_)))
        .filter_map(|(name, _)| interface_of(name).map(|(interface, _)| interface))
        .collect();
    let missing = |what: &str| LoadError::MissingExport {
        missing: format!("{PACKAGE}/{what}@{INTERFACE_VERSION}"),
        supported: INTERFACE_VERSION,
    };
    for needed in ["lifecycle", "head"] {
        if !exports.contains(&needed) {
            return Err(missing(needed));
        }
    }
    let packed = exports.contains(&"tail-packed");
    if !packed && !exports.contains(&"tail") {
        return Err(missing("tail-packed"));
    }
    let wrong = |error: wasmtime::Error| LoadError::WrongInterface {
        detail: format!("{error:#}"),
        supported: INTERFACE_VERSION,
    };
    let pre = linker.instantiate_pre(component).map_err(wrong)?;
    Ok(Prepared {
        lifecycle: lifecycle::GuestIndices::new(&pre).map_err(wrong)?,
        head: head::GuestIndices::new(&pre).map_err(wrong)?,
        tail: if packed {
            TailIndices::Packed(tail_packed::GuestIndices::new(&pre).map_err(wrong)?)
        } else {
            TailIndices::Typed(tail::GuestIndices::new(&pre).map_err(wrong)?)
        },
        pre,
    })
}
