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
pub struct Conditions {
    open: Vec<Branch>,
    /// How many of them the text that runs now did not open: they are not its to change.
    outer: usize,
}

/// The `\if`s of the text around one that runs.
#[derive(Debug, Clone, Copy)]
pub struct Outer(usize);

impl Conditions {
    /// Whether text runs here.
    pub fn active(&self) -> bool {
        self.open.iter().all(|branch| branch.active)
    }

    /// A text of its own begins.
    pub fn enter(&mut self) -> Outer {
        Outer(std::mem::replace(&mut self.outer, self.open.len()))
    }

    /// The text ended: its branches are closed. Whether there were any.
    pub fn leave(&mut self, outer: Outer) -> bool {
        let left_open = self.open.len() > self.outer;
        self.open.truncate(self.outer);
        self.outer = outer.0;
        left_open
    }

    /// Leaves the innermost `\if` of the text; whether there was one.
    pub fn escape(&mut self) -> bool {
        self.end().is_ok()
    }

    fn own(&mut self) -> Result<&mut Branch> {
        match self.open.get_mut(self.outer..).and_then(|own| own.last_mut()) {
            Some(branch) => Ok(branch),
            None => Err(Error::invalid("there is no \\if before").with_code("Syntax")),
        }
    }

    /// Whether the branch of an `\elif` matters: an untaken `\if` in text that runs.
    pub fn asks(&self) -> bool {
        let outer = self.open.split_last().map_or(&[][..], |(_, outer)| outer);
        outer.iter().all(|branch| branch.active) && self.open.last().is_some_and(|branch| !branch.taken)
    }

    /// `\if`
    pub fn begin(&mut self, holds: bool) {
        let active = holds && self.active();
        self.open.push(Branch { active, taken: active, last: false });
    }

    /// `\elif` and `\else` (`holds` None).
    pub fn next(&mut self, holds: Option<bool>) -> Result<()> {
        let branch = self.own()?;
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
        self.own()?;
        self.open.pop();
        Ok(())
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
    #[test]
    fn text_closes_its_own_branches_and_no_others() {
        let mut conditions = Conditions::default();
        conditions.begin(true);
        let outer = conditions.enter();
        assert!(conditions.end().is_err() && conditions.next(None).is_err());
        conditions.begin(false);
        assert!(!conditions.active());
        assert!(conditions.leave(outer));
        assert!(conditions.active());
        let outer = conditions.enter();
        assert!(!conditions.leave(outer));
        conditions.next(None).unwrap();
        assert!(!conditions.active());
        conditions.end().unwrap();
    }
}
