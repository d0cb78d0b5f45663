//! `\if`, `\elif`, `\else`, `\endif`.

use crate::error::{Error, Result};

/// One open `\if`.
#[derive(Debug, Clone, Copy)]
struct Branch {
    /// Whether its text runs now.
    active: bool,
    /// Whether a branch of it ran already.
    taken: bool,
    /// Whether `\else` was seen.
    last: bool,
}

/// Open `\if`s, outermost first.
#[derive(Debug, Default)]
pub struct Conditions(Vec<Branch>);

impl Conditions {
    /// Whether text runs here.
    pub fn active(&self) -> bool {
        self.0.iter().all(|branch| branch.active)
    }

    /// Whether an `\if` is open.
    pub fn is_open(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether the branch of an `\elif` matters: an untaken `\if` in text that runs.
    pub fn asks(&self) -> bool {
        let outer = self.0.split_last().map_or(&[][..], |(_, outer)| outer);
        outer.iter().all(|branch| branch.active) && self.0.last().is_some_and(|branch| !branch.taken)
    }

    /// `\if`
    pub fn begin(&mut self, holds: bool) {
        let active = holds && self.active();
        self.0.push(Branch { active, taken: active, last: false });
    }

    /// `\elif` and `\else` (`holds` None).
    pub fn next(&mut self, holds: Option<bool>) -> Result<()> {
        let Some(branch) = self.0.last_mut() else {
            return Err(Error::invalid("there is no \\if before").with_code("Syntax"));
        };
        if branch.last {
            return Err(Error::invalid("\\else was the last branch").with_code("Syntax"));
        }
        branch.active = holds.unwrap_or(true) && !branch.taken;
        branch.taken |= branch.active;
        branch.last = holds.is_none();
        Ok(())
    }

    /// `\endif`
    pub fn end(&mut self) -> Result<()> {
        self.0.pop().map(drop).ok_or_else(|| Error::invalid("there is no \\if before").with_code("Syntax"))
    }

    /// Forgets all, after the text that opened them ended.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_true_branch_runs_and_no_other() {
        let mut conditions = Conditions::default();
        conditions.begin(false);
        assert!(!conditions.active());
        conditions.next(Some(true)).unwrap();
        assert!(conditions.active());
        conditions.begin(true);
        assert!(conditions.active());
        conditions.end().unwrap();
        conditions.next(Some(true)).unwrap();
        assert!(!conditions.active());
        conditions.next(None).unwrap();
        assert!(!conditions.active());
        assert!(conditions.next(None).is_err());
        conditions.end().unwrap();
        assert!(conditions.active() && conditions.end().is_err());
    }

    #[test]
    fn nothing_runs_inside_a_branch_that_does_not() {
        let mut conditions = Conditions::default();
        conditions.begin(false);
        conditions.begin(true);
        assert!(!conditions.active());
        conditions.next(None).unwrap();
        assert!(!conditions.active());
    }
}
