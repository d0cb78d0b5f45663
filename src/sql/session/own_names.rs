//! Which names are the warehouse's and which the session's own.

use datafusion::logical_expr::TableType;
use datafusion::sql::sqlparser::ast::ObjectName;

use super::{Run, Session, check_database};
use crate::error::{Error, ErrorKind, Result};
use crate::sql::statements::parts;

impl Session {
    /// Database and table a name of ours stands for; None in another catalog.
    pub(super) fn in_warehouse(&self, name: &ObjectName) -> Option<(String, String)> {
        let state = self.context.state_ref();
        let state = state.read();
        let catalog = &state.config_options().catalog;
        match parts(name).as_slice() {
            [table] if catalog.default_catalog == self.catalog_name => {
                Some((catalog.default_schema.clone(), table.clone()))
            }
            [database, table] if catalog.default_catalog == self.catalog_name => {
                Some((database.clone(), table.clone()))
            }
            [named, database, table] if *named == self.catalog_name => Some((database.clone(), table.clone())),
            _ => None,
        }
    }

    pub(super) fn table_name(&self, name: &ObjectName) -> Result<(String, String)> {
        self.in_warehouse(name).ok_or_else(|| {
            Error::invalid(format!("{name} is no table of the warehouse"))
                .with_code("TableNotFound")
                .with_hint(format!("write {}.DATABASE.TABLE", self.catalog_name))
        })
    }

    pub(super) fn database_of(&self, name: &ObjectName) -> Result<String> {
        match parts(name).as_slice() {
            [database] => Ok(database.clone()),
            [catalog, database] if *catalog == self.catalog_name => Ok(database.clone()),
            _ => Err(Error::not_found(format!("{name} is no database of the warehouse")).with_code("DatabaseNotFound")),
        }
    }

    /// Whether a name stands for something that is not the warehouse's.
    pub(super) fn is_local(&self, name: &ObjectName) -> bool {
        match self.in_warehouse(name) {
            Some((database, table)) => self.settings().local(&database, &table).is_some(),
            None => true,
        }
    }

    /// Views and temporary tables belong to a database that is there; the current one goes without saying.
    pub(super) async fn check_home(&self, database: &str) -> Result<()> {
        if database == self.database() { Ok(()) } else { check_database(&self.warehouse, database).await }
    }

    /// Whether a name stands for a view of the session.
    pub(super) fn is_view(&self, name: &ObjectName) -> bool {
        let local = self.in_warehouse(name).and_then(|(database, table)| self.settings().local(&database, &table));
        local.is_some_and(|table| table.table_type() == TableType::View)
    }

    /// A name for a view must not hide a table.
    pub(super) async fn check_free(
        &self,
        run: &Run,
        database: &str,
        name: &str,
        replace: bool,
        if_not: bool,
    ) -> Result<()> {
        let taken = |what: &str| {
            Error::invalid(format!("there is a {what} {database}.{name} already"))
                .with_code("TableExists")
                .with_hint("choose another name")
        };
        match run.statement.table(database, name).await {
            Ok(_) => return Err(taken("table")),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        if !replace && !if_not && self.settings().local(database, name).is_some() {
            return Err(taken("view or temporary table").with_hint("use CREATE OR REPLACE VIEW, or drop it first"));
        }
        Ok(())
    }
}
