//! A core module becomes a component: the one contract, for languages without component tooling.

use wasmparser::{Encoding, ExternalKind, Parser, Payload};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{PackageId, Resolve, UnresolvedPackageGroup};

use crate::CompileError;

/// The interface, as it is in the repository.
const INTERFACE: [(&str, &str); 4] = [
    ("traffic.wit", include_str!("../../../wit/since-v0.1.0/traffic.wit")),
    ("decisions.wit", include_str!("../../../wit/since-v0.1.0/decisions.wit")),
    ("host.wit", include_str!("../../../wit/since-v0.1.0/host.wit")),
    ("filter.wit", include_str!("../../../wit/since-v0.1.0/filter.wit")),
];
/// What the stand-in for WASI needs of the host.
const STUB_WORLD: &str = "package collander:stub; world stub { import collander:filter/host@0.1.0; }";
const STUB: &str = include_str!("wasi_stub.wat");

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A component.
    Component,
    /// A core module.
    Module,
}

/// What bytes are; the text format is not understood here.
///
/// # Errors
/// They are neither.
pub fn form(wasm: &[u8]) -> Result<Form, CompileError> {
    if Parser::is_component(wasm) {
        Ok(Form::Component)
    } else if Parser::is_core_wasm(wasm) {
        Ok(Form::Module)
    } else {
        Err(CompileError::NotWasm)
    }
}

fn interface() -> Result<(Resolve, PackageId), CompileError> {
    let broken = |error: &dyn std::fmt::Display| CompileError::Internal(format!("the interface: {error:#}"));
    let mut resolve = Resolve::default();
    let mut map = wit_parser::SourceMap::new();
    for (name, text) in INTERFACE {
        map.push_str(name, text);
    }
    let group: UnresolvedPackageGroup = map.parse().map_err(|(_, error)| broken(&error))?;
    let package = resolve.push_group(group).map_err(|error| broken(&error))?;
    Ok((resolve, package))
}

/// What the core module says of itself.
#[derive(Debug, Default)]
struct Module {
    /// It was built with bindings of its own.
    has_metadata: bool,
    exports: Vec<String>,
    imports: Vec<(String, String)>,
}

fn look(wasm: &[u8]) -> Result<Module, CompileError> {
    let mut found = Module::default();
    for payload in Parser::new(0).parse_all(wasm) {
        let malformed = |error: wasmparser::BinaryReaderError| CompileError::Malformed(error.to_string());
        match payload.map_err(malformed)? {
            Payload::Version { encoding: Encoding::Component, .. } => return Ok(found),
            Payload::CustomSection(section) if section.name().starts_with("component-type") => {
                found.has_metadata = true;
            }
            Payload::ExportSection(reader) => {
                for export in reader {
                    let export = export.map_err(malformed)?;
                    if export.kind == ExternalKind::Func {
                        found.exports.push(export.name.to_owned());
                    }
                }
            }
            Payload::ImportSection(reader) => {
                for import in reader.into_imports() {
                    let import = import.map_err(malformed)?;
                    found.imports.push((import.module.to_owned(), import.name.to_owned()));
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Makes a component of a core module; a component comes back as it is.
///
/// The world is the one that the module's bindings name; without bindings, `packed-filter` if it exports
/// `collander:filter/tail-packed@0.1.0#observe`, else `filter`. A module that imports WASI preview 1 is given a stand-in with nothing in it.
///
/// # Errors
/// What is wrong with the module.
pub fn componentize(wasm: &[u8]) -> Result<Vec<u8>, CompileError> {
    if form(wasm)? == Form::Component {
        return Ok(wasm.to_vec());
    }
    // Whatever follows may take a valid module for granted.
    wasmparser::validate(wasm).map_err(|error| CompileError::Malformed(error.to_string()))?;
    let found = look(wasm)?;
    let mut module = wasm.to_vec();
    if !found.has_metadata {
        let (resolve, package) = interface()?;
        let packed = found.exports.iter().any(|name| name.starts_with("collander:filter/tail-packed@"));
        let name = if packed { "packed-filter" } else { "filter" };
        let world = resolve
            .select_world(&[package], Some(name))
            .map_err(|error| CompileError::Internal(format!("world {name}: {error:#}")))?;
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
            .map_err(|error| CompileError::Module(format!("{error:#}")))?;
    }
    let mut encoder =
        ComponentEncoder::default().validate(true).module(&module).map_err(|error| module_error(&error, &found))?;
    if found.imports.iter().any(|(module, _)| module == "wasi_snapshot_preview1") {
        let stub = stub()?;
        encoder = encoder
            .adapter("wasi_snapshot_preview1", &stub)
            .map_err(|error| CompileError::Internal(format!("{error:#}")))?;
    }
    encoder.encode().map_err(|error| module_error(&error, &found))
}

/// The stand-in for WASI, with the type of what it imports.
fn stub() -> Result<Vec<u8>, CompileError> {
    let broken = |error: &dyn std::fmt::Display| CompileError::Internal(format!("the stand-in for WASI: {error:#}"));
    let mut stub = wat::parse_str(STUB).map_err(|error| broken(&error))?;
    let (mut resolve, _) = interface()?;
    let package = resolve.push_str("stub.wit", STUB_WORLD).map_err(|error| broken(&error))?;
    let world = resolve.select_world(&[package], Some("stub")).map_err(|error| broken(&error))?;
    embed_component_metadata(&mut stub, &resolve, world, StringEncoding::UTF8).map_err(|error| broken(&error))?;
    Ok(stub)
}

/// Why a module is no component, with what helps to find out.
fn module_error(error: &dyn std::fmt::Display, module: &Module) -> CompileError {
    let mut text = format!("{error:#}");
    let package = "collander:filter/";
    let names = module.exports.iter().chain(module.imports.iter().map(|(module, _)| module));
    let other = names
        .filter_map(|name| name.strip_prefix(package)?.split_once('@'))
        .map(|(_, rest)| rest.split('#').next().unwrap_or(rest))
        .find(|version| *version != "0.1.0");
    if let Some(version) = other {
        text =
            format!("it was built for version {version} of collander:filter, this collander supports 0.1.0 ({text})");
    }
    CompileError::Module(text)
}
