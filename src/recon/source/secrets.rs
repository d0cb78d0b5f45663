//! Passwords that stand where the databases' own programs keep them. They are never printed.

use std::fmt;
use std::path::PathBuf;

use super::address::{Address, Database};

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(String);

impl Secret {
    /// The text, for the server alone.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Who logs in, and what was found out about the files where passwords are.
#[derive(Debug, Default)]
pub(super) struct Login {
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    /// Why a file was not used.
    pub(super) unused: Option<String>,
}

/// User and password: of the address, else of the environment, else of the user's own file.
pub(super) fn login(address: &Address) -> Login {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let home = set("HOME").map(PathBuf::from);
    let mut login = Login { user: address.user.clone(), password: address.password.clone(), unused: None };
    match address.database_kind {
        Database::MySql => {
            let file = home.map(|home| home.join(".my.cnf")).filter(|file| file.is_file());
            let file = file.and_then(|file| own_file(file, &mut login.unused));
            let kept = file.map(|text| client_section(&text)).unwrap_or_default();
            // the file's password is its user's
            let same = login.user.is_none() || kept.user.is_none() || login.user == kept.user;
            login.user = login.user.or(kept.user).or_else(|| set("USER"));
            let env = || set("MYSQL_PWD").map(Secret);
            login.password = login.password.or_else(env).or(kept.password.filter(|_| same));
        }
        Database::Postgres => {
            login.user = login.user.or_else(|| set("PGUSER")).or_else(|| set("USER"));
            login.password = login.password.or_else(|| set("PGPASSWORD").map(Secret));
            if login.password.is_none() {
                let file = set("PGPASSFILE").map(PathBuf::from).or_else(|| home.map(|home| home.join(".pgpass")));
                let file = file.filter(|file| file.is_file()).and_then(|file| own_file(file, &mut login.unused));
                let user = login.user.clone().unwrap_or_default();
                let database = address.database.clone().unwrap_or_else(|| user.clone());
                let wanted = [address.host.clone(), address.port.to_string(), database, user];
                login.password = file.and_then(|text| pgpass_entry(&text, &wanted));
            }
        }
    }
    login
}

/// The text of a file with passwords, unless others may read it too.
fn own_file(file: PathBuf, unused: &mut Option<String>) -> Option<String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&file).ok()?.permissions().mode();
        if mode & 0o077 != 0 {
            *unused = Some(format!("{} was not used: others may read it; chmod 600", file.display()));
            return None;
        }
    }
    let _ = unused;
    std::fs::read_to_string(&file).ok()
}

/// User and password of `[client]` in an option file of MySQL's.
fn client_section(text: &str) -> Login {
    let mut login = Login::default();
    let mut wanted = false;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            wanted = ["client]", "mysql]", "client-server]", "client-mariadb]", "mariadb-client]"].contains(&section);
        } else if wanted && let Some((name, value)) = line.split_once('=') {
            let value = value.trim();
            let quoted = ['"', '\''].iter().find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q));
            let value = quoted.unwrap_or(value).to_string();
            match name.trim() {
                "user" => login.user = Some(value),
                "password" => login.password = Some(Secret(value)),
                _ => {}
            }
        }
    }
    login
}

/// The password of the first line `host:port:database:user:password` that fits; `*` fits all.
fn pgpass_entry(text: &str, wanted: &[String; 4]) -> Option<Secret> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut fields = vec![String::new()];
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => fields.last_mut()?.extend(chars.next()),
                ':' if fields.len() < 5 => fields.push(String::new()),
                c => fields.last_mut()?.push(c),
            }
        }
        let password = fields.pop()?;
        let fits = |(field, wanted): (&String, &String)| field == "*" || field == wanted;
        (fields.len() == 4 && fields.iter().zip(wanted).all(fits)).then_some(Secret(password))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_found_in_the_files_of_the_databases() {
        let text = "# c\nother:*:*:*:no\ndb\\:1:5432:*:me:a\\:b:c\n*:*:shop:me:last\n";
        let wanted = |host: &str, database: &str| [host, "5432", database, "me"].map(str::to_string);
        let found = |host, database| pgpass_entry(text, &wanted(host, database)).map(|s| s.reveal().to_string());
        assert_eq!(found("db:1", "x").as_deref(), Some("a:b:c"));
        assert_eq!(found("h", "shop").as_deref(), Some("last"));
        assert_eq!(found("h", "x"), None);

        let text = "[mysqld]\npassword=no\n[client]\nuser = me\npassword = \"a=b#c\"\n[mysqldump]\npassword=no\n";
        let login = client_section(text);
        assert_eq!((login.user.as_deref(), login.password.as_ref().map(Secret::reveal)), (Some("me"), Some("a=b#c")));
        assert!(!format!("{login:?}").contains("a=b"), "{login:?}");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_read_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("temp dir");
        let file = dir.path().join(".pgpass");
        std::fs::write(&file, "*:*:*:*:x").expect("written");
        for (mode, used) in [(0o644, false), (0o600, true)] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("mode is set");
            let mut unused = None;
            assert_eq!(own_file(file.clone(), &mut unused).is_some(), used);
            assert_eq!(unused.is_some(), !used);
        }
    }
}
