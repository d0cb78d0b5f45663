//! What a place in a statement can name: the relations of its query and of the queries around it, under their aliases,
//! and the names that WITH gives. A text that is still being typed is no statement yet, so tokens are read, not a tree.

use std::ops::Range;

use datafusion::sql::sqlparser::tokenizer::{Token, Word};

use super::input::lexed;
use super::names::quoted_name;
use super::words::is_keyword;

/// Names at a place, the innermost query's first.
#[derive(Debug, Default, Clone)]
pub struct Scope {
    /// What FROM, JOIN and their like name.
    pub relations: Vec<Relation>,
    /// What WITH names.
    pub ctes: Vec<Relation>,
    /// The table that the innermost query names last.
    pub last: Option<String>,
}

/// A relation of a query.
#[derive(Debug, Clone)]
pub struct Relation {
    /// Its alias, or the last part of its name.
    pub name: String,
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    /// A table without and with its version, both as SQL reads them.
    Table { table: String, versioned: String },
    /// A query.
    Query(Outputs),
    /// What a table function gives is not known before it runs.
    Unknown,
}

/// Columns of a query.
#[derive(Debug, Clone, Default)]
struct Outputs {
    items: Vec<Output>,
    from: Vec<Relation>,
    /// Names given to all of them: `x (a, b)`.
    renamed: Vec<String>,
}

#[derive(Debug, Clone)]
enum Output {
    Named(String),
    All,
    AllOf(String),
}

impl Relation {
    /// Its columns, those of a table told by `of_table`.
    pub fn columns(&self, of_table: &dyn Fn(&str) -> Vec<String>) -> Vec<String> {
        match &self.source {
            Source::Table { versioned, .. } => of_table(versioned),
            Source::Query(outputs) if !outputs.renamed.is_empty() => outputs.renamed.clone(),
            Source::Query(outputs) => {
                let mut columns = Vec::new();
                for item in &outputs.items {
                    match item {
                        Output::Named(name) => columns.push(name.clone()),
                        Output::All => columns.extend(outputs.from.iter().flat_map(|one| one.columns(of_table))),
                        Output::AllOf(name) => {
                            let of = outputs.from.iter().find(|one| one.name == *name);
                            columns.extend(of.into_iter().flat_map(|one| one.columns(of_table)));
                        }
                    }
                }
                columns
            }
            Source::Unknown => Vec::new(),
        }
    }

    /// Whether `owner.column` may mean one of its columns.
    pub fn is_called(&self, owner: &str) -> bool {
        let of_table = || match &self.source {
            Source::Table { table, .. } => table == owner,
            _ => false,
        };
        self.name == owner || quoted_name(&self.name) == owner || of_table()
    }
}

/// A token, or what stands between parentheses.
#[derive(Debug)]
enum Node {
    Token(Token, usize),
    Group(Vec<Node>, Range<usize>),
}

impl Node {
    fn start(&self) -> usize {
        match self {
            Self::Token(_, at) => *at,
            Self::Group(_, range) => range.start,
        }
    }

    fn word(&self) -> Option<&Word> {
        match self {
            Self::Token(Token::Word(word), _) => Some(word),
            _ => None,
        }
    }

    /// A word that is no name, in upper case.
    fn keyword(&self) -> Option<String> {
        self.word().filter(|word| word.quote_style.is_none()).map(|word| word.value.to_uppercase())
    }

    fn is(&self, keyword: &str) -> bool {
        self.keyword().is_some_and(|word| word == keyword)
    }

    fn is_token(&self, token: &Token) -> bool {
        matches!(self, Self::Token(own, _) if own == token)
    }

    fn name(&self) -> Option<String> {
        self.word().filter(|word| word.quote_style.is_some() || !is_keyword(&word.value)).map(folded)
    }
}

/// A name as SQL reads it.
fn folded(word: &Word) -> String {
    if word.quote_style.is_some() { word.value.clone() } else { word.value.to_lowercase() }
}

/// The names at a place of a text.
pub fn scope(text: &str, at: usize) -> Scope {
    let mut tokens = lexed(text).into_iter().filter(|(token, _)| !matches!(token, Token::Whitespace(_)));
    let nodes = group(&mut tokens, true).0;
    let mut found = Scope::default();
    let statement = part(&nodes, at, |node| node.is_token(&Token::SemiColon));
    visit(statement, at, &mut found);
    found
}

/// Nodes up to the end of a group, and where that is.
fn group(tokens: &mut dyn Iterator<Item = (Token, Range<usize>)>, outermost: bool) -> (Vec<Node>, usize) {
    let mut nodes = Vec::new();
    while let Some((token, range)) = tokens.next() {
        match token {
            Token::LParen => {
                let (inner, end) = group(tokens, false);
                nodes.push(Node::Group(inner, range.end..end));
            }
            Token::RParen if outermost => {}
            Token::RParen => return (nodes, range.start),
            token => nodes.push(Node::Token(token, range.start)),
        }
    }
    (nodes, usize::MAX)
}

/// The part between separators that a place lies in.
fn part(nodes: &[Node], at: usize, separates: impl Fn(&Node) -> bool) -> &[Node] {
    let before = nodes.iter().rposition(|node| node.start() < at && separates(node)).map_or(0, |i| i + 1);
    let after = nodes.iter().position(|node| node.start() >= at && separates(node)).unwrap_or(nodes.len());
    nodes.get(before..after.max(before)).unwrap_or_default()
}

fn is_set_operator(node: &Node) -> bool {
    ["UNION", "EXCEPT", "INTERSECT"].iter().any(|operator| node.is(operator))
}

/// Adds the names of the queries around a place, inner ones first.
fn visit(nodes: &[Node], at: usize, found: &mut Scope) {
    let (rest, inside) = with(nodes, Some(at), &mut found.ctes);
    if let Some(body) = inside {
        // what WITH names sees nothing of the query behind it
        return visit(body, at, found);
    }
    let query = part(rest, at, is_set_operator);
    let from = from(query, &found.ctes);
    let holding = query.iter().find_map(|node| match node {
        Node::Group(inner, range) if range.start <= at && at <= range.end => Some((inner, range.start)),
        _ => None,
    });
    let own: Vec<Relation> = from.iter().map(|(relation, _)| relation.clone()).collect();
    if let Some((inner, start)) = holding {
        visit(inner, at, found);
        // and neither does a query in FROM of its neighbours
        if from.iter().any(|(_, of)| *of == Some(start)) {
            return;
        }
    }
    let last = own.iter().rev().find_map(|relation| match &relation.source {
        Source::Table { table, .. } => Some(table.clone()),
        _ => None,
    });
    found.last = found.last.take().or(last);
    found.relations.extend(own);
}

/// Adds what WITH names; the query behind it, and the body that a place lies in.
fn with<'a>(nodes: &'a [Node], at: Option<usize>, ctes: &mut Vec<Relation>) -> (&'a [Node], Option<&'a [Node]>) {
    let mut i = match nodes {
        [first, second, ..] if first.is("WITH") && second.is("RECURSIVE") => 2,
        [first, ..] if first.is("WITH") => 1,
        _ => return (nodes, None),
    };
    while let Some(name) = nodes.get(i).and_then(|node| node.word().map(folded)) {
        i += 1;
        let mut renamed = Vec::new();
        if let (Some(Node::Group(names, _)), Some(next)) = (nodes.get(i), nodes.get(i + 1))
            && next.is("AS")
        {
            renamed = names.iter().filter_map(|node| node.word().map(folded)).collect();
            i += 1;
        }
        i += usize::from(nodes.get(i).is_some_and(|node| node.is("AS")));
        let Some(Node::Group(body, range)) = nodes.get(i) else { break };
        i += 1;
        if at.is_some_and(|at| range.start <= at && at <= range.end) {
            return (&[], Some(body));
        }
        let outputs = Outputs { renamed, ..outputs(body, ctes) };
        // the nearest of a name counts
        ctes.insert(0, Relation { name, source: Source::Query(outputs) });
        if !nodes.get(i).is_some_and(|node| node.is_token(&Token::Comma)) {
            break;
        }
        i += 1;
    }
    (nodes.get(i..).unwrap_or_default(), None)
}

/// Columns of a query.
fn outputs(nodes: &[Node], outer: &[Relation]) -> Outputs {
    let mut ctes = outer.to_vec();
    let (rest, _) = with(nodes, None, &mut ctes);
    let end = rest.iter().position(is_set_operator).unwrap_or(rest.len());
    let query = rest.get(..end).unwrap_or_default();
    if let [Node::Group(inner, _), ..] = query {
        return outputs(inner, &ctes);
    }
    let Some(select) = query.iter().position(|node| node.is("SELECT")) else { return Outputs::default() };
    let listed = query.get(select + 1..).unwrap_or_default();
    let listed = listed.get(..listed.iter().position(|node| node.is("FROM")).unwrap_or(listed.len()));
    let items = listed.unwrap_or_default().split(|node| node.is_token(&Token::Comma)).filter_map(output).collect();
    let from = from(query, &ctes).into_iter().map(|(relation, _)| relation).collect();
    Outputs { items, from, renamed: Vec::new() }
}

/// The column of an item of SELECT, when it has a name.
fn output(item: &[Node]) -> Option<Output> {
    let item = match item {
        [first, rest @ ..] if first.is("DISTINCT") || first.is("ALL") => rest,
        item => item,
    };
    match item {
        [star] if star.is_token(&Token::Mul) => Some(Output::All),
        [.., of, dot, star] if dot.is_token(&Token::Period) && star.is_token(&Token::Mul) => {
            of.word().map(|word| Output::AllOf(folded(word)))
        }
        [.., before, last] if before.is("AS") || before.is_token(&Token::Period) => {
            last.word().map(|word| Output::Named(folded(word)))
        }
        [only] => only.name().map(Output::Named),
        // an alias without AS stands behind what ends an expression
        [.., before, last] => {
            let ends = match before {
                Node::Group(..) => true,
                Node::Token(Token::Number(..) | Token::SingleQuotedString(_) | Token::RBracket, _) => true,
                before => before.name().is_some() || before.is("END"),
            };
            last.name().filter(|_| ends).map(Output::Named)
        }
        [] => None,
    }
}

/// Relations of a query, those that are queries with where they begin.
fn from(query: &[Node], ctes: &[Relation]) -> Vec<(Relation, Option<usize>)> {
    let mut found = Vec::new();
    let (mut i, mut within, mut wanted) = (0, false, false);
    while let Some(node) = query.get(i) {
        i += 1;
        if node.is_token(&Token::Comma) {
            wanted = within;
            continue;
        }
        let keyword = node.keyword().filter(|word| is_keyword(word));
        if let Some(keyword) = keyword {
            let compares = i > 1 && query.get(i - 2).is_some_and(|before| before.is("DISTINCT"));
            match keyword.as_str() {
                "FROM" if compares => {}
                "FROM" | "JOIN" | "TABLE" | "DESCRIBE" | "INTO" => (within, wanted) = (true, true),
                "WHERE" | "GROUP" | "HAVING" | "ORDER" | "LIMIT" | "WINDOW" | "SELECT" | "SET" => within = false,
                "LATERAL" => continue,
                _ => {}
            }
            wanted &= matches!(keyword.as_str(), "FROM" | "JOIN" | "TABLE" | "DESCRIBE" | "INTO") && !compares;
            continue;
        }
        if !std::mem::take(&mut wanted) {
            continue;
        }
        let (source, mut name, start) = match node {
            Node::Group(inner, range) => (Source::Query(outputs(inner, ctes)), None, Some(range.start)),
            node => {
                let Some(first) = node.name() else { continue };
                let mut parts = vec![first];
                while let (Some(dot), Some(part)) = (query.get(i), query.get(i + 1).and_then(Node::word))
                    && dot.is_token(&Token::Period)
                {
                    parts.push(folded(part));
                    i += 2;
                }
                let calls = matches!(query.get(i), Some(Node::Group(..)));
                i += usize::from(calls);
                let selector = version(query, &mut i);
                let source = if calls { Source::Unknown } else { table(&parts, selector, ctes) };
                (source, parts.pop(), None)
            }
        };
        i += usize::from(query.get(i).is_some_and(|node| node.is("AS")));
        let mut renamed = Vec::new();
        if let Some(alias) = query.get(i).and_then(Node::name) {
            name = Some(alias);
            i += 1;
            if let Some(Node::Group(names, _)) = query.get(i) {
                renamed = names.iter().filter_map(|node| node.word().map(folded)).collect();
                i += 1;
            }
        }
        let source = match source {
            Source::Query(outputs) if !renamed.is_empty() => Source::Query(Outputs { renamed, ..outputs }),
            source => source,
        };
        found.push((Relation { name: name.unwrap_or_default(), source }, start));
    }
    found
}

/// A table of a name, unless WITH has given it.
fn table(parts: &[String], selector: Option<String>, ctes: &[Relation]) -> Source {
    if let [name] = parts
        && let Some(cte) = ctes.iter().find(|cte| cte.name == *name)
    {
        return cte.source.clone();
    }
    let path = |last: &str| {
        let above = parts.len().saturating_sub(1);
        let mut path: Vec<String> = parts.iter().take(above).map(|part| quoted_name(part)).collect();
        path.push(quoted_name(last));
        path.join(".")
    };
    let last = parts.last().map(String::as_str).unwrap_or_default();
    let bare = last.split('@').next().unwrap_or(last);
    let versioned = selector.map_or_else(|| path(last), |selector| path(&format!("{bare}@{selector}")));
    Source::Table { table: path(bare), versioned }
}

/// Takes the version of a table, as `@` would say it; the state of a time is left to the latest.
fn version(query: &[Node], i: &mut usize) -> Option<String> {
    let value = |node: Option<&Node>| match node {
        Some(Node::Token(Token::Number(number, _), _)) => Some(format!("v{number}")),
        Some(Node::Token(Token::SingleQuotedString(text), _)) => Some(text.clone()),
        _ => None,
    };
    if query.get(*i).is_some_and(|node| node.is("AT") || node.is("BEFORE"))
        && let Some(Node::Group(inner, _)) = query.get(*i + 1)
    {
        let at = query.get(*i).is_some_and(|node| node.is("AT"));
        *i += 2;
        return match inner.as_slice() {
            [what, _, chosen] if at && (what.is("VERSION") || what.is("TAG")) => value(Some(chosen)),
            _ => None,
        };
    }
    let mut next = *i + usize::from(query.get(*i).is_some_and(|node| node.is("FOR")));
    let by_version = query.get(next).is_some_and(|node| node.is("VERSION") || node.is("SYSTEM_VERSION"));
    let by_time = query.get(next).is_some_and(|node| node.is("TIMESTAMP") || node.is("SYSTEM_TIME"));
    let follows = |at: usize, word: &str| query.get(at).is_some_and(|node| node.is(word));
    if !(by_version || by_time) || !follows(next + 1, "AS") || !follows(next + 2, "OF") {
        return None;
    }
    next += 3;
    // TIMESTAMP '…'
    next += usize::from(by_time && follows(next, "TIMESTAMP"));
    let chosen = value(query.get(next)).filter(|_| by_version);
    *i = (next + 1).min(query.len());
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relations at `|` with their columns; a table `t` has the columns `t.1` and `t.2`.
    fn at(text: &str) -> Vec<String> {
        let at = text.find('|').unwrap();
        let of_table = |table: &str| vec![format!("{table}.1"), format!("{table}.2")];
        let found = scope(&text.replace('|', ""), at);
        found.relations.iter().map(|one| format!("{}: {}", one.name, one.columns(&of_table).join(" "))).collect()
    }

    #[test]
    fn place_sees_its_query_and_those_around_it() {
        let cases: &[(&str, &[&str])] = &[
            (
                "select | from pay.a x join \"B\" as y on x.i = y.i, c",
                &["x: pay.a.1 pay.a.2", "y: \"B\".1 \"B\".2", "c: c.1 c.2"],
            ),
            ("select * from a where exists (select 1 from b o where o.|", &["o: b.1 b.2", "a: a.1 a.2"]),
            ("select * from a where x in (select y from b) and |", &["a: a.1 a.2"]),
            ("select * from a where x is distinct from y and |", &["a: a.1 a.2"]),
            ("select | from a union select b from c", &["a: a.1 a.2"]),
            ("select 1 from a; select | from b", &["b: b.1 b.2"]),
            ("select * from a order by x, |", &["a: a.1 a.2"]),
            ("select * from (select x as y, count(*) n, z.w, 1 + 2 from a z) s where |", &["s: y n w"]),
            ("select * from (select *, 1 as one from a) where |", &[": a.1 a.2 one"]),
            ("select * from (select p.* from a p, b q) s (k, v) where |", &["s: k v"]),
            ("select * from (select | from a) s", &["a: a.1 a.2"]),
            ("select * from f('x') g where |", &["g: "]),
            ("describe |", &[]),
            ("select count(|) from a", &["a: a.1 a.2"]),
        ];
        for (text, expected) in cases {
            assert_eq!(at(text), *expected, "{text}");
        }
    }

    #[test]
    fn names_of_with_have_the_columns_of_their_queries() {
        let cases: &[(&str, &[&str])] = &[
            ("with x as (select dt, amount as amt from a) select * from x where |", &["x: dt amt"]),
            ("with x (k) as (select dt from a), y as (select * from x) select y.| from y", &["y: k"]),
            ("with x as (select | from a) select * from b", &["a: a.1 a.2"]),
            ("with t as (select 1 as one from t) select * from t where |", &["t: one"]),
        ];
        for (text, expected) in cases {
            assert_eq!(at(text), *expected, "{text}");
        }
        let text = "with x as (select 1), y as (select 2) select * from ";
        let names: Vec<String> = scope(text, text.len()).ctes.into_iter().map(|cte| cte.name).collect();
        assert_eq!(names, ["y", "x"]);
    }

    #[test]
    fn versions_have_the_columns_of_their_schema() {
        for (clause, versioned) in [
            ("version as of 1", "\"t@v1\""),
            ("for version as of 'eod'", "\"t@eod\""),
            ("at (version => 7)", "\"t@v7\""),
            ("at (tag => 'x')", "\"t@x\""),
            ("for system_time as of timestamp '2026-04-16'", "t"),
            ("before (version => 7)", "t"),
            ("", "t"),
        ] {
            assert_eq!(at(&format!("select | from t {clause} u where")), [format!("u: {versioned}.1 {versioned}.2")]);
        }
        assert_eq!(at("select | from pay.\"t@v3\""), ["t@v3: pay.\"t@v3\".1 pay.\"t@v3\".2"]);
        let text = "select * from a, pay.t version as of ";
        assert_eq!(scope(text, text.len()).last.as_deref(), Some("pay.t"));
        let text = "select * from t at (tag => ";
        assert_eq!(scope(text, text.len()).last.as_deref(), Some("t"));
    }
}
