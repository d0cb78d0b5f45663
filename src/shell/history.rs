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
    in_state("history")
}

/// `LAKEPIN_JOURNAL`, else `reads.ndjson` beside the history: what statements read, and when. None: it is not kept, as with
/// `LAKEPIN_JOURNAL` empty or `/dev/null`.
pub fn journal() -> Option<PathBuf> {
    if let Some(chosen) = std::env::var_os("LAKEPIN_JOURNAL") {
        let wanted = !chosen.is_empty() && chosen != "/dev/null";
        return wanted.then(|| PathBuf::from(chosen));
    }
    in_state("reads.ndjson")
}

fn in_state(name: &str) -> Option<PathBuf> {
    let state = dirs::state_dir().or_else(dirs::data_local_dir)?;
    Some(state.join("lakepin").join(name))
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

/// What [`mend`] did.
#[derive(Debug, PartialEq, Eq)]
pub struct Mended {
    /// Lines left out.
    pub lost: usize,
    /// The file as it was.
    pub aside: PathBuf,
}

/// Leaves lines out that are not UTF-8: with one of them the line editor takes and keeps nothing. The file as it was stays
/// beside it.
pub fn mend(path: &Path) -> io::Result<Option<Mended>> {
    let bytes = fs::read(path)?;
    if std::str::from_utf8(&bytes).is_ok() {
        return Ok(None);
    }
    let lines = || bytes.split_inclusive(|byte| *byte == b'\n');
    let good: Vec<u8> = lines().filter(|line| std::str::from_utf8(line).is_ok()).flatten().copied().collect();
    let lost = lines().filter(|line| std::str::from_utf8(line).is_err()).count();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (aside, fresh) = (
        path.with_file_name(format!("{name}.damaged")),
        path.with_file_name(format!(".{name}.{}", std::process::id())),
    );
    // a copy has its rights; at no moment is there no history
    fs::copy(path, &aside)?;
    fs::copy(path, &fresh)?;
    fs::write(&fresh, &good)?;
    fs::rename(&fresh, path)?;
    Ok(Some(Mended { lost, aside }))
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
    fn lines_that_can_be_read_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history");
        prepare(&path).unwrap();
        for good in ["", "#V2\nselect 1;\n", "订单"] {
            fs::write(&path, good).unwrap();
            assert_eq!(mend(&path).unwrap(), None, "{good}");
        }
        let before = b"#V2\nselect 1;\nselect '\xe9';\nselect 2;\n\xff";
        fs::write(&path, before).unwrap();
        let aside = dir.path().join("history.damaged");
        assert_eq!(mend(&path).unwrap(), Some(Mended { lost: 2, aside: aside.clone() }));
        assert_eq!(fs::read_to_string(&path).unwrap(), "#V2\nselect 1;\nselect 2;\n");
        assert_eq!(fs::read(&aside).unwrap(), before);
        for file in [&path, &aside] {
            assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
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
