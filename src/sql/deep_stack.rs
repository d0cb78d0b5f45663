//! A stack of its own for a statement that may nest deep.
//!
//! Parser, planner and our own rules walk expressions and plans by functions that call themselves, and dropping one does
//! so too. A stack that is full ends the process, not the statement. So what a long statement needs is reserved, which
//! takes memory for what is touched only, and how deep an expression may be follows from the stack its rows are read on.

use std::future::{Future, poll_fn};
use std::task::Poll;

use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use futures::future::BoxFuture;
use futures::{StreamExt, stream};

use super::depth::too_deep;
use crate::error::Result;

/// Stack that a level of an expression takes while it is planned or computed.
const LEVEL_BYTES: usize = if cfg!(debug_assertions) { 8 << 10 } else { 2560 };

/// Levels that every stack holds.
const SHALLOW: usize = 64;

/// Levels at most, on any stack: what they take of time grows with their square.
const DEEPEST: usize = 2000;

/// Terms of an AND at most, on any stack.
const MOST_TERMS: usize = 10_000;

/// Stack that each word or sign of a statement takes which can nest, before it is known which of them do.
const WORD_BYTES: usize = 2 << 10;

/// Such words and signs in a statement, at most.
const MOST_WORDS: usize = 500_000;

/// The stack a statement runs on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeepStack {
    /// None: the caller's will do.
    bytes: Option<usize>,
}

impl DeepStack {
    /// For a statement with so many words and signs that can nest.
    pub(crate) fn of(nesting: usize) -> Self {
        let bytes = DEEPEST * LEVEL_BYTES * 2 + nesting.min(MOST_WORDS) * WORD_BYTES;
        Self { bytes: (nesting > SHALLOW).then_some(bytes) }
    }

    /// Calls `work` on it.
    pub(crate) fn run<T>(self, work: impl FnOnce() -> T) -> T {
        match self.bytes {
            // what runs on it already stays there
            Some(bytes) => stacker::maybe_grow(bytes / 2, bytes, work),
            None => work(),
        }
    }

    /// Waits for `work`, each step of which runs on it.
    pub(crate) fn wait<'a, T: 'a>(self, work: impl Future<Output = T> + Send + 'a) -> BoxFuture<'a, T> {
        if self.bytes.is_none() {
            return Box::pin(work);
        }
        let work: BoxFuture<'a, T> = Box::pin(work);
        let mut work = Kept { stack: self, value: Some(work) };
        Box::pin(poll_fn(move |context| match &mut work.value {
            Some(work) => self.run(|| work.as_mut().poll(context)),
            None => Poll::Pending,
        }))
    }

    /// Rows that are computed on it.
    pub(crate) fn rows(self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        if self.bytes.is_none() {
            return rows;
        }
        let schema = rows.schema();
        let mut rows = Kept { stack: self, value: Some(rows) };
        let rows = stream::poll_fn(move |context| {
            let Some(rows) = &mut rows.value else { return Poll::Ready(None) };
            self.run(|| rows.poll_next_unpin(context))
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }
}

/// A value that is dropped on the stack it was made on.
struct Kept<T> {
    stack: DeepStack,
    value: Option<T>,
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        let value = self.value.take();
        self.stack.run(|| drop(value));
    }
}

/// How deep a statement may nest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Levels {
    /// Levels of expressions, of relations on relations.
    pub(crate) most: usize,
    /// Terms of an AND, which the engine makes a chain again whatever it was.
    pub(crate) terms: usize,
}

impl Levels {
    /// No limit.
    pub(crate) const ALL: Self = Self { most: usize::MAX, terms: usize::MAX };

    /// What the caller's thread can compute: the rows of a statement are read on stacks like its.
    pub(crate) fn here() -> Self {
        let left = stacker::remaining_stack().unwrap_or(0) / LEVEL_BYTES;
        Self { most: left.clamp(SHALLOW, DEEPEST), terms: left.clamp(SHALLOW, MOST_TERMS) }
    }
}

/// How many words and signs of a statement can nest it by one level each.
///
/// # Errors
/// More than any stack holds.
pub(crate) fn nesting(tokens: &[TokenWithSpan]) -> Result<usize> {
    let mut nesting = tokens.iter().filter(|token| nests(&token.token));
    match nesting.by_ref().nth(MOST_WORDS) {
        Some(token) => Err(too_deep(format!("the statement has more than {MOST_WORDS} operators"), token.span)),
        None => Ok(tokens.iter().filter(|token| nests(&token.token)).count()),
    }
}

/// Lists, however long, nest nothing, and parentheses are counted by the parser.
fn nests(token: &Token) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_none() && word.keyword != Keyword::NoKeyword,
        Token::Number(..)
        | Token::Char(_)
        | Token::SingleQuotedString(_)
        | Token::Placeholder(_)
        | Token::Comma
        | Token::Period
        | Token::LParen
        | Token::RParen
        | Token::LBracket
        | Token::RBracket
        | Token::SemiColon
        | Token::Whitespace(_)
        | Token::EOF => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deepest(level: u32) -> u32 {
        let frame = std::hint::black_box([level; 64]);
        if level == 0 { 0 } else { deepest(level - 1) + frame[0] / level }
    }

    /// 100 000 levels of more than 256 bytes are more than a thread of 1 MB holds.
    #[test]
    fn work_of_a_long_statement_has_the_stack_it_needs() {
        let work = || {
            let stack = DeepStack::of(MOST_WORDS);
            assert_eq!(stack.run(|| deepest(100_000)), 100_000);
            let waited = async move {
                tokio::task::yield_now().await;
                deepest(100_000)
            };
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            assert_eq!(runtime.block_on(stack.wait(waited)), 100_000);
        };
        std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap().join().unwrap();
    }

    #[test]
    fn small_stacks_hold_fewer_levels() {
        let levels_of =
            |bytes| std::thread::Builder::new().stack_size(bytes).spawn(Levels::here).unwrap().join().unwrap();
        let large = levels_of(128 << 20);
        // a small stack may be one that a larger thread has left
        assert!(levels_of(1 << 20).most < large.most);
        assert_eq!((large.most, large.terms), (DEEPEST, MOST_TERMS));
    }
}
