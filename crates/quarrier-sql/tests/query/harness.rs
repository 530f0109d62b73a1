//! Common parts of the tests: a temporary folder, an engine, and the program.

use std::fmt::Write;
use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use quarrier_sql::{Answer, Engine, Error, Options};

/// A folder that is deleted after the test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    /// Writes a file, and returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs the program in the folder.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        program(self.0.path(), arguments)
    }
}

/// Longer than any test takes on a loaded machine. A test that waits longer fails instead of
/// hanging.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until a program ends. Returns its exit code.
pub(crate) fn ended(child: &mut Child) -> Option<i32> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("the program does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs the program.
pub(crate) fn program(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quarrier-sql"))
        .current_dir(folder)
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Opens a pseudo-terminal: our end, and the program's.
pub(crate) fn terminal() -> (File, OwnedFd) {
    let (mut ours, mut its) = (-1, -1);
    let none = std::ptr::null_mut();
    // SAFETY: `ours` and `its` are writable ints. The name, the settings and the size are null,
    // which openpty allows.
    let done = unsafe { libc::openpty(&mut ours, &mut its, none, none.cast(), none.cast()) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: openpty has just opened both descriptors, and nothing else owns them.
    unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(its)) }
}

/// Five thousand orders, some with NULL, in several blocks.
pub(crate) fn orders() -> String {
    let mut lines = String::new();
    for id in 0..5_000_u64 {
        let symbol = ["ABC", "ABD", "XYZ", "A_C", "a\\\\c"][(id % 5) as usize];
        let qty = (id * 7) % 1_000;
        let price = format!("{}.{:02}", (id * 13) % 200, id % 100);
        write!(lines, "{{\"id\":{id},\"symbol\":\"{symbol}\",\"qty\":{qty},\"price\":{price}")
            .unwrap();
        if !id.is_multiple_of(3) {
            write!(lines, ",\"note\":\"note {}\"", id % 50).unwrap();
        }
        let day = 1 + id % 28;
        write!(lines, ",\"ts\":\"2024-01-{day:02}T00:00:{:02}Z\"", id % 60).unwrap();
        writeln!(lines, ",\"leg\":[{{\"qty\":{}}}],\"open\":{}}}", id % 9, id % 2 == 0).unwrap();
    }
    lines
}

/// The result of a statement that needs only one scan, and whether it was available at once.
type AtOnce = (SchemaRef, Vec<RecordBatch>, bool);

/// An engine with a table `m`.
pub(crate) struct TestEngine {
    pub(crate) engine: Engine,
    runtime: tokio::runtime::Runtime,
}

impl TestEngine {
    pub(crate) fn new() -> Self {
        Self::with(Options { workers: 2, ..Options::default() })
    }

    pub(crate) fn with(options: Options) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_stack_size(32 << 20)
            .enable_time()
            .build()
            .unwrap();
        TestEngine { engine: Engine::new(options).unwrap(), runtime }
    }

    /// An engine with the orders as `m`.
    pub(crate) fn of_orders() -> (Folder, Self) {
        let folder = Folder::new();
        let asked = Self::new();
        asked.open("m", &folder.file("orders.ndjson", &orders())).unwrap();
        (folder, asked)
    }

    /// Opens a file as a table.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub(crate) fn open(&self, name: &str, file: &str) -> Result<(), Error> {
        self.runtime.block_on(self.engine.open(name, file))
    }

    /// The rows as lines, with `|` between values.
    pub(crate) fn rows(&self, sql: &str) -> Result<Vec<String>, Error> {
        let statements = self.engine.statements(sql)?;
        self.runtime.block_on(async {
            let mut shown = Vec::new();
            for statement in &statements {
                let Answer::Rows(mut rows) = self.engine.run(statement).await? else {
                    panic!("a copy")
                };
                while let Some(batch) = rows.next().await? {
                    shown.extend(lines(&batch));
                }
            }
            Ok(shown)
        })
    }

    /// The rows as batches.
    pub(crate) fn batches(&self, sql: &str) -> Result<(SchemaRef, Vec<RecordBatch>), Error> {
        let statement = &self.engine.statements(sql)?[0];
        self.runtime.block_on(async {
            let Answer::Rows(mut rows) = self.engine.run(statement).await? else {
                panic!("a copy")
            };
            let mut batches = Vec::new();
            while let Some(batch) = rows.next().await? {
                batches.push(batch);
            }
            Ok((Arc::clone(rows.schema()), batches))
        })
    }

    /// The rows of a statement that needs only one scan.
    pub(crate) fn at_once(&self, sql: &str) -> Option<Result<AtOnce, Error>> {
        self.runtime.block_on(async {
            let mut rows = match self.engine.run_at_once(sql)? {
                Ok(rows) => rows,
                Err(error) => return Some(Err(error)),
            };
            let are_here = rows.are_here();
            let mut batches = Vec::new();
            loop {
                match rows.next().await {
                    Ok(Some(batch)) => batches.push(batch),
                    Ok(None) => break,
                    Err(error) => return Some(Err(error)),
                }
            }
            Some(Ok((Arc::clone(rows.schema()), batches, are_here)))
        })
    }

    /// The rows of all statements, run at the same time.
    pub(crate) fn together(&self, sql: &str) -> Vec<Result<Vec<String>, Error>> {
        let statements = self.engine.statements(sql).unwrap();
        self.runtime.block_on(async {
            let mut all = Vec::new();
            for rows in self.engine.run_together(&statements).await.unwrap() {
                let mut shown = Vec::new();
                let read = async {
                    let mut rows = rows?;
                    while let Some(batch) = rows.next().await? {
                        shown.extend(lines(&batch));
                    }
                    Ok(())
                };
                let read: Result<(), Error> = read.await;
                all.push(read.map(|()| shown));
            }
            all
        })
    }

    /// The value of a statement with one row and one column.
    pub(crate) fn value(&self, sql: &str) -> Result<String, Error> {
        let rows = self.rows(sql)?;
        assert_eq!(rows.len(), 1, "{sql}: {rows:?}");
        Ok(rows[0].clone())
    }

    /// The plan, as printed by EXPLAIN.
    pub(crate) fn plan(&self, sql: &str) -> String {
        self.rows(&format!("EXPLAIN {sql}")).unwrap().join("\n")
    }

    /// The error of a statement, which is one line.
    pub(crate) fn refusal(&self, sql: &str) -> String {
        let said = self.rows(sql).unwrap_err().to_string();
        assert!(!said.contains('\n') && !said.is_empty(), "{said}");
        said
    }
}

/// The rows of all batches as lines, as in [`TestEngine::rows`].
pub(crate) fn all_lines(batches: &[RecordBatch]) -> Vec<String> {
    batches.iter().flat_map(lines).collect()
}

fn lines(batch: &datafusion::arrow::array::RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
        .collect();
    let row = |row: usize| {
        columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|")
    };
    (0..batch.num_rows()).map(row).collect()
}
