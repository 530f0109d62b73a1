//! An engine that knows a few statements, and a server in front of it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use quarrier_core::sync::lock;
use quarrier_wire::{
    Answers, Asker, Batch, Board, Config, Failure, Ingest, IngestTarget, Limits, Marks, Prepared,
    Reply, Result, Rows, Server, Stop, TableInfo, Users, Value, kind, state,
};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// Records the statements and values that it received.
#[derive(Default)]
pub(crate) struct Toy {
    pub(crate) taken: Arc<Mutex<Vec<u8>>>,
    /// Statements that were stopped while they ran.
    pub(crate) stopped: Arc<Mutex<Vec<Stop>>>,
}

fn one(name: &str, column: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter([(name, column)]).unwrap()
}

/// Returns rows from a number on, with columns of every type; each seventh row has NULLs.
pub(crate) fn rows(start: i64, count: i64) -> RecordBatch {
    let numbers = || (start..start + count).map(|i| (i % 7 != 6).then_some(i));
    let codes: DictionaryArray<Int32Type> =
        numbers().map(|i| i.map(|i| ["ay", "bee", "see"][(i % 3) as usize])).collect();
    let mut lists = ListBuilder::new(Int32Builder::new());
    for number in numbers() {
        match number {
            None => lists.append_null(),
            Some(i) => {
                lists.append_value((0..i % 3).map(|item| (item != 1).then_some(item as i32)))
            }
        }
    }
    let decimals = Decimal128Array::from_iter(numbers().map(|i| i.map(|i| i128::from(i) * 125)));
    let micros = numbers().map(|i| i.map(|i| i * 1_000_001));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i", Arc::new(Int64Array::from_iter_values(start..start + count))),
        ("t", Arc::new(StringArray::from_iter(numbers().map(|i| i.map(|i| format!("t\t{i}")))))),
        ("f", Arc::new(Float64Array::from_iter(numbers().map(|i| i.map(|i| i as f64 / 4.0))))),
        ("b", Arc::new(BooleanArray::from_iter(numbers().map(|i| i.map(|i| i % 2 == 0))))),
        ("d", Arc::new(Date32Array::from_iter(numbers().map(|i| i.map(|i| i as i32))))),
        ("s", Arc::new(TimestampMicrosecondArray::from_iter(micros))),
        ("n", Arc::new(decimals.with_precision_and_scale(20, 2).unwrap())),
        ("y", Arc::new(BinaryArray::from_iter(numbers().map(|i| i.map(|i| [i as u8, 0]))))),
        ("c", Arc::new(codes)),
        ("l", Arc::new(lists.finish())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))
        .unwrap()
}

fn schema_of(kinds: &[u32]) -> SchemaRef {
    let fields = kinds.iter().enumerate().map(|(place, kind)| {
        let data = match *kind {
            kind::INT4 => DataType::Int32,
            kind::INT8 => DataType::Int64,
            kind::FLOAT8 => DataType::Float64,
            kind::BOOL => DataType::Boolean,
            kind::BYTEA => DataType::Binary,
            _ => DataType::Utf8,
        };
        Field::new(format!("c{place}"), data, true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn echoed(value: &Value, data: &DataType) -> ArrayRef {
    match (value, data) {
        (Value::Int(value), DataType::Int32) => Arc::new(Int32Array::from(vec![*value as i32])),
        (Value::Int(value), _) => Arc::new(Int64Array::from(vec![*value])),
        (Value::Float(value), _) => Arc::new(Float64Array::from(vec![*value])),
        (Value::Bool(value), _) => Arc::new(BooleanArray::from(vec![*value])),
        (Value::Bytes(value), _) => Arc::new(BinaryArray::from_vec(vec![value])),
        (Value::Null, data) => arrow_array::new_null_array(data, 1),
        (Value::Text(value) | Value::Decimal(value), _) => {
            Arc::new(StringArray::from(vec![value.as_str()]))
        }
        (Value::Date(value) | Value::Timestamp(value) | Value::Time(value), _) => {
            Arc::new(StringArray::from(vec![value.as_str()]))
        }
        (list @ Value::List(_), _) => Arc::new(StringArray::from(vec![format!("{list:?}")])),
    }
}

fn known(text: &str, declared: &[u32]) -> Result<Prepared> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let columns = match words.as_slice() {
        ["SELECT", "rows", _] | ["SELECT", "broken"] => Some(rows(0, 0).schema()),
        ["SELECT", "slowly" | "never" | "panic"] | ["SELECT", "1"] => {
            Some(one("one", Arc::new(Int32Array::from(vec![1]))).schema())
        }
        ["SELECT", "taken"] => Some(one("line", Arc::new(StringArray::from(vec![""]))).schema()),
        ["SELECT", "echo", ..] => None,
        ["DELETE", ..] => None,
        _ => {
            return Err(
                Failure::new(state::SYNTAX, "the toy knows no such sentence").hint("SELECT 1")
            );
        }
    };
    let count = text.matches('$').count();
    let kind =
        |place: usize| declared.get(place).copied().filter(|it| *it != 0).unwrap_or(kind::TEXT);
    let parameters: Vec<u32> = (0..count).map(kind).collect();
    let is_echo = words.get(1) == Some(&"echo");
    let columns = if is_echo { Some(schema_of(&parameters)) } else { columns };
    let changes = words[0] == "DELETE";
    let tag = if changes { "DELETE" } else { "SELECT" }.to_string();
    Ok(Prepared { parameters, columns, tag, changes, inner: Arc::new(text.to_string()) })
}

impl Toy {
    fn reply(&self, prepared: &Prepared, values: &[Value], stop: &Stop) -> Result<Reply> {
        let text = prepared.inner.downcast_ref::<String>().unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some(schema) = prepared.columns.clone() else { return Ok(Reply::Done(Some(3))) };
        let batches = match words[1] {
            "rows" => {
                let count: i64 = words[2].parse().unwrap();
                let starts = (0..count).step_by(1_000);
                let batch = move |start| Ok(rows(start, 1_000.min(count - start)));
                stream::iter(starts.map(batch)).boxed()
            }
            "broken" => {
                let failure = Failure::new(state::DIVISION, "division by zero");
                stream::iter([Ok(rows(0, 3)), Err(failure)]).boxed()
            }
            "slowly" => stream::unfold(0, |number| async move {
                if number > 0 {
                    tokio::time::sleep(Duration::from_millis(30)).await;
                }
                Some((Ok(one("one", Arc::new(Int32Array::from(vec![number])))), number + 1))
            })
            .boxed(),
            "never" => stream::pending().boxed(),
            "panic" => stream::once(async { std::panic::resume_unwind(Box::new("a toy")) }).boxed(),
            "taken" => {
                let taken = String::from_utf8(lock(&self.taken).clone()).unwrap();
                let lines = StringArray::from(taken.lines().collect::<Vec<_>>());
                stream::iter([Ok(one("line", Arc::new(lines)))]).boxed()
            }
            "echo" => {
                let fields = schema.fields().iter().zip(values);
                let columns = fields.map(|(field, value)| echoed(value, field.data_type()));
                let batch = RecordBatch::try_new(Arc::clone(&schema), columns.collect()).unwrap();
                stream::iter([Ok(batch)]).boxed()
            }
            _ => stream::iter([Ok(one("one", Arc::new(Int32Array::from(vec![1]))))]).boxed(),
        };
        lock(&self.stopped).push(stop.clone());
        let batches = batches.map_ok(Batch::from).boxed();
        Ok(Reply::Rows(Rows { schema, batches, is_live: false }))
    }
}

impl Answers for Toy {
    fn prepare<'a>(
        &'a self,
        _asker: &'a Asker,
        text: &'a str,
        declared: &'a [u32],
        _describes: bool,
    ) -> BoxFuture<'a, Result<Prepared>> {
        async move { known(text, declared) }.boxed()
    }

    fn run<'a>(
        &'a self,
        _asker: &'a Asker,
        prepared: &'a Prepared,
        values: Vec<Value>,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Reply>> {
        async move { self.reply(prepared, &values, stop) }.boxed()
    }

    fn ingest<'a>(
        &'a self,
        _asker: &'a Asker,
        target: IngestTarget,
    ) -> BoxFuture<'a, Result<Box<dyn Ingest>>> {
        async move {
            if target.table != "t" {
                return Err(Failure::new(state::NO_TABLE, "there is no such table"));
            }
            let taken = Arc::clone(&self.taken);
            Ok(Box::new(Taking { taken, bytes: Vec::new() }) as Box<dyn Ingest>)
        }
        .boxed()
    }

    fn tables(&self) -> Vec<TableInfo> {
        let fields = vec![
            Field::new("a", DataType::Int64, true),
            Field::new("b", DataType::Utf8, true),
            Field::new("c", DataType::Decimal128(20, 2), true),
        ];
        vec![TableInfo {
            name: "t".to_string(),
            columns: Arc::new(Schema::new(fields)),
            rows: Some(7),
            bytes: None,
            grows: true,
            is_declared: false,
        }]
    }
}

struct Taking {
    taken: Arc<Mutex<Vec<u8>>>,
    bytes: Vec<u8>,
}

impl Ingest for Taking {
    fn push(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        self.bytes.extend_from_slice(&bytes);
        async { Ok(()) }.boxed()
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<Marks>> {
        let messages = self.bytes.split(|byte| *byte == b'\n').filter(|it| !it.is_empty()).count();
        lock(&self.taken).extend_from_slice(&self.bytes);
        let messages = messages as u64;
        let marks = Marks { first: 1, last: messages, messages, durable: true, ..Marks::default() };
        async move { Ok(marks) }.boxed()
    }
}

/// A server in front of the toy engine; dropping it shuts it down.
pub(crate) struct Served {
    pub(crate) postgres: SocketAddr,
    pub(crate) http: SocketAddr,
    pub(crate) toy: Arc<Toy>,
    pub(crate) board: Arc<Board>,
    pub(crate) said: Arc<Mutex<Vec<String>>>,
    stop: Option<oneshot::Sender<()>>,
    ended: Option<tokio::task::JoinHandle<()>>,
    runtime: Option<Runtime>,
}

/// Starts a server for any client on this machine.
pub(crate) fn served() -> Served {
    served_to(None, Limits::default())
}

pub(crate) fn served_to(users: Option<Users>, limits: Limits) -> Served {
    served_with(users, limits, None)
}

/// Starts a server that also serves the pages of a folder.
pub(crate) fn served_with(users: Option<Users>, limits: Limits, pages: Option<PathBuf>) -> Served {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (toy, board) = (Arc::new(Toy::default()), Arc::new(Board::default()));
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&said);
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let config = Config {
        postgres: any,
        http: Some(any),
        users,
        tls: None,
        pages,
        limits,
        board: Arc::clone(&board),
        log: Arc::new(move |line| lock(&log).push(line.to_string())),
    };
    let answers: Arc<dyn Answers> = Arc::clone(&toy) as _;
    let server = runtime.block_on(Server::bind(config, answers)).unwrap();
    let postgres = server.postgres_address().unwrap();
    let http = server.http_address().unwrap().unwrap();
    let (stop, stopped) = oneshot::channel();
    let ended = runtime.spawn(server.run(async {
        let _ = stopped.await;
    }));
    let (stop, ended, runtime) = (Some(stop), Some(ended), Some(runtime));
    Served { postgres, http, toy, board, said, stop, ended, runtime }
}

impl Served {
    /// Shuts the server down, and waits until it has ended.
    pub(crate) fn end(&mut self) {
        drop(self.stop.take());
        if let (Some(ended), Some(runtime)) = (self.ended.take(), &self.runtime) {
            runtime.block_on(ended).unwrap();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
