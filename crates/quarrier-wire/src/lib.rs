//! The server's protocols: PostgreSQL's and HTTP, in front of any engine.
//!
//! ```text
//!  clients ─→ server ─┬→ session: protocol, sql (about the connection), rows, copy ─┐
//!                     └→ http: query, ingest, metrics, status, page ────────────────┴→ Answers
//!                               board: clients, running statements
//! ```
//!
//! This crate depends on no engine: [`Answers`] is the whole interface, so tests of clients,
//! including hostile ones, need no engine. Every length is limited before memory of that length is
//! allocated, and every wait has a timeout.

mod answers;
pub use answers::{
    Answers, Asker, Durable, Ingest, IngestTarget, Marks, Prepared, Reply, Rows, Sample, Stop,
    TableInfo,
};

/// The type of [`Ingest::push`].
pub use bytes::Bytes;

mod auth;
pub use auth::{Tls, TlsError, Users, UsersError, made_line};

mod board;
pub use board::{Board, Client, Counts, Running};

mod copy;
pub use copy::message;

mod failure;
pub use failure::{Failure, Result, state};

mod http;

pub mod kind;

#[doc(hidden)]
pub mod protocol;

mod rows;
pub use rows::{Batch, values};

mod server;
pub use server::{Config, Server};

mod session;

mod shared;
pub use shared::Limits;

mod sql;
pub use sql::{
    MatchingText, StatementNames, SubscribeText, cast_kinds, lists_of_names, plain, sql_name,
    statement_names, subscribe_text, with_words,
};

mod value;
pub use value::{Value, assigned, read_text};
