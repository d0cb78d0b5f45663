//! Aggregate functions of merge engines. One list, [`FUNCTIONS`], names them all.

mod bitmap;
mod boolean;
mod collect;
mod elements;
mod extreme;
mod listagg;
mod map;
mod nested;
mod numeric;
mod position;

use std::collections::BTreeMap;
use std::fmt;

use super::cell::{Cell, Column};
use crate::error::{Error, Result};
use crate::spec::{DataField, DataType};

/// Folds the values of one column. `acc` is the value so far.
pub(super) trait AggregateFunction: fmt::Debug + Send + Sync {
    /// Takes one more value.
    fn agg(&self, acc: Cell, input: Cell, column: &Column<'_>, state: &mut FoldState) -> Result<Cell>;

    /// Takes a value that is older than the ones so far.
    fn agg_reversed(&self, acc: Cell, input: Cell, column: &Column<'_>, state: &mut FoldState) -> Result<Cell> {
        self.agg(input, acc, column, state)
    }

    /// Takes a value back; None: the function cannot.
    fn retract(&self, acc: Cell, input: Cell, column: &Column<'_>) -> Result<Option<Cell>> {
        let _ = (acc, input, column);
        Ok(None)
    }
}

/// What a function remembers besides the value, per key and column.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct FoldState {
    /// A first value was taken.
    pub(super) initialized: bool,
}

/// What a function is built from.
pub(super) struct Spec<'a> {
    pub(super) field: &'a DataField,
    options: &'a BTreeMap<String, String>,
    name: &'a str,
}

/// The option that gives every column its function which has none of its own.
pub(super) const DEFAULT_FUNCTION: &str = "fields.default-aggregate-function";

/// The option that names the function of `column`, or would: the function may also be the engine's own choice.
pub(super) fn function_option(column: &str, options: &BTreeMap<String, String>) -> String {
    let own = format!("fields.{column}.aggregate-function");
    if !options.contains_key(&own) && options.contains_key(DEFAULT_FUNCTION) {
        return DEFAULT_FUNCTION.to_string();
    }
    own
}

impl Spec<'_> {
    fn key(&self, suffix: &str) -> String {
        format!("fields.{}.{suffix}", self.field.name)
    }

    /// A text option of the column.
    fn text(&self, suffix: &str) -> Option<&str> {
        self.options.get(&self.key(suffix)).map(String::as_str)
    }

    /// A yes-or-no option of the column, no when absent.
    fn flag(&self, suffix: &str) -> Result<bool> {
        match self.text(suffix).map(str::trim) {
            None => Ok(false),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(text) => Err(Error::invalid(format!("expected true or false, found `{text}`"))
                .with_code("InvalidOption")
                .with_context("option", self.key(suffix))),
        }
    }

    /// The function does not take the column's type.
    fn wrong_type(&self, wanted: &str) -> Error {
        Error::invalid(format!("aggregate function `{}` takes {wanted}, not {:?}", self.name, self.field.data_type()))
            .with_code("AggregateType")
            .with_context("column", &self.field.name)
            .with_context("option", function_option(&self.field.name, self.options))
    }

    /// An option of the column is wrong.
    fn wrong_option(&self, suffix: &str, why: impl Into<String>) -> Error {
        Error::invalid(why).with_code("InvalidOption").with_context("option", self.key(suffix))
    }
}

type Build = fn(&Spec<'_>) -> Result<Box<dyn AggregateFunction>>;

/// Every function by name; the ones we refuse say why.
const FUNCTIONS: &[(&str, Result<Build, &str>)] = &[
    ("sum", Ok(numeric::sum)),
    ("product", Ok(numeric::product)),
    ("max", Ok(extreme::max)),
    ("min", Ok(extreme::min)),
    ("last_value", Ok(position::last_value)),
    ("last_non_null_value", Ok(position::last_non_null_value)),
    ("first_value", Ok(position::first_value)),
    ("first_non_null_value", Ok(position::first_non_null_value)),
    ("first_not_null_value", Ok(position::first_non_null_value)),
    ("bool_and", Ok(boolean::bool_and)),
    ("bool_or", Ok(boolean::bool_or)),
    ("listagg", Ok(listagg::listagg)),
    ("collect", Ok(collect::collect)),
    ("merge_map", Ok(map::merge_map)),
    ("merge_map_with_keytime", Ok(map::merge_map_with_keytime)),
    ("nested_update", Ok(nested::nested_update)),
    ("nested_partial_update", Ok(nested::nested_partial_update)),
    ("rbm32", Ok(bitmap::rbm32)),
    ("rbm64", Err("its bitmaps are Java's own tree form of 64-bit bitmaps")),
    ("hll_sketch", Err("its values are Apache DataSketches binaries")),
    ("theta_sketch", Err("its values are Apache DataSketches binaries")),
];

/// The function of one column, with its retract rule.
#[derive(Debug)]
pub(super) struct Aggregator {
    function: Box<dyn AggregateFunction>,
    name: String,
    column: String,
    /// The option that names the function.
    option: String,
    ignore_retract: bool,
}

impl Aggregator {
    /// Builds the function `name` for `field` from the table's options.
    pub(super) fn try_new(name: &str, field: &DataField, options: &BTreeMap<String, String>) -> Result<Self> {
        let spec = Spec { field, options, name };
        let Some((_, build)) = FUNCTIONS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = FUNCTIONS.iter().map(|(known, _)| *known).collect();
            return Err(Error::unsupported(format!("unknown aggregate function `{name}`"))
                .with_code("AggregateFunctionUnknown")
                .with_context("column", &field.name)
                .with_context("option", function_option(&field.name, options))
                .with_hint(format!("known functions: {}", known.join(", "))));
        };
        let function = match build {
            Ok(build) => build(&spec)?,
            Err(why) => {
                return Err(Error::unsupported(format!("aggregate function `{name}` is not supported: {why}"))
                    .with_code("AggregateFunctionUnsupported")
                    .with_context("column", &field.name)
                    .with_context("option", function_option(&field.name, options))
                    .with_hint("leave the column out of the query"));
            }
        };
        let ignore_retract = spec.flag("ignore-retract")?;
        Ok(Self {
            function,
            name: name.to_string(),
            column: field.name.clone(),
            option: function_option(&field.name, options),
            ignore_retract,
        })
    }

    pub(super) fn ignores_retract(&self) -> bool {
        self.ignore_retract
    }

    pub(super) fn agg(&self, acc: Cell, input: Cell, column: &Column<'_>, state: &mut FoldState) -> Result<Cell> {
        self.function.agg(acc, input, column, state)
    }

    pub(super) fn agg_reversed(
        &self,
        acc: Cell,
        input: Cell,
        column: &Column<'_>,
        state: &mut FoldState,
    ) -> Result<Cell> {
        if self.ignore_retract {
            // the wrapper that ignores retracts hides a function's own way of reversing
            return self.function.agg(input, acc, column, state);
        }
        self.function.agg_reversed(acc, input, column, state)
    }

    pub(super) fn retract(&self, acc: Cell, input: Cell, column: &Column<'_>) -> Result<Cell> {
        if self.ignore_retract {
            return Ok(acc);
        }
        self.function.retract(acc, input, column)?.ok_or_else(|| {
            Error::unsupported(format!("aggregate function `{}` cannot take back a -U or -D row", self.name))
                .with_code("RetractUnsupported")
                .with_context("column", &self.column)
                .with_context("option", &self.option)
                .with_hint(format!("set 'fields.{}.ignore-retract' = 'true' on the table to ignore them", self.column))
        })
    }
}

/// The last value, whatever the kind: what key columns do.
#[derive(Debug)]
pub(super) struct Keep;

impl Keep {
    pub(super) fn aggregator(column: &str) -> Aggregator {
        Aggregator {
            function: Box::new(Self),
            name: "primary-key".to_string(),
            column: column.to_string(),
            option: String::new(),
            ignore_retract: false,
        }
    }
}

impl AggregateFunction for Keep {
    fn agg(&self, _acc: Cell, input: Cell, _column: &Column<'_>, _state: &mut FoldState) -> Result<Cell> {
        Ok(input)
    }

    fn retract(&self, _acc: Cell, input: Cell, _column: &Column<'_>) -> Result<Option<Cell>> {
        Ok(Some(input))
    }
}

/// Whether a type is one of the numeric ones.
fn is_numeric(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::TinyInt
            | DataType::SmallInt
            | DataType::Int
            | DataType::BigInt
            | DataType::Float
            | DataType::Double
            | DataType::Decimal(..)
    )
}
