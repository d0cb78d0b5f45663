//! The last part of a table name: `orders$branch_fix$files@v3`.

use super::system_tables;

/// A table name taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TableName {
    /// The table.
    pub(crate) table: String,
    /// `$branch_x`.
    pub(crate) branch: Option<String>,
    /// `$snapshots`, lower case.
    pub(crate) system: Option<String>,
}

impl TableName {
    /// Takes a name without `@…` apart.
    pub(crate) fn parse(name: &str) -> Self {
        let mut rest = name;
        let mut system = None;
        if let Some((before, last)) = rest.rsplit_once('$')
            && !before.is_empty()
            && !last.starts_with("branch_")
        {
            system = Some(last.to_lowercase());
            rest = before;
        }
        if let Some((table, branch)) = rest.split_once("$branch_")
            && !table.is_empty()
            && !branch.is_empty()
        {
            return Self { table: table.to_string(), branch: Some(branch.to_string()), system };
        }
        Self { table: rest.to_string(), branch: None, system }
    }

    /// The name without the system part, as a catalog takes it.
    pub(crate) fn data_table(&self) -> String {
        match &self.branch {
            Some(branch) => format!("{}$branch_{branch}", self.table),
            None => self.table.clone(),
        }
    }

    /// Whether the system part is one we know.
    pub(crate) fn known_system(&self) -> bool {
        self.system.as_deref().is_none_or(system_tables::is_known)
    }
}

/// The parts of a name given as text, `db.t`: a part in double quotes or backticks is taken as it stands, its points too,
/// `db."a.b"`.
pub(crate) fn split_parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote: Option<char> = None;
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        let Some(part) = parts.last_mut() else { break };
        match quote {
            // doubled, it is part of the name
            Some(open) if c == open && chars.peek() == Some(&open) => {
                chars.next();
                part.push(c);
            }
            Some(open) if c == open => quote = None,
            Some(_) => part.push(c),
            None if part.is_empty() && matches!(c, '"' | '`') => quote = Some(c),
            None if c == '.' => parts.push(String::new()),
            None => part.push(c),
        }
    }
    parts
}

/// Cuts `name@selector`; None when there is no selector.
pub(crate) fn split_selector(name: &str) -> Option<(&str, &str)> {
    let (base, selector) = name.split_once('@')?;
    (!base.is_empty() && !selector.is_empty()).then_some((base, selector))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(name: &str) -> (String, Option<String>, Option<String>) {
        let name = TableName::parse(name);
        (name.table, name.branch, name.system)
    }

    #[test]
    fn points_part_names_but_not_in_quotes() {
        for (name, parts) in [
            ("t", vec!["t"]),
            ("db.t", vec!["db", "t"]),
            ("my db.a b", vec!["my db", "a b"]),
            ("db.\"a.b\"", vec!["db", "a.b"]),
            ("`d.b`.\"q\"\"q\"", vec!["d.b", "q\"q"]),
            ("c.\"db\".it's", vec!["c", "db", "it's"]),
            ("db.\"a.b\"$branch_x", vec!["db", "a.b$branch_x"]),
        ] {
            assert_eq!(split_parts(name), parts, "{name}");
        }
    }

    #[test]
    fn branch_and_system_part_are_told_apart() {
        let s = |x: &str| Some(x.to_string());
        assert_eq!(parts("t"), ("t".into(), None, None));
        assert_eq!(parts("t$Snapshots"), ("t".into(), None, s("snapshots")));
        assert_eq!(parts("t$branch_x"), ("t".into(), s("x"), None));
        assert_eq!(parts("t$branch_x$files"), ("t".into(), s("x"), s("files")));
        assert_eq!(split_selector("t$files@v3"), Some(("t$files", "v3")));
        assert_eq!(split_selector("t"), None);
    }
}
