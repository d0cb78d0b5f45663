//! The plan of the house as tests: which room may import which, and what some rooms never do. They read the code under
//! `src/`, its tests left out, and name the file and line that breaks a rule.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Room and the rooms it may import, besides those of every room and itself.
const ALLOWED: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("memory", &[]),
    ("notice", &[]),
    ("export", &[]),
    ("spec", &[]),
    ("storage", &[]),
    ("merge", &["spec"]),
    ("file", &["spec", "storage"]),
    ("snapshot", &["spec", "storage"]),
    ("catalog", &["spec", "storage", "snapshot"]),
    ("scan", &["spec", "storage", "snapshot", "merge"]),
    ("read", &["spec", "storage", "snapshot", "file", "merge", "scan"]),
    ("query", &["spec", "storage", "snapshot", "catalog", "file", "merge", "scan", "read"]),
    ("recon", &["spec", "storage", "file", "merge", "snapshot", "scan", "read", "query"]),
    ("sql", &["export", "spec", "storage", "snapshot", "catalog", "scan", "read", "query", "recon"]),
    ("shell", &["export", "sql"]),
    ("testing", &["spec", "storage", "file", "merge", "snapshot", "catalog", "scan", "read", "query", "recon", "sql"]),
];

/// What every room may import, besides `error`.
const EVERYBODYS: &[&str] = &["memory", "notice"];

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("source folder is readable") {
        let path = entry.expect("entry is readable").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The code of a file up to its tests: comments and what stands in quotes are blanks, lines stay where they are.
fn code_of(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else if rest.strip_prefix('r').is_some_and(|raw| raw.trim_start_matches('#').starts_with('"')) {
            let marks = rest[1..].len() - rest[1..].trim_start_matches('#').len();
            let end = format!("\"{}", "#".repeat(marks));
            let open = marks + 2;
            rest.get(open..).and_then(|inner| inner.find(&end)).map_or(open, |at| open + at + end.len())
        } else if c == '"' {
            let mut escaped = false;
            let closes = |c: char| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            };
            rest[1..].find(closes).map_or(rest.len(), |at| at + 2)
        } else if let Some(quoted) = ["'\"'", "'\\\"'", "'\\''", "'\\\\'", "'/'"].iter().find(|q| rest.starts_with(**q))
        {
            quoted.len()
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        out.extend(rest[..length].chars().map(|c| if c == '\n' { c } else { ' ' }));
        rest = &rest[length..];
    }
    // an inline module of tests ends its file
    out.split_inclusive('\n').take_while(|line| !line.trim_start().starts_with("mod tests {")).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Name(&'a str),
    Colons,
    Mark(char),
}

/// Tokens of code with their lines, from 1.
fn tokens(code: &str) -> Vec<(Token<'_>, usize)> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        let name = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (token, length) = if name > 0 {
            (Some(Token::Name(&rest[..name])), name)
        } else if rest.starts_with("::") {
            (Some(Token::Colons), 2)
        } else {
            line += usize::from(c == '\n');
            ((!c.is_whitespace()).then_some(Token::Mark(c)), c.len_utf8())
        };
        tokens.extend(token.map(|token| (token, line)));
        rest = &rest[length..];
    }
    tokens
}

/// Paths of a tree such as `crate::{a::b, super::c}`, and where it ends.
fn paths<'a>(
    tokens: &[(Token<'a>, usize)],
    mut at: usize,
    mut path: Vec<&'a str>,
    found: &mut Vec<(Vec<&'a str>, usize)>,
) -> usize {
    let line = tokens.get(at).map_or(0, |(_, line)| *line);
    loop {
        match tokens.get(at).map(|(token, _)| *token) {
            Some(Token::Name(name)) => path.push(name),
            Some(Token::Mark('{')) => {
                at += 1;
                while let Some((token, _)) = tokens.get(at) {
                    match token {
                        Token::Mark('}') => return at + 1,
                        Token::Name(_) | Token::Mark('{') => at = paths(tokens, at, path.clone(), found),
                        _ => at += 1,
                    }
                }
                return at;
            }
            _ => {}
        }
        match tokens.get(at + 1) {
            Some((Token::Colons, _)) => at += 2,
            _ => {
                found.push((path, line));
                return at + 1;
            }
        }
    }
}

/// Names right below the crate that the code of a module reaches for, with their lines; `module`: where it stands.
fn imports(code: &str, module: &[String]) -> Vec<(String, usize)> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    for (at, (token, _)) in tokens.iter().enumerate() {
        let begins = at.checked_sub(1).and_then(|before| tokens.get(before)).is_none_or(|(t, _)| *t != Token::Colons);
        if begins && matches!(token, Token::Name("crate" | "super")) {
            paths(&tokens, at, Vec::new(), &mut found);
        }
    }
    let mut rooms = Vec::new();
    for (path, line) in found {
        let below = match path.split_first() {
            Some((&"crate", below)) => below,
            _ => {
                let up = path.iter().take_while(|name| **name == "super").count();
                // fewer steps stay in the room
                if up < module.len() {
                    continue;
                }
                &path[up..]
            }
        };
        rooms.extend(below.first().map(|room| ((*room).to_string(), line)));
    }
    rooms
}

/// `shell::commands::pin` of `shell/commands/pin.rs`.
fn module_of(relative: &Path) -> Vec<String> {
    let path = relative.with_extension("");
    let mut names: Vec<String> = path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    names.pop_if(|name| name == "mod");
    names
}

/// The files that are no tests: path below `src/`, room, code.
fn sources() -> Vec<(PathBuf, String, String)> {
    let room = |file: &Path| module_of(file).first().cloned().expect("path has a component");
    texts().into_iter().map(|(file, text)| (file.clone(), room(&file), code_of(&text))).collect()
}

/// What is shipped, as text: path below `src/`, and all that stands before the file's tests.
#[cfg(feature = "cli")]
pub(crate) fn shipped() -> Vec<(PathBuf, String)> {
    let before_tests = |text: String| {
        let lines = text.split_inclusive('\n').take_while(|line| !line.starts_with("mod tests {"));
        lines.collect()
    };
    let files = texts().into_iter().filter(|(file, _)| !file.starts_with("testing"));
    files.map(|(file, text)| (file, before_tests(text))).collect()
}

/// The files of rooms that are no tests: path below `src/` and text.
fn texts() -> Vec<(PathBuf, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    // a test module in a file of its own may do what tests may
    let of_tests: BTreeSet<PathBuf> = files.iter().flat_map(|file| test_modules(file)).collect();
    let mut texts = Vec::new();
    for file in files {
        let relative = file.strip_prefix(&src).expect("file lies under src").to_path_buf();
        // and so may the modules below it
        let tests = file.with_extension("").ancestors().any(|path| of_tests.contains(path));
        if !tests && !["lib.rs", "main.rs", "layers.rs"].map(Path::new).contains(&relative.as_path()) {
            texts.push((relative, fs::read_to_string(&file).expect("source is UTF-8")));
        }
    }
    texts
}

/// Paths, without extension, of the modules a file declares for tests only.
fn test_modules(file: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(file).expect("source is UTF-8");
    let folder = match file.file_stem() {
        Some(stem) if stem != "mod" && stem != "lib" => file.with_extension(""),
        _ => file.parent().expect("file lies in a folder").to_path_buf(),
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines
        .windows(2)
        .filter(|pair| pair[0] == "#[cfg(test)]" || pair[0].starts_with("#[cfg(all(test,"))
        .filter_map(|pair| pair[1].trim_start_matches("pub(crate) ").strip_prefix("mod ")?.strip_suffix(';'))
        .map(|name| folder.join(name))
        .collect()
}

/// Names that the library gives at its root, and the rooms they are of.
fn at_the_root() -> BTreeMap<String, String> {
    let lib = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let given = lib.lines().filter_map(|line| line.strip_prefix("pub use ")?.strip_suffix(';')?.split_once("::"));
    given
        .flat_map(|(room, names)| {
            names.trim_matches(['{', '}']).split(", ").map(move |name| (name.to_string(), room.to_string()))
        })
        .collect()
}

#[test]
fn rooms_import_only_downward() {
    let rooms: BTreeSet<&str> = ALLOWED.iter().map(|(room, _)| *room).collect();
    let at_the_root = at_the_root();
    assert_eq!(at_the_root.get("Session").map(String::as_str), Some("sql"), "{at_the_root:?}");
    let mut climbing = Vec::new();
    for (file, room, code) in sources() {
        let (_, allowed) = ALLOWED
            .iter()
            .find(|(name, _)| *name == room)
            .unwrap_or_else(|| panic!("{} belongs to no room of the plan", file.display()));
        for (import, line) in imports(&code, &module_of(&file)) {
            let import = at_the_root.get(&import).cloned().unwrap_or(import);
            let known = rooms.contains(import.as_str());
            let below = room != "error"
                && (import == "error" || EVERYBODYS.contains(&import.as_str()) && !EVERYBODYS.contains(&room.as_str()));
            let fine = import == room || below || allowed.contains(&import.as_str());
            if known && !fine {
                climbing.push(format!("{}:{line}: `{room}` imports `{import}`", file.display()));
            }
        }
    }
    assert!(climbing.is_empty(), "imports that climb:\n{}", climbing.join("\n"));
}

const BELOW_QUERY: &[&str] = &["spec", "storage", "merge", "file", "snapshot", "catalog", "scan", "read"];

const NO_ENGINE: &[&str] = &["spec", "storage", "merge", "file", "snapshot", "catalog"];

type Names = &'static [&'static str];

/// What is never named: a rule, the rooms it is for (none: all but those excepted), those excepted, names and paths.
const NEVER: &[(&str, Names, Names, Names)] = &[
    (
        "spec and merge never touch storage",
        &["spec", "merge"],
        &[],
        &["object_store", "std::fs", "tokio::fs", "std::net"],
    ),
    (
        "no DataFusion session or plan below query",
        BELOW_QUERY,
        &[],
        &[
            "SessionContext",
            "SessionState",
            "TaskContext",
            "ExecutionPlan",
            "LogicalPlan",
            "TableProvider",
            "datafusion::execution",
            "datafusion::physical_plan",
            "datafusion::prelude",
        ],
    ),
    ("formats, stores and merges know no query engine", NO_ENGINE, &[], &["datafusion"]),
    (
        "clock and ids only from storage::env",
        &[],
        &["storage/env.rs", "testing"],
        &["SystemTime::now", "Utc::now", "Local::now", "new_v4", "now_v7", "thread_rng", "rand::random", "rand::rng"],
    ),
    (
        "nothing prints but the shell",
        &[],
        &["shell", "testing"],
        &["println", "eprintln", "print", "eprint", "dbg", "io::stdout", "io::stderr"],
    ),
];

/// Lines of code that name something by a path that ends or begins so.
fn named(code: &str, wanted: &str) -> Vec<usize> {
    let tokens = tokens(code);
    let wanted: Vec<Token<'_>> = self::tokens(wanted).into_iter().map(|(token, _)| token).collect();
    let is_macro = |after: usize| matches!(tokens.get(after), Some((Token::Mark('!'), _)));
    let prints = matches!(wanted.as_slice(), [Token::Name("print" | "println" | "eprint" | "eprintln" | "dbg")]);
    tokens
        .windows(wanted.len())
        .enumerate()
        .filter(|(at, window)| {
            window.iter().map(|(token, _)| token).eq(&wanted) && (!prints || is_macro(at + wanted.len()))
        })
        .filter_map(|(_, window)| window.first().map(|(_, line)| *line))
        .collect()
}

#[test]
fn rooms_never_do_what_is_not_theirs() {
    let sources = sources();
    let mut broken = Vec::new();
    for (rule, rooms, excepted, names) in NEVER {
        let meant = sources.iter().filter(|(file, room, _)| {
            (rooms.is_empty() || rooms.contains(&room.as_str()))
                && !excepted.iter().any(|part| room == part || file == Path::new(part))
        });
        for (file, _, code) in meant {
            for name in *names {
                let lines = named(code, name);
                broken.extend(lines.iter().map(|line| format!("{}:{line}: `{name}`, but {rule}", file.display())));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn imports_are_found_in_lists_and_paths() {
    let of = |code: &str, module: &str| -> Vec<(String, usize)> {
        let module: Vec<String> = module.split("::").map(str::to_string).collect();
        imports(&code_of(code), &module)
    };
    type Found = &'static [(&'static str, usize)];
    let cases: &[(&str, &str, Found)] = &[
        ("use crate::{spec::Datum, scan};", "sql::a", &[("spec", 1), ("scan", 1)]),
        ("let x = crate::read::open(crate::spec::y);", "sql::a", &[("read", 1), ("spec", 1)]),
        ("// crate::shell\n/* crate::shell */ let x = \"crate::shell\";", "sql::a", &[]),
        ("use crate::{\n    spec::{Datum, Zone},\n    shell,\n};", "sql::a", &[("spec", 2), ("spec", 2), ("shell", 3)]),
        ("use super::super::shell::x;\nuse super::b;", "sql::a", &[("shell", 1)]),
        ("use super::{super::{shell, read::r}, b};", "sql::a", &[("shell", 1), ("read", 1)]),
        ("use super::super::b;", "sql::a::c", &[]),
        ("pub(crate) fn f() -> super::super::super::shell::T {}", "sql::a::c", &[("shell", 1)]),
        ("use crate::spec;\nmod tests { use crate::shell; }", "sql::a", &[("spec", 1)]),
    ];
    for (code, module, expected) in cases {
        let expected: Vec<_> = expected.iter().map(|(room, line)| ((*room).to_string(), *line)).collect();
        assert_eq!(of(code, module), expected, "{code}");
    }
}

#[test]
fn names_are_found_in_code_only() {
    let code = code_of(
        "let a = '\"'; // println!\nlet b = r#\"Utc::now \" \"#;\nchrono::Utc::now();\nx.print(y);\nprintln!();\n",
    );
    assert_eq!(named(&code, "Utc::now"), [3]);
    assert_eq!((named(&code, "print"), named(&code, "println")), (vec![], vec![5]));
}
