//! How rows of MySQL are asked for: in chunks by an index without ties, by lists of keys, or streamed in one go.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use mysql_async::prelude::Queryable;
use mysql_async::{Params, Row, Value};

use super::super::bounds::{Bounds, Term, listed};
use super::super::cells::{Chunk, schema_of};
use super::super::feed::{self, Feed, OrderCheck};
use super::super::manners::Pace;
use super::super::{SourceColumn, SourceOrder, SourceRead, faults};
use super::columns::{MyColumn, bytes_of, quoted, ways};
use super::filters::filtered;
use super::server::text;
use super::values::{around, cell, key_param, param};
use super::{Body, MySqlSource};
use crate::error::{Error, Result};

/// Keys asked for in one statement.
const KEYS: usize = 200;

/// An index that serves an order, and columns of that order without ties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Way {
    index: String,
    total: Option<Vec<usize>>,
}

/// What is read, put together once.
struct Plan {
    body: Arc<Body>,
    /// Columns wanted.
    read: Vec<usize>,
    ordered: Vec<usize>,
    conditions: Vec<String>,
    params: Vec<Value>,
    /// Conditions that are no bounds, which stand behind those above, and their parameters.
    filters: Vec<String>,
    filter_params: Vec<Value>,
}

impl Plan {
    fn wanted(&self) -> Vec<&SourceColumn> {
        self.read.iter().filter_map(|at| self.body.columns.get(*at)).map(|column| &column.source).collect()
    }

    /// `SELECT` these columns, with more behind them, under the conditions and others.
    fn select(&self, more: &[usize], index: Option<&str>, others: Vec<String>) -> String {
        let names = self.read.iter().chain(more).filter_map(|at| self.body.columns.get(*at)).map(MyColumn::quoted);
        let mut names: Vec<String> = names.collect();
        if names.is_empty() {
            names.push("1".into());
        }
        let force = index.map(|index| format!(" FORCE INDEX ({})", quoted(index))).unwrap_or_default();
        let conditions = self.conditions.iter().chain(&self.filters).cloned().chain(others);
        let conditions: Vec<String> = conditions.collect();
        let filter = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
        format!("SELECT {} FROM {}{force}{filter}", names.join(", "), self.body.from)
    }

    /// Parameters of a `select` with others behind its own.
    fn params(&self, others: impl IntoIterator<Item = Value>) -> Vec<Value> {
        self.params.iter().chain(&self.filter_params).cloned().chain(others).collect()
    }

    /// The same without the filters, for a look at keys alone.
    fn unfiltered(&self) -> Self {
        Self {
            body: Arc::clone(&self.body),
            read: Vec::new(),
            ordered: self.ordered.clone(),
            conditions: self.conditions.clone(),
            params: self.params.clone(),
            filters: Vec::new(),
            filter_params: Vec::new(),
        }
    }

    fn order(&self, columns: &[usize]) -> String {
        let columns: Vec<&MyColumn> = columns.iter().filter_map(|at| self.body.columns.get(*at)).collect();
        order_by(&columns)
    }

    /// Cells of the columns wanted, of a row that begins with them.
    fn push(&self, chunk: &mut Chunk, row: &Row) -> Result<()> {
        let cells = self.read.iter().enumerate().filter_map(|(at, of)| {
            let column = self.body.columns.get(*of)?;
            Some(cell(row.as_ref(at)?, column.kind, &column.source))
        });
        self.body.server.count_row();
        chunk.push(cells)
    }
}

fn order_by(columns: &[&MyColumn]) -> String {
    let columns: Vec<String> = columns.iter().map(|column| column.in_order()).collect();
    if columns.is_empty() { String::new() } else { format!(" ORDER BY {}", columns.join(", ")) }
}

/// A key against its columns, in the order that a read has.
fn terms(columns: &[&MyColumn], key: &[ScalarValue]) -> Result<Vec<Term<Value>>> {
    columns
        .iter()
        .zip(key)
        .map(|(column, value)| {
            let around = match column.source.order {
                SourceOrder::Values => around(column),
                _ => bytes_of("?").split_once('?').map(|(a, b)| (a.into(), b.into())).unwrap_or_default(),
            };
            let value = key_param(column, value)?;
            Ok(Term { expression: column.in_order(), around, value, nullable: column.source.nullable })
        })
        .collect()
}

/// A key as it is looked up: by what an index knows, and exactly.
fn lookup(columns: &[&MyColumn], key: &[ScalarValue]) -> Result<Vec<Term<Value>>> {
    let mut found = Vec::new();
    for (column, value) in columns.iter().zip(key) {
        let value = key_param(column, value)?;
        let nullable = column.source.nullable;
        if column.source.data_type == arrow::datatypes::DataType::Utf8 && value.is_some() {
            let around = bytes_of("?").split_once('?').map(|(a, b)| (a.into(), b.into())).unwrap_or_default();
            let expression = bytes_of(&column.quoted());
            found.push(Term { expression, around, value: value.clone(), nullable });
        }
        found.push(Term { expression: column.quoted(), around: around(column), value, nullable });
    }
    Ok(found)
}

impl MySqlSource {
    fn positions(&self, names: &[String]) -> Result<Vec<usize>> {
        let body = &self.body;
        let position = |name: &String| {
            let known = body.columns.iter().position(|column| column.source.name == *name);
            known.ok_or_else(|| faults::no_column(body.server.name(), name, &self.columns))
        };
        names.iter().map(position).collect()
    }

    /// Whether the plan of a statement neither sorts nor reads a whole table for its order.
    async fn is_served(&self, sql: &str, params: Vec<Value>) -> Result<bool> {
        let params = if params.is_empty() { Params::Empty } else { Params::Positional(params) };
        let plan = match self.body.server.rows(&format!("EXPLAIN {sql}"), params).await {
            Ok(plan) => plan,
            // an index that may not be used, a view whose tables may not be seen
            Err(error) if ["SourceStatement", "SourceDenied"].contains(&error.code()) => return Ok(false),
            Err(error) => return Err(error),
        };
        Ok(plan.iter().all(|row| {
            let extra = text(row, "Extra").unwrap_or_default();
            let sorts = extra.contains("Using filesort") || extra.contains("Using temporary");
            !sorts && text(row, "type").as_deref() != Some("ALL")
        }))
    }

    /// The index by which rows come in this order, as the database plans it.
    async fn way(&self, ordered: &[usize]) -> Result<Option<Way>> {
        if let Some(known) = self.ways.lock().get(ordered) {
            return Ok(known.clone());
        }
        let way = self.find_way(ordered).await?;
        self.ways.lock().insert(ordered.to_vec(), way.clone());
        Ok(way)
    }

    async fn find_way(&self, ordered: &[usize]) -> Result<Option<Way>> {
        let body = &self.body;
        let column = |at: &usize| body.columns.get(*at);
        for (index, total) in ways(&body.indexes, ordered) {
            // where values compare in another way than they sort, chunks would leave rows out
            let total = total.filter(|total| {
                total.iter().filter_map(column).all(|column| column.source.order != SourceOrder::Other)
            });
            let columns: Vec<&MyColumn> = total.as_deref().unwrap_or(ordered).iter().filter_map(column).collect();
            let names: Vec<String> = columns.iter().map(|column| column.quoted()).collect();
            let names = names.join(", ");
            let from = format!("{} FORCE INDEX ({})", body.from, quoted(&index));
            let first = format!("SELECT * FROM {from} ORDER BY {names} LIMIT 100");
            if !self.is_served(&first, Vec::new()).await? {
                continue;
            }
            let Some(total) = total else { return Ok(Some(Way { index, total: None })) };
            let sample = format!("SELECT {names} FROM {from} ORDER BY {names} LIMIT 1");
            let served = match body.server.rows(&sample, Params::Positional(Vec::new())).await?.into_iter().next() {
                None => true,
                Some(row) => {
                    let mut bounds = Bounds::new(true, false);
                    let beyond = bounds.beyond(&continued(&columns, &row.unwrap()));
                    let next = format!("SELECT * FROM {from} WHERE {beyond} ORDER BY {names} LIMIT 100");
                    self.is_served(&next, bounds.params).await?
                }
            };
            return Ok(Some(Way { index, total: Some(total).filter(|_| served) }));
        }
        Ok(None)
    }

    pub(super) async fn is_served_in_order(&self, ordered_by: &[String]) -> Result<bool> {
        let ordered = self.positions(ordered_by)?;
        let columns: Vec<&MyColumn> = ordered.iter().filter_map(|at| self.body.columns.get(*at)).collect();
        if columns.iter().any(|column| column.source.order != SourceOrder::Values) {
            return Ok(false);
        }
        if self.body.is_query {
            let sql = format!("SELECT * FROM {}{} LIMIT 100", self.body.from, order_by(&columns));
            return self.is_served(&sql, Vec::new()).await;
        }
        Ok(ordered.is_empty() || self.way(&ordered).await?.is_some())
    }

    /// Whether rows come in that order in chunks, between which the connection is free.
    pub(super) async fn is_chunked(&self, ordered_by: &[String]) -> Result<bool> {
        if self.body.is_query {
            return Ok(false);
        }
        let ordered = self.positions(ordered_by)?;
        let way = if ordered.is_empty() { None } else { self.way(&ordered).await? };
        Ok(way.is_some_and(|way| way.total.is_some()))
    }

    pub(super) async fn start(&self, read: SourceRead) -> Result<SendableRecordBatchStream> {
        let body = Arc::clone(&self.body);
        let ordered = self.positions(&read.ordered_by)?;
        let wanted = self.positions(&read.columns)?;
        let column = |at: &usize| body.columns.get(*at);
        let by: Vec<&MyColumn> = ordered.iter().filter_map(column).collect();
        let mut bounds = Bounds::new(true, false);
        let mut conditions = Vec::new();
        // on a line of its own: it may end in a comment
        conditions.extend(read.condition.as_ref().map(|condition| format!("({condition}\n)")));
        for (bound, is_after) in [(&read.after, true), (&read.upto, false)] {
            let Some(key) = bound else { continue };
            if key.len() != by.len() || by.is_empty() {
                return Err(Error::internal("a bound has other columns than the order of the read"));
            }
            let terms = terms(&by, key)?;
            conditions.push(if is_after { bounds.beyond(&terms) } else { bounds.upto(&terms) });
        }
        let sources: Vec<&SourceColumn> = wanted.iter().filter_map(column).map(|column| &column.source).collect();
        let order: Vec<&SourceColumn> = by.iter().map(|column| &column.source).collect();
        let check = OrderCheck::of(body.server.name(), &sources, &order, true)?;
        let schema = schema_of(&sources, read.unreadable);
        let mut own = Bounds::new(true, false);
        let mut filters = Vec::new();
        for filter in &read.filters {
            let [at] = self.positions(std::slice::from_ref(&filter.column))?[..] else { continue };
            let sql = column(&at).and_then(|column| filtered(&mut own, column, &filter.test));
            filters.push(sql.ok_or_else(|| Error::internal(format!("{filter} is no condition for this source")))?);
        }
        let plan = Plan {
            body: Arc::clone(&body),
            read: wanted,
            ordered,
            conditions,
            params: bounds.params,
            filters,
            filter_params: own.params,
        };
        if !read.keys.is_empty() {
            let of = if plan.ordered.is_empty() { self.positions(&self.key)? } else { plan.ordered.clone() };
            let keys = listed(read.keys, of.len(), true)?;
            return Ok(feed::stream(schema, check, move |feed| by_keys(plan, of, keys, feed)));
        }
        let is_binary = by.iter().all(|column| column.source.order == SourceOrder::Values);
        let way = match (plan.ordered.is_empty(), self.positions(&self.key)?) {
            _ if body.is_query => None,
            (false, _) if is_binary => self.way(&plan.ordered).await?,
            // a condition is left to the plan of the database, which may have an index for it
            (true, key) if read.condition.is_none() && !key.is_empty() => self.way(&key).await?,
            _ => None,
        };
        Ok(match way {
            Some(Way { index, total: Some(total) }) => {
                feed::stream(schema, check, move |feed| in_chunks(plan, index, total, feed))
            }
            way => feed::stream(schema, check, move |feed| in_one_go(plan, way.map(|way| way.index), feed)),
        })
    }
}

/// Where the last row of a chunk ended.
fn continued(columns: &[&MyColumn], last: &[Value]) -> Vec<Term<Value>> {
    let term = |(column, value): (&&MyColumn, &Value)| Term {
        expression: column.quoted(),
        around: around(column),
        value: Some(value).filter(|value| **value != Value::NULL).map(|value| param(value, column.kind)),
        nullable: column.source.nullable,
    };
    columns.iter().zip(last).map(term).collect()
}

/// Chunks by an index, each from where the last one ended. Under filters a chunk is a stretch of the index of that many
/// rows, whatever is left of them: else the database would read on without an end until it has found enough.
async fn in_chunks(plan: Plan, index: String, total: Vec<usize>, mut feed: Feed) -> Result<()> {
    let server = &plan.body.server;
    let columns: Vec<&MyColumn> = total.iter().filter_map(|at| plan.body.columns.get(*at)).collect();
    let names: Vec<String> = columns.iter().map(|column| column.quoted()).collect();
    let names = names.join(", ");
    let mut last: Option<Vec<Value>> = None;
    let mut pace = Pace::new(&server.manners);
    loop {
        let asked = pace.rows();
        let mut bounds = Bounds::new(true, false);
        let mut others: Vec<String> =
            last.as_ref().map(|last| bounds.beyond(&continued(&columns, last))).into_iter().collect();
        let is_stretch = !plan.filters.is_empty();
        let mut end = None;
        if is_stretch {
            let keys = plan.unfiltered();
            let select = keys.select(&total, Some(&index), others.clone());
            let sql = format!("{select} ORDER BY {names} LIMIT 1 OFFSET ?");
            let params = keys.params(bounds.params.iter().cloned().chain([Value::UInt((asked - 1) as u64)]));
            let found = server.rows(&sql, Params::Positional(params)).await?;
            end = found.into_iter().next().map(Row::unwrap);
            others.extend(end.as_ref().map(|end| bounds.upto(&continued(&columns, end))));
        }
        let select = plan.select(&total, Some(&index), others);
        let (sql, limit) = match is_stretch {
            true => (format!("{select} ORDER BY {names}"), None),
            false => (format!("{select} ORDER BY {names} LIMIT ?"), Some(Value::UInt(asked as u64))),
        };
        let params = plan.params(bounds.params.into_iter().chain(limit));
        let Some((chunk, found)) = chunk_of(&plan, &sql, params, &feed).await? else { return Ok(()) };
        let rows = chunk.rows();
        pace.learn(if is_stretch { asked } else { rows }, chunk.bytes());
        let is_last = if is_stretch { end.is_none() } else { rows < asked };
        if !feed.give(chunk).await? || is_last {
            return Ok(());
        }
        if !is_stretch {
            end = found.map(Row::unwrap).and_then(|values| values.get(plan.read.len()..).map(<[Value]>::to_vec));
        }
        last = Some(end.filter(|end| end.len() == columns.len()).ok_or_else(|| Error::internal("a chunk has no end"))?);
        if !pace.rest(&feed).await {
            return Ok(());
        }
    }
}

/// The rows of one statement, and the last of them as it came. None when nobody wants them any more.
async fn chunk_of(plan: &Plan, sql: &str, params: Vec<Value>, feed: &Feed) -> Result<Option<(Chunk, Option<Row>)>> {
    let server = &plan.body.server;
    let mut held = server.hold().await?;
    server.count_query();
    let asked = async {
        let conn = held.as_mut().ok_or_else(|| server.gone())?;
        let mut chunk = Chunk::new(&plan.wanted())?;
        let mut last = None;
        let mut result = match conn.exec_iter(sql, Params::Positional(params)).await {
            Ok(result) => result,
            Err(fault) => return Ok::<_, Error>(Err(fault)),
        };
        loop {
            match result.next().await {
                Ok(Some(row)) => {
                    plan.push(&mut chunk, &row)?;
                    last = Some(row);
                }
                Ok(None) => return Ok(Ok((chunk, last))),
                Err(fault) => return Ok(Err(fault)),
            }
        }
    };
    match server.unless_unwanted(feed, asked).await {
        Ok(None) => {
            server.settle(&mut held, None).await;
            Ok(None)
        }
        Ok(Some(answer)) => {
            let answer: std::result::Result<_, mysql_async::Error> = answer?;
            answer.map(Some).map_err(|fault| server.fault(&mut held, &fault))
        }
        Err(why) => Err(server.lose(&mut held, why)),
    }
}

/// Keys by lists, each list one statement.
async fn by_keys(plan: Plan, of: Vec<usize>, keys: Vec<Vec<ScalarValue>>, mut feed: Feed) -> Result<()> {
    let server = &plan.body.server;
    let columns: Vec<&MyColumn> = of.iter().filter_map(|at| plan.body.columns.get(*at)).collect();
    let mut pace = Pace::new(&server.manners);
    for some in keys.chunks(KEYS) {
        let mut bounds = Bounds::new(true, false);
        let mut any = Vec::with_capacity(some.len());
        for key in some {
            any.push(bounds.only(&lookup(&columns, key)?));
        }
        let select = plan.select(&[], None, vec![format!("({})", any.join(" OR "))]);
        let sql = format!("{select}{}", plan.order(&plan.ordered));
        let params = plan.params(bounds.params);
        let Some((chunk, _)) = chunk_of(&plan, &sql, params, &feed).await? else { return Ok(()) };
        pace.learn(chunk.rows(), chunk.bytes());
        if !feed.give(chunk).await? || !pace.rest(&feed).await {
            return Ok(());
        }
    }
    Ok(())
}

/// One statement whose rows are taken as they come. It holds the connection.
async fn in_one_go(plan: Plan, index: Option<String>, mut feed: Feed) -> Result<()> {
    let server = &plan.body.server;
    let (mut held, _streaming) = server.hold_for_stream(&feed).await?;
    server.count_query();
    let index = index.as_deref().filter(|_| !plan.ordered.is_empty());
    let sql = format!("{}{}", plan.select(&[], index, Vec::new()), plan.order(&plan.ordered));
    // the server's limit would count the time that the reader takes
    let (limit, restored) = if server.is_mariadb {
        ("SET SESSION max_statement_time = 0", super::limit_of(true, &server.manners))
    } else {
        ("SET SESSION max_execution_time = 0", super::limit_of(false, &server.manners))
    };
    let params = Params::Positional(plan.params([]));
    let mut unwanted = false;
    let mut why = None;
    let asked = async {
        let conn = held.as_mut().ok_or_else(|| server.gone())?;
        let mut pace = Pace::new(&server.manners);
        let mut chunk = Chunk::new(&plan.wanted())?;
        if let Err(fault) = conn.query_drop(limit).await {
            return Ok(Err(fault));
        }
        let answer = match server.unless_unwanted(&feed, conn.exec_iter(sql.as_str(), params)).await {
            Ok(answer) => answer,
            Err(told) => {
                why = Some(told);
                return Ok(Ok(()));
            }
        };
        let Some(answer) = answer else { return Ok(Ok(())) };
        let mut result = match answer {
            Ok(result) => result,
            Err(fault) => return Ok(Err(fault)),
        };
        loop {
            match server.unless_unwanted(&feed, result.next()).await {
                Err(told) => {
                    why = Some(told);
                    return Ok(Ok(()));
                }
                Ok(None) => {
                    unwanted = true;
                    break;
                }
                Ok(Some(Err(fault))) => return Ok(Err(fault)),
                Ok(Some(Ok(None))) => {
                    feed.give(chunk).await?;
                    break;
                }
                Ok(Some(Ok(Some(row)))) => plan.push(&mut chunk, &row)?,
            }
            if chunk.rows() >= pace.rows() || chunk.bytes() > super::super::manners::CHUNK_BYTES {
                let full = std::mem::replace(&mut chunk, Chunk::new(&plan.wanted())?);
                pace.learn(full.rows(), full.bytes());
                if !feed.give(full).await? || !pace.rest(&feed).await {
                    server.stop_statement().await;
                    unwanted = true;
                    break;
                }
            }
        }
        // what is left is read away; of a statement that was stopped, little is
        let rest = tokio::time::timeout(std::time::Duration::from_secs(30), result.drop_result()).await;
        if rest.is_err() {
            why = Some("a statement could not be stopped");
        }
        Ok::<_, Error>(match rest {
            Ok(Err(fault)) if !unwanted => Err(fault),
            _ => Ok(()),
        })
    };
    let answer = asked.await;
    let ended = match (why, answer) {
        (Some(why), _) => return Err(server.lose(&mut held, why)),
        (None, Ok(Ok(()))) => Ok(()),
        (None, Ok(Err(fault))) => Err(server.fault(&mut held, &fault)),
        (None, Err(error)) => {
            // nobody reads what is left
            server.stop_statement().await;
            Err(error)
        }
    };
    server.settle(&mut held, Some(&restored)).await;
    ended
}
