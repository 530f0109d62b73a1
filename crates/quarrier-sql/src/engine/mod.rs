//! The engine: holds the tables, and answers statements.

mod answer;
mod direct;
mod growing;
mod names;
mod opened;
mod options;
mod pool;
mod session;
mod statement;
mod tender;
mod units;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::TableReference;
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use quarrier::account::RemoteCost;
use quarrier::{DataFolder, Opener};
use quarrier_core::name;
use quarrier_core::parallel::planned_workers;
use quarrier_core::sync::lock;
use quarrier_messages::HiddenColumns;

use crate::ceiling::Ceiling;
use crate::files::{Opening, Room};
use crate::function::{self, Notes};
use crate::net::{caught, caught_now};
use crate::reach::Reach;
use crate::rewrite::{self, KnownNames, Named, Rewritable};
use crate::rows::Rows;
use crate::{Error, Messages, Result};

pub use crate::files::{FileRejects, Loaded, Rounded};
pub use answer::Answer;
use answer::Planned;
pub use direct::scan_answers;
pub(crate) use growing::TableState;
use names::Names;
use opened::{OpenedTable, Origin};
pub use options::Options;
pub use statement::{Statement, WORDS_MAX, WORDS_ON_ANY_STACK};

/// Answers statements over tables. A table is a file, messages in memory or a function. The engine
/// opens files when a statement names them, and keeps them open.
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
/// # runtime.block_on(async {
/// use quarrier_sql::{Answer, Engine, Options};
///
/// let engine = Engine::new(Options::default())?;
/// let statement = &engine.statements("SELECT 1 + 1 AS two")?[0];
/// let Answer::Rows(mut rows) = engine.run(statement).await? else { unreachable!() };
/// let batch = rows.next().await?.unwrap();
/// assert_eq!(batch.num_rows(), 1);
/// # Ok::<(), quarrier_sql::Error>(())
/// # }).unwrap();
/// ```
pub struct Engine {
    context: SessionContext,
    names: Arc<Names>,
    growing: OnceLock<growing::GrowingFolder>,
    opening: Opening,
    statement_words_max: usize,
    state: Mutex<State>,
    /// Accounts for the memory of tables, so that queries get the rest.
    room: Arc<Room>,
    notes: Notes,
    reach: Reach,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("tables", &self.tables()).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    /// The names of open tables.
    tables: BTreeSet<String>,
    /// The names of tables and their columns.
    known: KnownNames,
    loaded: Loaded,
    /// The data folder whose tables are opened when a statement names them, with its table names.
    kept: Option<Arc<DataFolder>>,
    kept_names: Vec<String>,
    /// Tables opened from sources, by name.
    opened: HashMap<String, OpenedTable>,
}

impl Engine {
    /// Creates an engine without tables.
    ///
    /// # Errors
    /// The system denies something that the engine needs, such as a folder for temporary files.
    pub fn new(mut options: Options) -> Result<Self> {
        options.workers = planned_workers(options.workers);
        let names = Arc::new(Names::default());
        let notes = Notes::default();
        let context = session::context(&options, &names, &notes)?;
        let statement_words_max = options.statement_words_max;
        let (environment, machine) = (options.environment, options.machine);
        let (reach, mut open) = (options.reach, options.open);
        let host = function::Host {
            environment,
            machine,
            reach: reach.clone(),
            open: open.clone(),
            spread: options.spread.clone(),
        };
        function::register(&context, &notes, &host);
        let room = Arc::new(Room::new(&context.runtime_env().memory_pool));
        if let Some(bytes) = room.remote_bytes_max() {
            open = open.memory_bytes_max(Some(bytes));
        }
        let opener = Arc::new(Opener::new(open, &host.environment, &options.stop));
        let opening = Opening {
            room: Arc::clone(&room),
            workers: options.workers,
            limits: options.limits,
            hidden: options.hidden,
            stop: options.stop,
            opener,
            spread: options.spread,
        };
        let known = KnownNames::of(function::of_rows(&context));
        let state = Mutex::new(State { known, ..State::default() });
        let growing = OnceLock::new();
        Ok(Engine {
            context,
            names,
            growing,
            opening,
            statement_words_max,
            state,
            room,
            notes,
            reach,
        })
    }

    /// The DataFusion session.
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Opens a file, or all files that match a glob, as the table `name`.
    ///
    /// # Errors
    /// The file does not exist, it cannot be read, or there is not enough memory for it.
    pub async fn open(&self, name: &str, file: &str) -> Result<()> {
        self.open_from(name, Origin::Source(file.to_string()), HiddenColumns::default()).await
    }

    /// Makes the tables of a data folder available by their names. Each is opened when a statement
    /// names it.
    ///
    /// # Errors
    /// The folder is not a data folder, or cannot be read.
    pub fn open_folder(&self, folder: &Path) -> Result<()> {
        caught_now(|| {
            let fail = |error: quarrier::Error| Error::text(error.to_string());
            let kept = DataFolder::read(folder).map_err(fail)?;
            self.name_tables_of(&kept)?;
            lock(&self.state).kept = Some(Arc::new(kept));
            Ok(())
        })
    }

    /// Lets statements name the tables of a data folder, and records its damage and notices.
    fn name_tables_of(&self, kept: &DataFolder) -> Result<()> {
        let tables = kept.tables().map_err(|error| Error::text(error.to_string()))?;
        let mut state = lock(&self.state);
        state.kept_names = tables.into_iter().map(|table| table.name).collect();
        let names = state.kept_names.clone();
        names.iter().for_each(|name| state.known.add(name));
        state.loaded.damages.extend(kept.damages());
        state.loaded.notices.extend(kept.notices());
        Ok(())
    }

    /// Adds messages in memory as the table `name`. Their memory is not counted.
    ///
    /// # Errors
    /// The name is not allowed.
    pub fn add(&self, name: &str, table: Arc<quarrier_messages::Table>) -> Result<()> {
        let hidden = table.hidden();
        let table: Arc<dyn TableProvider> = Arc::new(Messages::new(table));
        let loaded = Loaded { hidden, ..Loaded::default() };
        self.keep_opened(name, (Origin::Memory, hidden), (table, loaded))
    }

    /// Adds record batches as the table `name`. Their memory is not counted.
    ///
    /// # Errors
    /// A batch has another schema.
    pub fn add_batches(
        &self,
        name: &str,
        schema: SchemaRef,
        batches: Vec<RecordBatch>,
    ) -> Result<()> {
        let table = MemTable::try_new(schema, vec![batches])?;
        self.keep(name, (Arc::new(table), Loaded::default()))
    }

    fn keep(&self, name: &str, opened: (Arc<dyn TableProvider>, Loaded)) -> Result<()> {
        let (table, loaded) = opened;
        self.room.take(loaded.memory_bytes)?;
        {
            let mut state = lock(&self.state);
            state.loaded.add(loaded);
            state.tables.insert(name.to_string());
            state.known.add(name);
            table.schema().fields().iter().for_each(|field| state.known.add(field.name()));
        }
        self.context.register_table(TableReference::bare(name), table)?;
        Ok(())
    }

    /// The cost of all requests for tables so far; `None` if none was remote.
    pub fn remote_cost(&self) -> Option<RemoteCost> {
        self.opening.opener.remote_cost()
    }

    /// The names of the open tables.
    pub fn tables(&self) -> Vec<String> {
        let state = lock(&self.state);
        let all: BTreeSet<&String> = state.tables.iter().chain(&state.kept_names).collect();
        all.into_iter().cloned().collect()
    }

    /// The names of an open table's columns; empty if no such table is open.
    pub async fn columns_of(&self, table: &str) -> Vec<String> {
        let Ok(table) = self.context.table_provider(TableReference::bare(table)).await else {
            return Vec::new();
        };
        table.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Takes the rejects and other problems of the files loaded since the last call.
    pub fn take_loaded(&self) -> Loaded {
        std::mem::take(&mut lock(&self.state).loaded)
    }

    /// Takes the notes on statements answered since the last call: ranges of sources that could not
    /// be read, one line each.
    pub fn take_notes(&self) -> Vec<String> {
        self.notes.take()
    }

    /// Takes the notices of sources read in full by the statements since the last call, a line each:
    /// a skipped partition, a missing last segment of an image.
    pub fn take_notices(&self) -> Vec<String> {
        self.notes.take_notices()
    }

    /// Parses the statements in `text`, which are separated by `;`.
    ///
    /// # Errors
    /// The text is not valid SQL, too long, or nested too deeply.
    pub fn statements(&self, text: &str) -> Result<Vec<Statement>> {
        caught_now(|| statement::parsed(text, self.statement_words_max))
    }

    /// Parses the statements in a short text that are nested so little that any thread can process them.
    /// `None` for others, and for invalid ones.
    pub(crate) fn shallow_statements(&self, text: &str) -> Option<Vec<Statement>> {
        caught_now(|| Ok(statement::parsed_shallow(text))).ok().flatten()
    }

    /// Parses the statements in `text` separately: each with its text, and the parsed statement or
    /// its error.
    ///
    /// # Errors
    /// The text is too long, or contains an unterminated string or comment.
    pub fn statements_apart(&self, text: &str) -> Result<Vec<(String, Result<Statement>)>> {
        caught_now(|| statement::apart(text, self.statement_words_max))
    }

    /// Opens the files that a statement names, and plans it.
    ///
    /// # Errors
    /// A file cannot be opened, or the statement is not valid for these tables.
    pub async fn plan(&self, statement: &Statement) -> Result<LogicalPlan> {
        caught(async {
            let inner = Box::pin(self.prepared(statement)).await?;
            Ok(self.context.state().statement_to_plan(inner).await?)
        })
        .await
    }

    /// The columns of a query's answer.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub async fn columns(&self, statement: &Statement) -> Result<SchemaRef> {
        Ok(self.planned(statement).await?.schema())
    }

    /// Begins to answer a query that changes nothing: it creates no table, writes no file and
    /// changes no setting.
    ///
    /// # Errors
    /// As [`plan`](Self::plan), and if the statement is no such query.
    pub async fn run_query(&self, statement: &Statement) -> Result<Answer> {
        caught(async {
            if statement.target()?.is_some() {
                return Err(Error::text(
                    "COPY cannot write files here; COPY … TO STDOUT sends rows",
                ));
            }
            self.renew_named(statement).await?;
            if !statement.is_analyze()
                && let Some(plan) = self.direct_plan(statement)
            {
                return answer::direct(&self.context, plan);
            }
            let plan = self.plan(statement).await?;
            let changes_nothing = SQLOptions::new()
                .with_allow_ddl(false)
                .with_allow_dml(false)
                .with_allow_statements(false);
            changes_nothing
                .verify_plan(&plan)
                .map_err(|_| Error::text("only queries are supported here"))?;
            answer::answer(&self.context, plan).await
        })
        .await
    }

    /// Begins to answer a statement of any kind.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub async fn run(&self, statement: &Statement) -> Result<Answer> {
        caught(self.begun(statement)).await
    }

    async fn begun(&self, statement: &Statement) -> Result<Answer> {
        if let Some((target, format)) = statement.target()? {
            let inner = self.prepared(&statement.source()).await?;
            let plan = self.context.state().statement_to_plan(inner).await?;
            let rows = answer::begin(&self.context, plan).await?;
            return Ok(Answer::Copy { rows, target: Path::new(&target).to_path_buf(), format });
        }
        if statement.is_analyze()
            && let Some(ceiling) = self.context.state().config().get_extension::<Ceiling>()
        {
            ceiling.ask(self.opening.workers);
        }
        if let Some(plan) = self.direct_plan(statement) {
            return answer::direct(&self.context, plan);
        }
        let plan = self.plan(statement).await?;
        answer::answer(&self.context, plan).await
    }

    /// Answers `text` on this thread, if it is a single statement that needs only the scan of one
    /// table. The rows have been found when this returns, unless [`Options::stop`] became true.
    /// `None` if the text needs [`statements`](Self::statements) and [`run`](Self::run), which take
    /// a millisecond longer to start.
    ///
    /// # Panics
    ///
    /// Outside of a runtime.
    ///
    /// # Errors
    ///
    /// A condition or output fails for a row, or the search was stopped.
    pub fn run_at_once(&self, text: &str) -> Option<Result<Rows>> {
        let plan = || Ok(direct::plan(&self.context, text, self.opening.workers));
        let direct = caught_now(plan).transpose()?;
        let stop = &self.opening.stop;
        Some(direct.and_then(|direct| answer::at_once(&self.context, direct, stop)))
    }

    /// Begins to answer several statements at the same time. One pass over each table finds the
    /// rows for all of them, and has finished when this returns; grouping, joining and sorting
    /// continue.
    ///
    /// # Errors
    /// For a statement: as [`run`](Self::run), and if it is a COPY. For all: if the pass fails.
    pub async fn run_together(&self, statements: &[Statement]) -> Result<Vec<Result<Rows>>> {
        let mut all = Vec::with_capacity(statements.len());
        for statement in statements {
            all.push(match statement.target() {
                Ok(None) => self.planned(statement).await,
                Ok(Some(_)) => {
                    Err(Error::text("COPY cannot run with other statements; run it alone"))
                }
                Err(error) => Err(error),
            });
        }
        caught(answer::together(&self.context, all, self.opening.workers)).await
    }

    /// Plans a query.
    async fn planned(&self, statement: &Statement) -> Result<Planned> {
        self.renew_named(statement).await?;
        if let Some(plan) = self.direct_plan(statement) {
            return Ok(Planned::direct(plan));
        }
        let plan = self.plan(statement).await?;
        caught(Planned::of(&self.context, plan)).await
    }

    /// The plan of a statement that needs no planning by DataFusion.
    fn direct_plan(&self, statement: &Statement) -> Option<Arc<dyn ExecutionPlan>> {
        let text = statement.query_text()?;
        Some(direct::plan(&self.context, &text, self.opening.workers)?.plan)
    }

    async fn prepared(&self, statement: &Statement) -> Result<datafusion::sql::parser::Statement> {
        let mut statement = statement.clone();
        let named = statement.named();
        let hidden = statement.hidden_columns();
        self.open_all(named, hidden).await?;
        let tables = if hidden.is_none() { Default::default() } else { self.hidden_tables() };
        // Lists, merged columns and names beside * need the columns of tables.
        let columns = match hidden.is_none() && !statement.needs_columns() {
            true => Default::default(),
            false => self.columns_of_tables(),
        };
        let known = lock(&self.state).known.clone().with_hidden(tables).with_columns(columns);
        statement.rewrite(&known)?;
        Ok(statement.into_inner())
    }

    /// Opens the tables that a statement names, with at least these hidden columns.
    async fn open_all(&self, named: Named, hidden: HiddenColumns) -> Result<()> {
        for file in named.files {
            if !self.is_open(&file) && !self.is_open_with(&file, hidden) {
                self.reach.check(&file)?;
                self.open_from(&file, Origin::Source(file.clone()), hidden).await?;
            }
            self.add_hidden(&file, hidden).await?;
        }
        for (table, typed) in named.typed {
            if !self.is_open(&table) && !self.is_open_with(&table, hidden) {
                self.reach.check(&typed.source)?;
                self.open_from(&table, Origin::Typed(typed), hidden).await?;
            }
            self.add_hidden(&table, hidden).await?;
        }
        for name in named.names {
            if self.renew(&name).await? {
                continue;
            }
            let is_known = self.is_open(&name)
                || self.is_open_with(&name, hidden)
                || self.context.table_exist(TableReference::bare(name.as_str()))?;
            let is_file = name::path_of(&name).is_file() || quarrier::source::is_remote(&name);
            if !is_known && self.open_kept_table(&name, hidden).await? {
                continue;
            }
            if !is_known && is_file {
                self.reach.check(&name)?;
                self.open_from(&name, Origin::Source(name.clone()), hidden).await?;
            }
            self.add_hidden(&name, hidden).await?;
        }
        Ok(())
    }

    /// Opens the table of the data folder with this name. Returns whether it exists.
    async fn open_kept_table(&self, name: &str, hidden: HiddenColumns) -> Result<bool> {
        let Some((kept, name)) = self.kept_table(name) else { return Ok(false) };
        let origin = Origin::Stored(kept, name.clone());
        self.open_from(&name, origin, hidden).await?;
        Ok(true)
    }

    /// The data folder and the table's exact name there, if the folder has the table and it is not
    /// open yet.
    fn kept_table(&self, name: &str) -> Option<(Arc<DataFolder>, String)> {
        let state = lock(&self.state);
        let exact = state.kept_names.iter().find(|known| *known == name);
        let alike = || state.kept_names.iter().find(|known| known.eq_ignore_ascii_case(name));
        let known = exact.or_else(alike).filter(|known| !state.tables.contains(*known))?;
        Some((Arc::clone(state.kept.as_ref()?), known.clone()))
    }

    fn is_open(&self, name: &str) -> bool {
        lock(&self.state).tables.contains(name)
    }
}

/// Resolves the names in a part of a statement, and rewrites it for SQL-92.
pub(crate) fn rewrite_part<S: Rewritable>(part: &mut S, known: &KnownNames) -> Result<()> {
    rewrite::rewrite(part, known)
}
