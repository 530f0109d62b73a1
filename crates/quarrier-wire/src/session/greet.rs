//! The start of a connection: TLS, cancelling, authentication.

use std::net::SocketAddr;
use std::sync::Arc;

use ring::rand::{SecureRandom, SystemRandom};
use tokio::net::TcpStream;

use crate::answers::Asker;
use crate::auth::{Exchange, MECHANISM, Users};
use crate::board::add;
use crate::failure::{Failure, Result, state};
use crate::protocol::Opening;
use crate::shared::Shared;

use super::settings::Settings;
use super::socket::Socket;
use super::state::Session;
use super::wire::Wire;

/// Maximum bytes of a step of SASL.
const STEP_BYTES_MAX: usize = 4 << 10;
/// The first byte of TLS, which clients may send without a request.
const TLS_HANDSHAKE: u8 = 0x16;

/// Authenticates a client. `None` if it disconnected, was refused, or only requested to cancel.
pub(super) async fn greet(
    stream: TcpStream,
    peer: SocketAddr,
    shared: &Arc<Shared>,
) -> Option<Session> {
    let socket = first(stream, shared).await?;
    let mut wire = Wire::new(socket);
    wire.board = Some(Arc::clone(&shared.board));
    match entered(&mut wire, peer, shared).await {
        Ok(Some((asker, settings))) => {
            Some(Session::new(wire, Arc::clone(shared), asker, settings))
        }
        Ok(None) => None,
        Err(failure) => {
            if failure.state == state::PASSWORD {
                add(&shared.board.counts.wrong_passwords, 1);
                shared.wrong_passwords.delay(&*shared.log, (peer, &failure)).await;
            }
            wire.out.error(&failure);
            let _ = wire.flush().await;
            None
        }
    }
}

/// Begins with TLS if the client does.
async fn first(stream: TcpStream, shared: &Arc<Shared>) -> Option<Socket> {
    let mut byte = [0];
    if stream.peek(&mut byte).await.ok()? == 0 {
        return None;
    }
    match &shared.tls {
        Some(tls) if byte[0] == TLS_HANDSHAKE => {
            Some(Socket::Tls(Box::new(tls.postgres.accept(stream).await.ok()?)))
        }
        _ => Some(Socket::Plain(stream)),
    }
}

async fn entered(
    wire: &mut Wire,
    peer: SocketAddr,
    shared: &Arc<Shared>,
) -> Result<Option<(Asker, Settings)>> {
    loop {
        let Some(opening) = wire.opening()? else {
            match wire.more().await {
                Ok(true) => continue,
                _ => return Ok(None),
            }
        };
        match opening {
            Opening::Tls => encrypted(wire, shared).await?,
            Opening::Gss => {
                wire.out.raw(b"N");
                let _ = wire.flush().await;
            }
            Opening::Cancel { connection, secret } => {
                shared.board.cancel(connection, &secret);
                return Ok(None);
            }
            Opening::Start { minor, parameters } => {
                return started(wire, (minor, &parameters), peer, shared).await.map(Some);
            }
        }
    }
}

async fn encrypted(wire: &mut Wire, shared: &Arc<Shared>) -> Result<()> {
    let broken = || Failure::fatal(state::PROTOCOL, "the connection cannot be encrypted");
    let (Some(tls), Socket::Plain(_)) = (&shared.tls, &wire.socket) else {
        wire.out.raw(b"N");
        return wire.flush().await.map_err(|_| broken());
    };
    if !wire.is_empty() {
        return Err(Failure::fatal(state::PROTOCOL, "received unencrypted data after SSL request"));
    }
    wire.out.raw(b"S");
    wire.flush().await.map_err(|_| broken())?;
    wire.encrypt(&tls.postgres).await.map_err(|_| broken())
}

async fn started(
    wire: &mut Wire,
    (minor, parameters): (u16, &[(String, String)]),
    peer: SocketAddr,
    shared: &Arc<Shared>,
) -> Result<(Asker, Settings)> {
    let unknown: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
    let unknown: Vec<&str> = unknown.into_iter().filter(|it| it.starts_with("_pq_.")).collect();
    if minor > 0 || !unknown.is_empty() {
        wire.out.negotiate(&unknown);
    }
    let value = |name: &str| parameters.iter().find(|(known, _)| known == name).map(|it| &it.1);
    let user = value("user").filter(|user| !user.is_empty()).cloned().ok_or_else(|| {
        Failure::fatal(state::AUTHORIZATION, "no user name in the startup message")
    })?;
    let must_encrypt =
        shared.tls.as_ref().is_some_and(|tls| tls.knows_clients || !peer.ip().is_loopback());
    if must_encrypt && matches!(wire.socket, Socket::Plain(_)) {
        let said = "this server requires encrypted connections; use sslmode=require";
        return Err(Failure::fatal(state::AUTHORIZATION, said));
    }
    if let Some(users) = &shared.users {
        proven(wire, users, &user).await?;
    }
    wire.out.authentication_ok();
    let settings = Settings::new(&user, parameters)?;
    let asker = Asker {
        user,
        application: value("application_name").cloned().unwrap_or_default(),
        peer: peer.to_string(),
        connection: shared.board.number(),
    };
    Ok((asker, settings))
}

async fn proven(wire: &mut Wire, users: &Users, user: &str) -> Result<()> {
    let mut mechanisms = MECHANISM.as_bytes().to_vec();
    mechanisms.extend([0, 0]);
    wire.out.sasl(10, &mechanisms);
    let first = step(wire).await?;
    // The mechanism's name, a length (-1: nothing follows), the message.
    let (message, length) = first
        .strip_prefix(MECHANISM.as_bytes())
        .and_then(|rest| rest.strip_prefix(&[0]))
        .and_then(|rest| rest.split_first_chunk::<4>())
        .map(|(length, message)| (message, u32::from_be_bytes(*length) as usize))
        .ok_or_else(|| Failure::fatal(state::PROTOCOL, "unknown SASL mechanism"))?;
    if message.len() != length {
        return Err(Failure::fatal(state::PROTOCOL, "malformed SCRAM message"));
    }
    let (exchange, answer) = Exchange::begin(users, user, message)?;
    wire.out.sasl(11, answer.as_bytes());
    let last = step(wire).await?;
    let proof = exchange.end(user, &last)?;
    wire.out.sasl(12, proof.as_bytes());
    Ok(())
}

/// Receives the client's response.
async fn step(wire: &mut Wire) -> Result<bytes::Bytes> {
    let left = || Failure::fatal(state::PROTOCOL, "the client disconnected");
    wire.flush().await.map_err(|_| left())?;
    loop {
        match wire.take_small(STEP_BYTES_MAX)? {
            Some((b'p', body)) => return Ok(body),
            Some(_) => return Err(Failure::fatal(state::PROTOCOL, "expected a SASL response")),
            None if matches!(wire.more().await, Ok(true)) => {}
            None => return Err(left()),
        }
    }
}

/// Returns the secret with which the client can cancel statements.
pub(super) fn secret() -> [u8; 4] {
    let mut secret = [0; 4];
    // Without random numbers, the secret is guessable, but it only cancels statements.
    let _ = SystemRandom::new().fill(&mut secret);
    secret
}
