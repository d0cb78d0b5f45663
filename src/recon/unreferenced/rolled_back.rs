//! What a rollback left behind: a tag or changelog that still holds a state which was rolled back proves that what was
//! committed on top of it was rolled back too.

use std::collections::{HashMap, HashSet};

use crate::error::{ErrorKind, Result};
use crate::recon::history::{History, Standing};
use crate::scan;
use crate::storage::FileEntry;

/// Names of lists, manifests and data files that are proven to be of rolled back commits; `lists`: manifest lists that
/// nothing names.
///
/// Cost: nothing where no kept state was rolled back; else a read of each list, and the manifests of those that are proven.
///
/// # Errors
/// Storage that does not answer.
pub(super) async fn names(history: &History, branches: &[History], lists: &[&FileEntry]) -> Result<HashSet<String>> {
    let scan_env = &history.env().scan;
    let mut proven: HashSet<String> = HashSet::new();
    let mut gone: HashSet<String> = HashSet::new();
    for branch in branches {
        for recorded in branch.commits.iter().filter(|recorded| recorded.standing == Standing::RolledBack) {
            let snapshot = &recorded.snapshot;
            let (name, size) = (&snapshot.delta_manifest_list, snapshot.delta_manifest_list_size);
            match scan::manifests_of_list(&branch.pin_of(snapshot), name, size, scan_env).await {
                Ok(metas) => gone.extend(metas.into_iter().map(|meta| meta.file_name)),
                Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
                Err(_) => {}
            }
        }
    }
    if gone.is_empty() {
        return Ok(proven);
    }
    let mut manifests: HashMap<&str, Vec<String>> = HashMap::new();
    for list in lists {
        match scan::manifests_of_list(&history.pin, &list.name, None, scan_env).await {
            Ok(metas) => drop(manifests.insert(&list.name, metas.into_iter().map(|meta| meta.file_name).collect())),
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
            Err(_) => {}
        }
    }
    // what names a manifest of one of them goes on from it
    loop {
        let known = proven.len();
        for (base, named) in &manifests {
            if !proven.contains(*base) && named.iter().any(|manifest| gone.contains(manifest)) {
                proven.insert((*base).to_string());
                if let Some((delta, own)) = next_of(base).and_then(|delta| manifests.get_key_value(delta.as_str())) {
                    proven.insert((*delta).to_string());
                    gone.extend(own.iter().cloned());
                    proven.extend(own.iter().cloned());
                }
            }
        }
        if proven.len() == known {
            break;
        }
    }
    let marked: Vec<&&FileEntry> = lists.iter().filter(|list| proven.contains(&list.name)).collect();
    for list in marked {
        let own = manifests.get(list.name.as_str()).is_some_and(|own| own.iter().all(|own| proven.contains(own)));
        if !own {
            continue;
        }
        match scan::entries_of_list(&history.pin, &list.name, None, scan_env).await {
            Ok(entries) => proven.extend(entries.iter().map(|entry| entry.file.file_name.clone())),
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
            Err(_) => {}
        }
    }
    Ok(proven)
}

/// The list that a committer writes behind its base list: that of what the commit changed.
fn next_of(base: &str) -> Option<String> {
    let (family, number) = base.rsplit_once('-')?;
    Some(format!("{family}-{}", number.parse::<u64>().ok()?.checked_add(1)?))
}
