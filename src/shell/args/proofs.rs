//! Options of the subcommands that prove something of a table, and the line of the shell that each is a twin of.

use clap::Args as ClapArgs;

use super::{value, word};

/// ` --name "value"` for each that is given.
fn options(given: &[(&str, Option<&str>)]) -> String {
    let told = given.iter().filter_map(|(name, text)| text.map(|text| format!(" --{name} {}", value(text))));
    told.collect()
}

/// Options of `check`.
#[derive(Debug, Clone, ClapArgs)]
pub struct Check {
    /// Table: t or db.t
    pub table: String,
    /// Read data files, too: keys in two places, compactions that changed rows
    #[arg(long)]
    pub deep: bool,
    /// Only what is about snapshots from this one on
    #[arg(long, value_name = "SNAPSHOT")]
    pub from: Option<i64>,
    /// Only what is about snapshots up to this one
    #[arg(long, value_name = "SNAPSHOT")]
    pub to: Option<i64>,
}

impl Check {
    /// The line of the shell that does it.
    pub fn line(&self) -> String {
        let number = |id: Option<i64>| id.map(|id| id.to_string());
        let deep = if self.deep { " deep" } else { "" };
        let range = options(&[("from", number(self.from).as_deref()), ("to", number(self.to).as_deref())]);
        format!("\\check {}{deep}{range}", word(&self.table))
    }
}

/// Options of `conflicts`.
#[derive(Debug, Clone, ClapArgs)]
pub struct Conflicts {
    /// Table: t or db.t
    pub table: String,
    /// Around this one
    pub snapshot: Option<i64>,
    /// Only of commits from this time on
    #[arg(long, value_name = "TIME", conflicts_with = "snapshot")]
    pub since: Option<String>,
    /// Only of commits up to this time
    #[arg(long, value_name = "TIME", conflicts_with = "snapshot")]
    pub until: Option<String>,
}

impl Conflicts {
    /// The line of the shell that does it.
    pub fn line(&self) -> String {
        let snapshot = self.snapshot.map(|id| format!(" {id}")).unwrap_or_default();
        let times = options(&[("since", self.since.as_deref()), ("until", self.until.as_deref())]);
        format!("\\conflicts {}{snapshot}{times}", word(&self.table))
    }
}

/// Options of `rate`.
#[derive(Debug, Clone, ClapArgs)]
pub struct Rate {
    /// Table: t or db.t
    pub table: String,
    /// Count by stretches of this length: 1m, 1h [default: 1m]
    #[arg(long, value_name = "TIME")]
    pub window: Option<String>,
}

impl Rate {
    /// The line of the shell that does it.
    pub fn line(&self) -> String {
        format!("\\rate {}{}", word(&self.table), options(&[("window", self.window.as_deref())]))
    }
}

/// What of a difference is looked at.
#[derive(Debug, Clone, ClapArgs)]
pub struct Compared {
    /// A condition on both sides
    #[arg(long = "where", value_name = "CONDITION")]
    pub condition: Option<String>,
    /// Columns compared beside the key: a,b [default: all]
    #[arg(long, value_name = "NAMES")]
    pub columns: Option<String>,
    /// Partitions compared: dt=2026-04-16 [default: all]
    #[arg(long, value_name = "PARTITIONS")]
    pub partitions: Option<String>,
}

impl Compared {
    fn line(&self) -> String {
        let Self { condition, columns, partitions } = self;
        let given = [("where", condition), ("columns", columns), ("partitions", partitions)];
        options(&given.map(|(name, text)| (name, text.as_deref())))
    }
}

/// Options of `diff`.
#[derive(Debug, Clone, ClapArgs)]
pub struct Diff {
    /// Table: t or db.t
    pub table: String,
    /// The state before: a snapshot, a tag, a branch, another table
    pub from: String,
    /// The state after [default: the newest]
    pub to: Option<String>,
    /// Name the commit of each difference
    #[arg(long)]
    pub attribute: bool,
    /// What of it is compared.
    #[command(flatten)]
    pub compared: Compared,
}

impl Diff {
    /// The line of the shell that does it.
    pub fn line(&self) -> String {
        let to = self.to.as_deref().map(|to| format!(" {}", word(to))).unwrap_or_default();
        let attribute = if self.attribute { " --attribute" } else { "" };
        format!("\\diff {} {}{to}{}{attribute}", word(&self.table), word(&self.from), self.compared.line())
    }
}

/// Options of `keys`.
#[derive(Debug, Clone, ClapArgs)]
pub struct Keys {
    /// Table: t or db.t
    pub table: String,
    /// The commit
    pub snapshot: i64,
    /// What of it is compared.
    #[command(flatten)]
    pub compared: Compared,
}

impl Keys {
    /// The line of the shell that does it.
    pub fn line(&self) -> String {
        format!("\\keys {} {}{}", word(&self.table), self.snapshot, self.compared.line())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::shell::args::Args;

    #[test]
    fn subcommands_are_lines_of_the_shell() {
        for (given, line) in [
            ("check t --deep --from 3 --to 9", r#"\check t deep --from "3" --to "9""#),
            ("conflicts t 7", r"\conflicts t 7"),
            ("conflicts t --since 2026-04-16", r#"\conflicts t --since "2026-04-16""#),
            ("rate t --window 1h", r#"\rate t --window "1h""#),
            ("diff pay.t 4 eod", r"\diff pay.t 4 eod"),
            (
                "diff t 4 --where a>1 --columns a,b --attribute",
                r#"\diff t 4 --where "a>1" --columns "a,b" --attribute"#,
            ),
            ("keys t 6 --partitions dt=1", r#"\keys t 6 --partitions "dt=1""#),
            ("wait a,b --query x --print-pin", r#"\wait a,b --query "x" --print-pin"#),
        ] {
            let args = Args::try_parse_from(["lakepin"].into_iter().chain(given.split(' '))).unwrap();
            assert_eq!(args.action.unwrap().line(None).unwrap(), line);
        }
        assert!(Args::try_parse_from(["lakepin", "conflicts", "t", "7", "--since", "x"]).is_err());
    }
}
