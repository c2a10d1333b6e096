//! Where the plugin library is.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::exit::{Exit, error};

/// The name under which NCCL finds it.
pub const SHIPPED: &str = "libnccl-profiler-collander.so";
/// The name that cargo gives it.
const BUILT: &str = "libcollander_plugin.so";

/// The library that the user named, else the one that belongs to this program.
///
/// # Errors
/// When there is none; the message names the places.
pub fn find(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        if path.is_file() {
            return Ok(path.canonicalize().unwrap_or_else(|_| path.to_owned()));
        }
        return Err(error(Exit::Usage, format!("--library {}: no such file", path.display())));
    }
    let program = std::env::current_exe()?;
    let named = std::env::var_os("COLLANDER_LIBRARY").filter(|value| !value.is_empty()).map(PathBuf::from);
    let candidates = candidates(program.parent().unwrap_or(Path::new(".")), named);
    candidates.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        let tried: Vec<String> = candidates.iter().map(|path| format!("\n  {}", path.display())).collect();
        error(
            Exit::Failed,
            format!(
                "the plugin library is not there; give it with --library or COLLANDER_LIBRARY, or build it with \
                 `cargo build -p collander-plugin`. Tried:{}",
                tried.concat()
            ),
        )
    })
}

fn candidates(folder: &Path, named: Option<PathBuf>) -> Vec<PathBuf> {
    let mut list = vec![folder.join(SHIPPED)];
    if let Some(parent) = folder.parent() {
        list.push(parent.join("lib").join(SHIPPED));
    }
    list.extend(named);
    list.push(folder.join(BUILT));
    // Test programs lie in `deps`.
    list.extend(folder.parent().map(|parent| parent.join(BUILT)));
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_their_order() {
        let list = candidates(Path::new("/opt/collander/bin"), Some("/x/y.so".into()));
        let list: Vec<_> = list.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(
            list[..4],
            [
                "/opt/collander/bin/libnccl-profiler-collander.so",
                "/opt/collander/lib/libnccl-profiler-collander.so",
                "/x/y.so",
                "/opt/collander/bin/libcollander_plugin.so"
            ]
        );
    }

    #[test]
    fn a_name_that_is_no_file_is_refused() {
        let refused = find(Some(Path::new("/nowhere/lib.so"))).unwrap_err();
        assert_eq!(crate::exit::code_of(&refused), Exit::Usage);
    }
}
