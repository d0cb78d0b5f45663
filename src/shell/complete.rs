//! Completion: keywords, functions, databases, tables, columns, `$` tables, snapshot ids and tags, schema ids, settings and
//! scan options, variables, commands and their arguments. Names are asked for on another thread; what is not there in time is offered the next
//! time.

mod wanted;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::commands::{self, Argument, unquoted};
use super::names::quoted_name;
use super::render::width::escaped;
use super::scope::{Scope, scope};
use super::variables::quoted;
use super::words::KEYWORDS;
use super::workers::Workers;
use crate::error::Result;
use crate::sql::Session;
use wanted::{Wanted, wanted};

/// Time a key may take, however many names it asks for.
const PATIENCE: Duration = Duration::from_millis(150);
/// Versions offered.
const VERSIONS: usize = 50;

/// Names known so far.
#[derive(Debug, Default)]
struct Known {
    databases: Option<Vec<String>>,
    tables: BTreeMap<String, Vec<String>>,
    columns: BTreeMap<String, Vec<String>>,
    versions: BTreeMap<String, (Vec<i64>, Vec<String>)>,
    schemas: BTreeMap<String, Vec<i64>>,
    branches: BTreeMap<String, Vec<String>>,
}

/// Completes lines of one session.
pub struct Completion {
    session: Arc<Session>,
    workers: Workers,
    known: Arc<Mutex<Known>>,
    /// Until when the key that was pressed may wait.
    until: Cell<Instant>,
    /// Variables of the shell.
    pub variables: Vec<String>,
}

impl Completion {
    /// For a session; nothing is asked yet.
    pub fn new(session: Arc<Session>, workers: Workers) -> Self {
        Self { session, workers, known: Arc::default(), until: Cell::new(Instant::now()), variables: Vec::new() }
    }

    /// Asks for the names most often wanted; nobody waits for them.
    pub fn warm(&self) {
        let database = self.session.database();
        self.fetch(
            {
                let session = Arc::clone(&self.session);
                async move { session.tables(None).await }
            },
            move |known, tables| drop(known.tables.insert(database, tables)),
        );
    }

    /// Starts a question and waits for its answer as long as the key may.
    fn fetch<T: Send + 'static>(
        &self,
        question: impl Future<Output = Result<T>> + Send + 'static,
        keep: impl FnOnce(&mut Known, T) + Send + 'static,
    ) {
        let known = Arc::clone(&self.known);
        let (done, wait) = std::sync::mpsc::channel();
        self.workers.detach(async move {
            // a name that cannot be read is no reason to disturb who types
            if let Ok(answer) = question.await {
                keep(&mut known.lock().unwrap_or_else(PoisonError::into_inner), answer);
            }
            let _ = done.send(());
        });
        let _ = wait.recv_timeout(self.until.get().saturating_duration_since(Instant::now()));
    }

    fn known<T>(&self, read: impl Fn(&Known) -> Option<T>) -> Option<T> {
        read(&self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn databases(&self) -> Vec<String> {
        if let Some(databases) = self.known(|k| k.databases.clone()) {
            return databases;
        }
        let session = Arc::clone(&self.session);
        self.fetch(async move { session.databases().await }, |known, names| known.databases = Some(names));
        self.known(|k| k.databases.clone()).unwrap_or_default()
    }

    fn tables(&self, database: Option<&str>) -> Vec<String> {
        let name = database.map_or_else(|| self.session.database(), str::to_string);
        if let Some(tables) = self.known(|k| k.tables.get(&name).cloned()) {
            return tables;
        }
        let (session, asked, kept) = (Arc::clone(&self.session), name.clone(), name.clone());
        self.fetch(async move { session.tables(Some(&asked)).await }, move |known, tables| {
            known.tables.insert(kept, tables);
        });
        self.known(|k| k.tables.get(&name).cloned()).unwrap_or_default()
    }

    fn columns(&self, table: &str) -> Vec<String> {
        if let Some(columns) = self.known(|k| k.columns.get(table).cloned()) {
            return columns;
        }
        let (session, asked, kept) = (Arc::clone(&self.session), table.to_string(), table.to_string());
        self.fetch(async move { session.columns(&asked).await }, move |known, columns| {
            known.columns.insert(kept, columns.into_iter().map(|(name, _)| name).collect());
        });
        self.known(|k| k.columns.get(table).cloned()).unwrap_or_default()
    }

    fn versions(&self, table: &str) -> (Vec<i64>, Vec<String>) {
        // new snapshots come all the time: always asked again
        let (session, asked, kept) = (Arc::clone(&self.session), table.to_string(), table.to_string());
        self.fetch(async move { session.versions(&asked).await }, move |known, versions| {
            known.versions.insert(kept, versions);
        });
        self.known(|k| k.versions.get(table).cloned()).unwrap_or_default()
    }

    fn schemas(&self, table: &str) -> Vec<i64> {
        let (session, asked, kept) = (Arc::clone(&self.session), table.to_string(), table.to_string());
        self.fetch(async move { session.schema_ids(&asked).await }, move |known, ids| {
            known.schemas.insert(kept, ids);
        });
        self.known(|k| k.schemas.get(table).cloned()).unwrap_or_default()
    }

    /// Candidates for the word before the cursor, and where it begins. `before` is the open text of earlier lines.
    pub fn complete(&self, before: &str, line: &str, at: usize) -> (usize, Vec<String>) {
        self.until.set(Instant::now() + PATIENCE);
        let typed = line.get(..at).unwrap_or(line);
        let start = word_start(typed);
        let word = typed.get(start..).unwrap_or_default();
        if let Some(name) = word.strip_prefix(':').filter(|name| !name.starts_with(':')) {
            return (start, self.variables(name));
        }
        if before.trim().is_empty()
            && let Some(command) = command_of(typed)
        {
            return self.command(typed, command);
        }
        let whole = format!("{before}\n{line}");
        (start, self.sql(&whole, before.len() + 1 + start, word))
    }

    /// `:name`, `:'name'`, `:"name"`.
    fn variables(&self, typed: &str) -> Vec<String> {
        let quote = typed.chars().next().filter(|c| matches!(c, '\'' | '"')).map(String::from).unwrap_or_default();
        let name = typed.get(quote.len()..).unwrap_or_default();
        let known = self.variables.iter().filter(|known| known.starts_with(name));
        known.map(|known| format!(":{quote}{known}{quote}")).collect()
    }

    fn command(&self, typed: &str, command: &str) -> (usize, Vec<String>) {
        let Some(space) = command.find(char::is_whitespace) else {
            let start = typed.len() - command.len();
            let names = commands::all().into_iter().flat_map(|c| c.names.iter().copied());
            let mut found: Vec<String> = names.filter(|n| n.starts_with(command)).map(str::to_string).collect();
            found.sort();
            return (start, found);
        };
        let (name, rest) = command.split_at(space);
        let Some(known) = commands::find(name) else { return (typed.len(), Vec::new()) };
        let start = word_start(typed);
        let word = typed.get(start..).unwrap_or_default();
        let first = rest.trim_start().len() == word.len();
        let found = match known.argument {
            Argument::None | Argument::File => Vec::new(),
            Argument::Words(words) => starting(word, words.iter().map(|w| (*w).to_string())),
            Argument::Command => {
                starting(word, commands::all().into_iter().filter_map(|c| c.names.first().map(|n| (*n).to_string())))
            }
            Argument::Database if first => named(word, self.databases()),
            Argument::Database => Vec::new(),
            Argument::Table if first => self.relations(word),
            Argument::Pinned => starting(word, self.pinned().into_iter().chain(["all".to_string()])),
            Argument::Version if first => self.relations(word),
            Argument::Version => {
                let table = rest.split_whitespace().next().unwrap_or_default();
                let (ids, tags) = self.versions(table);
                let tags = tags.into_iter().map(|tag| format!("tag:{tag}"));
                let ids = ids.into_iter().take(VERSIONS).map(|id| id.to_string());
                starting(word, tags.chain(ids).chain(["ts".into(), "wm:".into(), "commit".into(), "latest".into()]))
            }
            Argument::Schema if first => self.relations(word),
            Argument::Schema => {
                let table = rest.split_whitespace().next().unwrap_or_default();
                starting(word, self.schemas(table).into_iter().map(|id| id.to_string()))
            }
            Argument::Condition if first => self.relations(word),
            Argument::Condition => {
                let table = rest.split_whitespace().next().unwrap_or_default();
                let condition = rest.trim_start().get(table.len()..).unwrap_or_default();
                let whole = format!("select 1 from {table} where {condition}");
                self.sql(&whole, whole.len() - word.len(), word)
            }
            Argument::Table => Vec::new(),
            Argument::Sql => self.sql(rest, rest.len() - word.len(), word),
        };
        (start, found)
    }

    /// Candidates for the word that begins at a place of a text.
    fn sql(&self, whole: &str, at: usize, word: &str) -> Vec<String> {
        let context = whole.get(..at).unwrap_or(whole);
        let literal = |tag: String| quoted(&tag, '\'');
        // the table whose state is being chosen is not read any further
        let versions = || self.versions(&scope(context, context.len()).last.unwrap_or_default());
        match wanted(context) {
            Wanted::Database => named(word, self.databases()),
            Wanted::Relation => {
                let names = scope(whole, at).ctes.into_iter().map(|cte| cte.name);
                let mut found = named(word, names.collect());
                found.extend(self.relations(word));
                found
            }
            Wanted::Version => {
                let (ids, tags) = versions();
                let open = word.starts_with('\'');
                let ids = ids.into_iter().take(VERSIONS).map(|id| id.to_string()).filter(|_| !open);
                starting(word, ids.chain(tags.into_iter().map(literal)))
            }
            Wanted::Tag => starting(word, versions().1.into_iter().map(literal)),
            Wanted::Time => starting(word, ["timestamp".to_string()].into_iter()),
            Wanted::Pinned => starting(word, self.pinned().into_iter()),
            Wanted::Words(words, lower) => {
                let case = |word: &&str| if lower { word.to_lowercase() } else { (*word).to_string() };
                starting(word, words.iter().map(case))
            }
            Wanted::Unpin => starting(word, ["table", "all"].map(str::to_string).into_iter()),
            Wanted::Setting => self.settings(word),
            Wanted::ScanOption => starting(word, Session::scan_options().map(|option| quoted(option, '\''))),
            Wanted::Anything if word.contains(['$', '@']) => self.relations(word),
            Wanted::Anything => self.anything(&scope(whole, at), word),
        }
    }

    /// Tables that the session pins, those of the current database by their names alone.
    fn pinned(&self) -> Vec<String> {
        let current = self.session.database();
        let names = self.session.session_pins().into_iter().map(move |pin| match pin.table.split_once('.') {
            Some((database, table)) if database == current => quoted_name(table),
            Some((database, table)) => format!("{}.{}", quoted_name(database), quoted_name(table)),
            None => quoted_name(&pin.table),
        });
        names.collect()
    }

    /// Branches of a table as tables of their own: `t$branch_dev`.
    fn branches(&self, table: &str) -> Vec<String> {
        let (session, asked, kept) = (Arc::clone(&self.session), table.to_string(), table.to_string());
        self.fetch(async move { session.branches(&asked).await }, move |known, names| {
            known.branches.insert(kept, names);
        });
        let names = self.known(|k| k.branches.get(table).cloned()).unwrap_or_default();
        let (database, name) = table.rsplit_once('.').map_or(("", table), |(database, name)| (database, name));
        let dot = if database.is_empty() { "" } else { "." };
        let bare = unquoted(name);
        let whole = |branch: String| {
            let text = format!("{bare}$branch_{branch}");
            let plain = bare == name && quoted_name(&branch) == branch;
            format!("{database}{dot}{}", if plain { text } else { quoted(&text, '"') })
        };
        names.into_iter().map(whole).collect()
    }

    /// Settings; for one table, `'paimon.db.t.scan.…'`, a part at a time.
    fn settings(&self, word: &str) -> Vec<String> {
        let mut found = starting(word, self.session.setting_names().into_iter());
        let Some(rest) = word.strip_prefix("'paimon.") else { return found };
        let databases = self.databases();
        let part = |names: Vec<String>, before: String| names.into_iter().map(move |name| format!("'{before}{name}."));
        match rest.split_once('.') {
            None => found.extend(starting(word, part(databases, "paimon.".to_string()))),
            Some((database, rest)) if databases.iter().any(|known| known == database) => match rest.split_once('.') {
                None => {
                    found.extend(starting(word, part(self.tables(Some(database)), format!("paimon.{database}."))));
                }
                Some((table, _)) => {
                    let options = Session::scan_options();
                    found.extend(starting(word, options.map(|o| format!("'paimon.{database}.{table}.{o}'"))));
                }
            },
            Some(_) => {}
        }
        found
    }

    /// `t@v3`, `t@eod`, `"t@eod-0416"`.
    fn at_versions(&self, table: &str, typed: &str) -> Vec<String> {
        let (database, name) = match table.rsplit_once('.') {
            Some((database, name)) => (format!("{database}."), name),
            None => (String::new(), table),
        };
        let bare = name.trim_start_matches('"');
        let (ids, tags) = self.versions(&format!("{database}{}", bare.split('$').next().unwrap_or_default()));
        let ids = ids.into_iter().take(VERSIONS).map(|id| format!("v{id}"));
        let fits = |version: &String| version.to_lowercase().starts_with(&typed.to_lowercase());
        let whole = |version: String| {
            let plain = bare == name && quoted_name(&version) == version;
            let text = format!("{bare}@{version}");
            format!("{database}{}", if plain { text } else { quoted(&text, '"') })
        };
        ids.chain(tags).filter(fits).map(whole).collect()
    }

    /// Tables, table functions, databases with a dot, `$` tables once there is a `$`, versions once there is an `@`.
    fn relations(&self, word: &str) -> Vec<String> {
        if let Some((table, typed)) = word.split_once('@') {
            return self.at_versions(table, typed);
        }
        if let Some((table, _)) = word.rsplit_once('$') {
            let mut found = starting(word, Session::system_tables().into_iter().map(|name| format!("{table}${name}")));
            if !table.contains('$') {
                // a name that is quoted is whole
                let closed = if table.starts_with('"') { format!("{table}\"") } else { table.to_string() };
                found.extend(starting(word, self.branches(&closed).into_iter()));
            }
            return found;
        }
        if let Some((database, typed)) = word.split_once('.') {
            let names = named(typed, self.tables(Some(&unquoted(database))));
            return names.into_iter().map(|name| format!("{database}.{name}")).collect();
        }
        let tables = named(word, self.tables(None));
        let mut databases = self.databases();
        databases.push(Session::global_database().to_string());
        let databases = databases.into_iter().map(|name| format!("{}.", quoted_name(&name)));
        let functions =
            Session::table_functions().into_iter().filter(|_| !word.is_empty()).map(|name| format!("{name}("));
        let mut found = tables;
        found.extend(starting(word, databases.chain(functions)));
        found
    }

    fn anything(&self, scope: &Scope, word: &str) -> Vec<String> {
        let of_table = |table: &str| self.columns(table);
        if let Some((owner, typed)) = word.rsplit_once('.') {
            let relation = scope.relations.iter().find(|relation| relation.is_called(owner));
            let columns = relation.map_or_else(|| self.columns(owner), |relation| relation.columns(&of_table));
            return named(typed, columns).into_iter().map(|column| format!("{owner}.{column}")).collect();
        }
        if word.is_empty() && scope.relations.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<String> = Vec::new();
        for relation in &scope.relations {
            found.extend(named(word, relation.columns(&of_table)));
        }
        if !word.is_empty() {
            let called = scope.relations.iter().map(|relation| relation.name.clone());
            found.extend(named(word, called.filter(|name| !name.is_empty()).collect()));
            let lower = word.chars().any(char::is_lowercase);
            let case = |k: &&str| if lower { k.to_lowercase() } else { (*k).to_string() };
            found.extend(starting(word, KEYWORDS.iter().map(case)));
            found.extend(starting(word, self.session.function_names().into_iter().map(|name| format!("{name}("))));
            found.extend(self.relations(word));
        }
        let mut seen = std::collections::BTreeSet::new();
        found.retain(|candidate| seen.insert(candidate.clone()));
        found
    }
}

/// The command that a line begins with, without its mark: a backslash, or a dot and a letter.
pub fn command_of(typed: &str) -> Option<&str> {
    let typed = typed.trim_start();
    let dotted = || typed.strip_prefix('.').filter(|rest| !rest.starts_with(|c: char| !c.is_ascii_alphabetic()));
    typed.strip_prefix('\\').or_else(dotted)
}

/// Names as SQL reads them that begin like the word; behind a quote, in quotes.
fn named(word: &str, names: Vec<String>) -> Vec<String> {
    let quote = |name: String| if word.starts_with('"') { quoted(&name, '"') } else { quoted_name(&name) };
    starting(word, names.into_iter().map(quote))
}

/// Candidates that begin like the word, case aside; an open quote of a name matches the quoted name.
fn starting(word: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let word = word.to_lowercase();
    let mut found: Vec<String> = names
        // the terminal would act on what such a name holds
        .filter(|name| escaped(name) == *name)
        .filter(|name| {
            let lower = name.to_lowercase();
            lower.starts_with(&word) || lower.trim_start_matches(['"', '\'']).starts_with(&word) && !word.is_empty()
        })
        .collect();
    found.dedup();
    found
}

/// Where the word before the end begins.
fn word_start(typed: &str) -> usize {
    let stops =
        |c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | '=' | '<' | '>' | '+' | '*' | '/' | ';' | '|');
    let start = typed
        .rfind(stops)
        .map_or(0, |at| at + typed.get(at..).and_then(|t| t.chars().next()).map_or(1, char::len_utf8));
    // a comparison such as `- 1`, and `--until`, are words too
    start.min(typed.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store that does not answer: every name a key asks for is waited for together, not each in turn.
    #[test]
    fn key_waits_no_longer_than_its_patience() {
        let dir = tempfile::tempdir().unwrap();
        crate::shell::make_demo(dir.path()).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let url = dir.path().display().to_string();
        let session = runtime.block_on(async {
            let warehouse = crate::sql::Warehouse::open(&url, &BTreeMap::new()).await.unwrap();
            Session::new(&warehouse, crate::sql::SessionConfig::default()).await.unwrap()
        });
        let workers = Workers::single();
        let completion = Completion::new(Arc::new(session), workers.clone());
        // the only worker is busy: nothing is answered
        let (free, busy) = std::sync::mpsc::channel::<()>();
        workers.detach(async move { busy.recv().unwrap_or_default() });
        let began = Instant::now();
        let (_, found) = completion.complete("", "select x. from a x, b, c, d, e, f where ", 40);
        assert!(found.is_empty(), "{found:?}");
        assert!(began.elapsed() < 2 * PATIENCE, "{:?}", began.elapsed());
        drop(free);
    }

    #[test]
    fn names_are_offered_where_they_are_wanted() {
        let dir = tempfile::tempdir().unwrap();
        crate::shell::make_demo(dir.path()).unwrap();
        std::fs::create_dir_all(dir.path().join("pay.db/dwd_pay_success/branch/branch-dev")).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let url = dir.path().display().to_string();
        let session = runtime.block_on(async {
            let warehouse = crate::sql::Warehouse::open(&url, &BTreeMap::new()).await.unwrap();
            let config = crate::sql::SessionConfig { database: Some("pay".into()), ..Default::default() };
            Session::new(&warehouse, config).await.unwrap()
        });
        let mut completion = Completion::new(Arc::new(session), Workers::single());
        completion.variables = vec!["last_id".to_string()];
        runtime.block_on(completion.session.run_one("pin table dwd_pay_success")).unwrap();
        let cases = [
            ("\\use ", "pay"),
            ("\\use p", "pay"),
            ("\\dt ", "pay"),
            (".cou", "counts"),
            (".counts dwd_o", "dwd_order_status"),
            (".use ", "pay"),
            ("select * from sys.", "sys.tables"),
            ("select * from sy", "sys."),
            ("select * from paimon_", "paimon_changes("),
            ("select * from dwd_pay_success@", "dwd_pay_success@v8"),
            ("select * from pay.dwd_pay_success@v", "pay.dwd_pay_success@v8"),
            ("select * from dwd_pay_success@", "\"dwd_pay_success@after-repair\""),
            ("\\counts dwd_pay_success@v", "dwd_pay_success@v8"),
            ("set 'paimon.", "'paimon.pay."),
            ("set 'paimon.pay.", "'paimon.pay.dwd_pay_success."),
            ("set 'paimon.pay.dwd_pay_success.", "'paimon.pay.dwd_pay_success.scan.snapshot-id'"),
            ("set 'paimon.pay.dwd_pay_success.scan.t", "'paimon.pay.dwd_pay_success.scan.tag-name'"),
            ("set 'paimon.scan.", "'paimon.scan.snapshot-id'"),
            ("set lakepin.", "lakepin.verify_files"),
            ("select * from \"dwd", "\"dwd_pay_success\""),
            ("select * from pay.\"dwd", "pay.\"dwd_pay_success\""),
            ("select p.\"amo|\" from dwd_pay_success p", "p.\"amount\""),
            ("\\set auto", "autopin"),
            ("\\schema dwd_pay_success ", "0"),
            ("\\counts dwd_pay_success amo", "amount"),
            ("\\counts dwd_pay_success where amount > 1 and cha", "channel"),
            ("unpin ", "table"),
            ("unpin table dwd_p", "dwd_pay_success"),
            ("\\unpin ", "all"),
            ("\\unpin dwd", "dwd_pay_success"),
            ("select * from dwd_pay_success at (", "watermark"),
            ("select * from dwd_pay_success AT (t", "TIMESTAMP"),
            ("select * from dwd_pay_success for sys", "system_time"),
            ("select * from dwd_pay_success$sn", "dwd_pay_success$snapshots"),
            ("select * from pay.dwd_pay_success$br", "pay.dwd_pay_success$branch_dev"),
            ("select * from dwd_pay_success$branch_a$sn", "dwd_pay_success$branch_a$snapshots"),
            ("select * from dwd_pay_success p where exists (select 1 from dwd_order_status o where o.st", "o.status"),
            ("select * from (select dt, amount as amt from dwd_pay_success) s where s.", "s.amt"),
            ("with x as (select dt, amount as amt from dwd_pay_success) select * from ", "x"),
            ("with x as (select dt, amount as amt from dwd_pay_success) select x.| from x", "x.amt"),
            ("select dt, cha| from dwd_pay_success", "channel"),
            ("select * from dwd_pay_success version as of 1 where ", "channel"),
            ("select coun", "count("),
            ("select :la", ":last_id"),
            ("select 1 where x = :'la", ":'last_id'"),
            ("\\echo :la", ":last_id"),
            ("select * from dwd_pay_success for system_time as of ", "timestamp"),
        ];
        for (typed, expected) in cases {
            // the cursor stands at the mark, or at the end
            let at = typed.find('|').unwrap_or(typed.len());
            let line = typed.replacen('|', "", 1);
            let offered = || completion.complete("", &line, at).1;
            // a slow answer is there at a later key
            assert!((0..40).any(|_| offered().iter().any(|found| found == expected)), "{typed}: {:?}", offered());
        }
        for (typed, not) in [
            ("\\use pay ", "pay"),
            (".5 + co", "counts"),
            ("select * from nothing@", "pay"),
            ("with x as (select dt, amount as amt from dwd_pay_success) select * from x where am", "amount"),
            ("select * from dwd_pay_success for system_time as of ", "amount"),
            ("select a::la", ":last_id"),
            ("\\unpin ", "dwd_order_status"),
            ("unpin table ", "dwd_order_status"),
            ("select * from dwd_pay_success at (", "amount"),
        ] {
            let found = completion.complete("", typed, typed.len()).1;
            assert!(!found.iter().any(|name| name.contains(not)), "{typed}: {found:?}");
        }
    }

    #[test]
    fn words_begin_after_marks() {
        assert_eq!(word_start("select a,b"), 9);
        assert_eq!(word_start("from t$sn"), 5);
        assert_eq!(word_start("where (订单"), 7);
        assert_eq!(
            starting("Se", ["select".to_string(), "SET".to_string(), "x".to_string()].into_iter()),
            ["select", "SET"]
        );
        assert_eq!(starting("订", ["\"订单\"".to_string()].into_iter()), ["\"订单\""]);
    }
}
