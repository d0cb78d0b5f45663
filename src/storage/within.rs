//! Whether a target that somebody is about to write lies in a folder that must not be written.
//!
//! One text names different places to different readers: we take a path literally, DataFusion decodes `%2e` and takes
//! `file:/x` and `FILE:///x` for URLs, the operating system follows links before it goes up by `..`. Whoever writes may be
//! any of them, so a target is inside as soon as one reading of it is.

use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path as MachinePath, PathBuf};

use object_store::path::Path;
use url::Url;

use super::location::Location;
use super::open::Address;

/// Links that are followed at most, as an operating system does.
const LINKS: usize = 40;

/// A place that a text may name.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Place {
    /// On this machine, links not yet followed.
    Local(PathBuf),
    /// In another store. The scheme is left out: `s3`, `s3a` and the vendors' own lead to the same bucket.
    Remote { authority: String, path: Vec<String> },
}

/// Whether `target`, a path or URL, may name `folder` or something in it. A bucket of the same name under another scheme
/// counts as the same.
///
/// Cost: for targets on this machine, a look at each folder above them.
pub(crate) fn may_lie_in(target: &str, folder: &Location) -> bool {
    let own = if folder.root().is_empty() {
        Place::Local(PathBuf::from(folder.to_string()))
    } else {
        let (_, authority) = folder.root().split_once("://").unwrap_or(("", folder.root()));
        remote(authority, folder.path().as_ref())
    };
    readings(target).iter().any(|place| match (place, &own) {
        (Place::Local(target), Place::Local(own)) => is_below(target, own),
        (Place::Remote { authority, path }, Place::Remote { authority: bucket, path: own }) => {
            authority == bucket && path.starts_with(own)
        }
        _ => false,
    })
}

/// Every place that a text may name.
fn readings(text: &str) -> HashSet<Place> {
    let mut places = HashSet::new();
    if let Ok(address) = Address::parse(text) {
        places.insert(match &address {
            Address::Local { path } => Place::Local(PathBuf::from(path)),
            Address::Bucket { bucket: authority, path, .. } | Address::Memory { name: authority, path } => {
                remote(authority, path)
            }
        });
    }
    let url = if MachinePath::new(text).is_absolute() { None } else { Url::parse(text).ok() };
    let Some(url) = url else {
        // unlike an address, not yet without `..`, which goes up from where a link leads
        places.extend(std::path::absolute(text).ok().map(Place::Local));
        return places;
    };
    let decoded = Path::from_url_path(url.path()).map_or_else(|_| url.path().to_string(), |path| path.to_string());
    if url.scheme() == "file" {
        places.extend([url.path(), decoded.as_str()].map(|path| Place::Local(MachinePath::new("/").join(path))));
    } else {
        places.extend([url.path(), decoded.as_str()].map(|path| remote(url.authority(), path)));
    }
    places
}

fn remote(authority: &str, path: &str) -> Place {
    let mut plain = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(plain.pop()),
            part => plain.push(part.to_string()),
        }
    }
    Place::Remote { authority: authority.to_lowercase(), path: plain }
}

/// Whether a path of this machine leads into a folder, whether `..` goes up from a name or from where a link leads.
fn is_below(target: &MachinePath, folder: &MachinePath) -> bool {
    let folder = followed(folder, LINKS);
    let own = identity(&folder);
    [followed(target, LINKS), followed(&without_dots(target), LINKS)].iter().any(|target| {
        // a folder may have a second name: another case, or another place where it is mounted
        let same = |above: &MachinePath| own.is_some() && identity(above) == own;
        target.starts_with(&folder) || target.ancestors().any(same)
    })
}

fn without_dots(path: &MachinePath) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// Where a path leads. A link to what is not there yet is followed too: a file made through it is made there.
fn followed(path: &MachinePath, links: usize) -> PathBuf {
    let mut real = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(real.pop()),
            Component::CurDir => {}
            part => {
                real.push(part);
                if let (Ok(to), true) = (fs::read_link(&real), links > 0) {
                    real.pop();
                    real = followed(&real.join(to), links - 1);
                }
            }
        }
    }
    real
}

#[cfg(unix)]
fn identity(path: &MachinePath) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn identity(path: &MachinePath) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn every_spelling_of_a_local_place_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let (wh, out) = (dir.path().join("wh"), dir.path().join("out"));
        fs::create_dir_all(wh.join("pay.db/t")).unwrap();
        fs::create_dir_all(&out).unwrap();
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, dir.path().join(name)).unwrap();
        link("wh", "link");
        link("wh/pay.db", "deep");
        link("link/not-there-yet.csv", "dangling");
        link("round", "round");
        let folder = Location::try_new("", wh.to_str().unwrap()).unwrap();
        let base = dir.path().to_str().unwrap();
        let up = "../".repeat(std::env::current_dir().unwrap().components().count());
        for (target, inside) in [
            ("{}/wh", true),
            ("{}/wh/", true),
            ("{}/wh/new.db/x.csv", true),
            ("{}//wh/./x", true),
            ("{}/out/../wh/x", true),
            ("{}/link/x", true),
            ("{}/deep/x", true),
            // up from where the link leads, or from its name
            ("{}/deep/../x", true),
            ("{}/deep/../wh/x", true),
            ("{}/dangling", true),
            ("file:{}/wh/x", true),
            ("file://{}/wh/x", true),
            ("FILE:{}/wh/x", true),
            ("file://localhost{}/wh/x", true),
            ("file://{}/%77h/x", true),
            ("file://{}/out/%2e%2e/wh/x", true),
            ("file://{}/out/%2E./wh/x", true),
            ("file:{}/out/../wh/x", true),
            ("{up}{}/wh/x", true),
            ("{}/wh/*.csv", true),
            ("{}", false),
            ("{}/out/x.csv", false),
            ("{}/wh2/x", false),
            ("{}/wh/../out/x", false),
            ("{}/round/x", false),
            ("s3:/{}/wh/x", false),
            ("x.csv", false),
            ("", false),
        ] {
            let text =
                target.replace("{up}", &up).replace("{}", if target.starts_with("{up}") { &base[1..] } else { base });
            assert_eq!(may_lie_in(&text, &folder), inside, "{target}");
        }
        // the folder itself may be opened through a link
        let through = Location::try_new("", &format!("{base}/link")).unwrap();
        assert!(may_lie_in(&format!("{base}/wh/x"), &through) && !may_lie_in(&format!("{base}/out/x"), &through));
    }

    #[test]
    fn every_spelling_of_a_bucket_is_seen() {
        let folder = Location::try_new("s3://lake", "wh/a b").unwrap();
        for (target, inside) in [
            ("s3://lake/wh/a b/x", true),
            ("s3://lake/wh/a%20b/x", true),
            ("S3A://lake/wh/a b", true),
            ("oss://lake/wh/a b/", true),
            ("s3://lake/wh/other/../a b/x", true),
            ("s3://lake/wh/a bc/x", false),
            ("s3://lake/wh", false),
            ("s3://other/wh/a b/x", false),
            ("/lake/wh/a b/x", false),
        ] {
            assert_eq!(may_lie_in(target, &folder), inside, "{target}");
        }
        let whole = Location::try_new("memory://t", "").unwrap();
        assert!(may_lie_in("memory://t/x", &whole) && !may_lie_in("memory://u/x", &whole));
    }
}
