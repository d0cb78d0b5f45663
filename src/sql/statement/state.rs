//! The session as a statement sees it: its own catalog, and our rules of the language.

use std::sync::Arc;

use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::planner::ExprPlanner;

use super::Statement;
use crate::query::aggregates;
use crate::sql::catalog::StatementCatalogs;
use crate::sql::chains::with_shallow_chains;
use crate::sql::checked::{CheckedArithmetic, SignedDifferences};
use crate::sql::doubles::DoubleLiterals;
use crate::sql::grouping::ComputedKeys;
use crate::sql::guards::{GuardedTerms, with_guards};
use crate::sql::nans::OneNan;
use crate::sql::null_keys::with_own_keys;
use crate::sql::operands::LosslessOperands;
use crate::sql::plain;
use crate::sql::planner::TravelPlanner;
use crate::sql::reworded::Reworded;
use crate::sql::text_files;
use crate::sql::times::TimeTypes;
use crate::sql::zeros::OneZero;
use crate::sql::zoned::{LocalTimes, WrittenTimes};

/// Rules of statements of ours, beside [`plain::rules`].
const OWN_RULES: [&str; 9] = [
    Reworded::NAME,
    LosslessOperands::NAME,
    WrittenTimes::NAME,
    LocalTimes::NAME,
    CheckedArithmetic::NAME,
    SignedDifferences::NAME,
    OneNan::NAME,
    OneZero::NAME,
    GuardedTerms::NAME,
];

impl Statement {
    /// The session's state with this statement's catalog and our rules of the language.
    pub(crate) fn state(self: &Arc<Self>) -> SessionState {
        let mut planners: Vec<_> = vec![TravelPlanner::for_statement(Arc::clone(&self.shown))];
        planners.extend(self.base.relation_planners().iter().filter(|planner| !TravelPlanner::is(planner)).cloned());
        let catalogs = StatementCatalogs::new(Arc::clone(self.base.catalog_list()), Arc::clone(self));
        let mut rules: Vec<_> = self
            .base
            .analyzer()
            .rules
            .iter()
            .filter(|rule| !plain::is_ours(rule.as_ref()))
            .filter(|rule| !OWN_RULES.contains(&rule.name()))
            .cloned()
            .collect();
        rules.push(Arc::new(LocalTimes));
        rules.extend(plain::rules(Some(Arc::clone(self))));
        rules.push(Arc::new(CheckedArithmetic));
        rules.push(Arc::new(OneNan));
        rules.push(Arc::new(OneZero));
        rules.push(Arc::new(GuardedTerms));
        // before types are coerced
        rules.insert(0, Arc::new(Reworded));
        rules.insert(0, Arc::new(LosslessOperands));
        rules.insert(0, Arc::new(SignedDifferences));
        rules.insert(0, Arc::new(WrittenTimes));
        rules.insert(0, Arc::new(ComputedKeys));
        let mut expressions: Vec<Arc<dyn ExprPlanner>> = vec![Arc::new(DoubleLiterals)];
        expressions.extend(self.base.expr_planners().iter().cloned());
        let mut builder = SessionStateBuilder::new_from_existing(self.base.clone());
        let types = TimeTypes(builder.type_planner().take());
        let mut state = builder
            .with_type_planner(Arc::new(types))
            .with_session_id(self.base.session_id().to_string())
            .with_expr_planners(expressions)
            .with_relation_planners(planners)
            .with_catalog_list(Arc::new(catalogs))
            .with_analyzer_rules(rules)
            .with_optimizer_rules(with_guards(with_own_keys(with_shallow_chains(self.base.optimizers()))))
            .build();
        // there is no registry that would refuse
        let registered = aggregates::register(&mut state).and_then(|()| text_files::register(&mut state));
        debug_assert!(registered.is_ok(), "{registered:?}");
        let parser = &mut state.config_mut().options_mut().sql_parser;
        parser.parse_float_as_decimal = true;
        parser.enable_ident_normalization = true;
        parser.collect_spans = true;
        // it takes each NaN for a group of its own, and none for the greatest; where one is all it shows, it panics
        state.config_mut().options_mut().optimizer.enable_topk_aggregation = false;
        state
    }
}
