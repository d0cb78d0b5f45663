//! Where in its text a statement is refused, for errors that know the statement only: at its target, at a name that the
//! error tells, or at its first word. And what a COPY may be asked for.

use std::path::Path;

use datafusion::datasource::listing::ListingTableUrl;
use datafusion::execution::SessionState;
use datafusion::sql::parser::{CopyToStatement, Statement as DfStatement};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::place::Place;
use super::warehouse::Warehouse;
use crate::error::{Error, Result};

/// Codes of refusals that concern a statement as a whole.
const OF_THE_WHOLE: &[&str] = &["ReadOnly", "NotYet", "NotPartitioned", "NotPinned", "TableExists", "UnknownFormat"];

/// The tokens of a statement.
pub(crate) struct Written(Vec<TokenWithSpan>);

impl Written {
    pub(crate) fn of(tokens: &[TokenWithSpan]) -> Self {
        Self(tokens.to_vec())
    }

    /// Adds the place to an error that has none.
    pub(crate) fn place(&self, error: Error) -> Error {
        if error.context().iter().any(|(name, _)| *name == "line") {
            return error;
        }
        let token = self.target(&error).or_else(|| self.named(&error)).or_else(|| self.first(&error));
        match token {
            Some(token) => Place::from(token.span.start).attach(error),
            None => error,
        }
    }

    fn target(&self, error: &Error) -> Option<&TokenWithSpan> {
        let (_, target) = error.context().iter().find(|(name, _)| *name == "target")?;
        self.0.iter().find(|token| matches!(&token.token, Token::SingleQuotedString(text) if text == target))
    }

    /// What stands in quotes in the message.
    fn named(&self, error: &Error) -> Option<&TokenWithSpan> {
        let quoted = ['\'', '"'].into_iter().flat_map(|quote| error.message().split(quote).skip(1).step_by(2));
        let mut names = quoted.flat_map(|name| [name, name.rsplit('.').next().unwrap_or(name)]);
        // of two that are called the same, the second is one too many
        let skipped = usize::from(error.code() == "DuplicateName");
        names.find_map(|name| self.0.iter().filter(|token| is_called(token, name)).nth(skipped))
    }

    fn first(&self, error: &Error) -> Option<&TokenWithSpan> {
        let unknown = error.message().contains("Unsupported SQL statement");
        if !unknown && !OF_THE_WHOLE.contains(&error.code()) {
            return None;
        }
        let mut names = error.message().split_whitespace().filter_map(|word| word.rsplit_once('.'));
        names.find_map(|(_, name)| self.0.iter().find(|token| is_called(token, name))).or_else(|| self.0.first())
    }
}

fn is_called(token: &TokenWithSpan, name: &str) -> bool {
    match &token.token {
        _ if name.is_empty() => false,
        Token::Word(word) if word.quote_style.is_some() => word.value == name,
        Token::Word(word) => word.value.eq_ignore_ascii_case(name),
        Token::SingleQuotedString(text) => {
            text == name || ["format.", "paimon."].iter().any(|prefix| text.strip_prefix(prefix) == Some(name))
        }
        _ => false,
    }
}

/// Refuses a COPY into the warehouse, to where no store is known, and in a format that nobody writes: the engine would
/// take the ending of the file for a format it does not know.
///
/// # Errors
/// `ReadOnly`, `UnknownTarget`, `UnknownFormat`, naming the target.
pub(crate) fn check_copy(statement: &DfStatement, state: &SessionState, warehouse: &Warehouse) -> Result<()> {
    let CopyToStatement { target, stored_as, .. } = match statement {
        DfStatement::CopyTo(copy) => copy,
        DfStatement::Explain(explain) => return check_copy(&explain.statement, state, warehouse),
        _ => return Ok(()),
    };
    warehouse.check_outside("COPY", target)?;
    let hint = "write STORED AS CSV, TSV, JSON, PARQUET or ARROW, or give the file such an ending";
    let ending = Path::new(target).extension().map(|ending| ending.to_string_lossy().into_owned());
    let Some(format) = stored_as.clone().or(ending) else {
        let error = Error::invalid("the format of what COPY writes is not said").with_code("UnknownFormat");
        return Err(error.with_context("target", target).with_hint(hint));
    };
    if state.get_file_format_factory(&format.to_lowercase()).is_none() {
        let error = Error::unsupported(format!("COPY writes no files of the format '{format}'"));
        let error = error.with_code("UnknownFormat");
        return Err(if stored_as.is_some() { error } else { error.with_context("target", target) }.with_hint(hint));
    }
    let store = ListingTableUrl::parse(target)?.object_store();
    if state.runtime_env().object_store(&store).is_err() {
        return Err(Error::unsupported(format!("COPY writes to files of this machine, and not to {}", store.as_str()))
            .with_code("UnknownTarget")
            .with_context("target", target)
            .with_hint("write to a file and copy that, or register the object store in the session underneath"));
    }
    Ok(())
}
