//! The history of the prompt: in the state directory, for its owner only, without secrets.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Entries kept.
pub const ENTRIES: usize = 10_000;

/// `LAKEPIN_HISTORY`, else `$XDG_STATE_HOME/lakepin/history`, else `~/.local/state/lakepin/history`. None: no history is
/// kept, as with `LAKEPIN_HISTORY` empty or `/dev/null`.
pub fn path() -> Option<PathBuf> {
    if let Some(chosen) = std::env::var_os("LAKEPIN_HISTORY") {
        let wanted = !chosen.is_empty() && chosen != "/dev/null";
        return wanted.then(|| PathBuf::from(chosen));
    }
    let state = dirs::state_dir().or_else(dirs::data_local_dir)?;
    Some(state.join("lakepin").join("history"))
}

/// Makes the file, with mode 0600, if it is not there; takes rights away from others if it is. Whatever else has that name
/// is left as it is: the line editor, too, would take rights away from a device.
pub fn prepare(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => return Err(io::Error::other("it is no file")),
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        options.mode(0o600);
        let file = options.open(path)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    #[cfg(not(unix))]
    options.open(path)?;
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn history_is_its_owners_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/history");
        prepare(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        prepare(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_is_no_file_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let link = dir.path().join("history");
        std::os::unix::fs::symlink(&socket, &link).unwrap();
        let mode = || fs::metadata(&socket).unwrap().permissions().mode();
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
        let before = mode();
        for path in [&socket, &link] {
            assert_eq!(prepare(path).unwrap_err().to_string(), "it is no file");
        }
        assert_eq!(mode(), before);
    }
}
