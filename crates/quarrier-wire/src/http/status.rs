//! `/status`: the contents of the status page as JSON.

use std::sync::atomic::Ordering;

use crate::kind;
use crate::rows::quoted;
use crate::shared::Shared;

/// Maximum number of entries of each list.
const SHOWN_MAX: usize = 200;

pub(super) fn text(shared: &Shared) -> String {
    let counts = &shared.board.counts;
    let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
    let mut out = format!(
        "{{\"version\":\"{}\",\"up_seconds\":{},\"statements\":{},\"failed\":{},\"rows\":{},\
         \"sent_bytes\":{},\"received_bytes\":{},\"messages\":{},\"rejected\":{},\
         \"wrong_passwords\":{}",
        env!("CARGO_PKG_VERSION"),
        shared.since.elapsed().as_secs_f64(),
        count(&counts.statements),
        count(&counts.failures) + count(&counts.cancelled),
        count(&counts.rows),
        count(&counts.bytes_sent),
        count(&counts.bytes_received),
        count(&counts.messages),
        count(&counts.rejected),
        count(&counts.wrong_passwords),
    )
    .into_bytes();
    let running = shared.board.running();
    list(&mut out, "running", running.iter().take(SHOWN_MAX), |it, out| {
        text_of(out, "user", &it.asker.user);
        text_of(out, "text", &it.text);
        number(out, "seconds", it.since.elapsed().as_secs_f64());
        number(out, "rows", count(&it.rows) as f64);
    });
    let clients = shared.board.clients();
    list(&mut out, "clients", clients.iter().take(SHOWN_MAX), |it, out| {
        text_of(out, "user", &it.asker.user);
        text_of(out, "application", &it.asker.application);
        text_of(out, "peer", &it.asker.peer);
        number(out, "seconds", it.since.elapsed().as_secs_f64());
    });
    let tables = shared.answers.tables();
    list(&mut out, "tables", tables.iter().take(SHOWN_MAX), |it, out| {
        text_of(out, "name", &it.name);
        let columns = it.columns.fields().iter().map(|field| {
            let kind = kind::of(field.data_type());
            let kind = kind::ALL.iter().find(|known| known.0 == kind).map_or("list", |it| it.1);
            format!("{} {kind}", field.name())
        });
        text_of(out, "columns", &columns.collect::<Vec<_>>().join(", "));
        if let Some(rows) = it.rows {
            number(out, "rows", rows as f64);
        }
        if let Some(bytes) = it.bytes {
            number(out, "bytes", bytes as f64);
        }
    });
    out.extend_from_slice(b"}\n");
    String::from_utf8_lossy(&out).into_owned()
}

fn list<T>(
    out: &mut Vec<u8>,
    name: &str,
    items: impl Iterator<Item = T>,
    write: impl Fn(T, &mut Vec<u8>),
) {
    out.extend_from_slice(format!(",\"{name}\":[").as_bytes());
    for (place, item) in items.enumerate() {
        out.extend_from_slice(if place > 0 { b",{" } else { b"{" });
        write(item, out);
        out.push(b'}');
    }
    out.push(b']');
}

fn key(out: &mut Vec<u8>, name: &str) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    quoted(name, out);
    out.push(b':');
}

fn text_of(out: &mut Vec<u8>, name: &str, text: &str) {
    key(out, name);
    quoted(text, out);
}

fn number(out: &mut Vec<u8>, name: &str, number: f64) {
    key(out, name);
    out.extend_from_slice(number.to_string().as_bytes());
}
