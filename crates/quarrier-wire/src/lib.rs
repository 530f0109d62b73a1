//! The server's wires: PostgreSQL's protocol and HTTP, in front of whatever answers.
//!
//! ```text
//!  clients ─→ server ─┬→ session: protocol, sql (about the connection), rows, copy ─┐
//!                     └→ http: query, ingest, metrics, status, page ────────────────┴→ Answers
//!                               board: who is here, what runs
//! ```
//!
//! Nothing here depends on an engine: [`Answers`] is its whole interface, so everything about clients,
//! hostile ones among them, is tested without one. Every length is bounded before memory of that length
//! is used, and every wait is limited.

mod answers;
pub use answers::{
    Answers, Asker, Durable, Ingest, IngestTarget, Marks, Prepared, Reply, Rows, Sample, Stop,
    TableInfo, Value,
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
pub use rows::values;

mod server;
pub use server::{Config, Server};

mod session;

mod shared;
pub use shared::Limits;

mod sql;
pub use sql::{
    Said, SubscribeText, cast_kinds, lists_of_names, plain, said, sql_name, subscribe_text,
    with_words,
};

mod value;
pub use value::{assigned, read_text};
