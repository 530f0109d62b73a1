//! Names and addresses on the Internet.

use std::net::Ipv6Addr;

use super::Seen;

/// Common top-level domains that are not countries.
const GENERIC: &str = " com org net edu gov mil int info biz name pro aero coop museum mobi asia tel jobs \
    travel cat post xxx app dev io page cloud online site store shop tech xyz club live news blog top \
    email group world life space website digital agency company solutions services systems network \
    media design studio software bank finance money win vip work today onion arpa ";

/// Top-level domains of countries.
const COUNTRIES: &str = " ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm \
    bn bo br bs bt bw by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec \
    ee eg er es et eu fi fj fk fm fo fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn \
    hr ht hu id ie il im in iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls \
    lt lu lv ly ma mc md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no \
    np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sk \
    sl sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz \
    va vc ve vg vi vn vu wf ws ye yt za zm zw ";

/// Whether a name has well-formed labels and a known top-level domain.
fn is_domain(name: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let name = name.to_ascii_lowercase();
    let is_label = |label: &str| {
        !label.is_empty() && label.len() <= 63 && !label.starts_with('-') && !label.ends_with('-')
    };
    let Some((rest, last)) = name.rsplit_once('.') else { return false };
    let last = format!(" {last} ");
    name.len() <= 253
        && rest.split('.').all(is_label)
        && (GENERIC.contains(&last) || COUNTRIES.contains(&last))
}

fn is_word(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

pub(super) fn email(seen: &Seen<'_>) -> Option<usize> {
    let at = seen.found.iter().position(|&byte| byte == b'@')?;
    let (local, domain) = (&seen.found[..at], &seen.found[at + 1..]);
    let is_local = !local.windows(2).any(|two| two == b"..") && !local.ends_with(b".");
    let is_cut = is_word(seen.before.last()) || is_word(seen.after.first());
    (is_local && !is_cut && is_domain(domain)).then_some(seen.found.len())
}

pub(super) fn url(seen: &Seen<'_>) -> Option<usize> {
    let scheme = seen.found.windows(3).position(|three| three == b"://")? + 3;
    // Punctuation at the end belongs to the sentence; so does a closing bracket without an opening one.
    let mut length = seen.found.len();
    while let Some(last) = seen.found[scheme..length].last() {
        let open = |open: u8, close: u8| {
            let count = |byte: u8| seen.found[..length].iter().filter(|&&b| b == byte).count();
            count(close) > count(open)
        };
        match last {
            b'.' | b',' | b';' | b':' | b'!' | b'?' | b'\'' | b'*' => length -= 1,
            b')' if open(b'(', b')') => length -= 1,
            b']' if open(b'[', b']') => length -= 1,
            _ => break,
        }
    }
    let rest = &seen.found[scheme..length];
    let host = rest.split(|byte| b"/?#".contains(byte)).next()?;
    let host = host.rsplit(|&byte| byte == b'@').next()?;
    let is_host = host.first()?.is_ascii_alphanumeric() || host.starts_with(b"[");
    let is_cut = is_word(seen.before.last());
    (is_host && host.len() >= 3 && !is_cut).then_some(length)
}

pub(super) fn domain(seen: &Seen<'_>) -> Option<usize> {
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| b"@-_.".contains(byte));
    // A dot may end the sentence.
    let goes_on = match seen.after {
        [b'.', next, ..] => next.is_ascii_alphanumeric(),
        after => after.first().is_some_and(|byte| b"-_@".contains(byte)),
    };
    (!is_part(seen.before.last()) && !goes_on && is_domain(seen.found)).then_some(seen.found.len())
}

pub(super) fn ipv4(seen: &Seen<'_>) -> Option<usize> {
    let is_byte = |part: &[u8]| {
        let is_short = part == b"0" || !part.starts_with(b"0");
        is_short && std::str::from_utf8(part).is_ok_and(|part| part.parse::<u8>().is_ok())
    };
    let before = seen.before.last().is_some_and(|byte| b".-_".contains(byte));
    let after = match seen.after {
        [b'.', next, ..] => next.is_ascii_digit(),
        after => after.first().is_some_and(|byte| b"-_".contains(byte)),
    };
    let all = seen.found.split(|&byte| byte == b'.').all(is_byte);
    (all && !before && !after).then_some(seen.found.len())
}

pub(super) fn ipv6(seen: &Seen<'_>) -> Option<usize> {
    let is_part = |byte: Option<&u8>| is_word(byte) || byte == Some(&b':') || byte == Some(&b'.');
    let text = std::str::from_utf8(seen.found).ok()?;
    // A colon may follow the address.
    let text = text.strip_suffix(':').filter(|text| !text.ends_with(':')).unwrap_or(text);
    let address: Ipv6Addr = text.parse().ok()?;
    let parts = text.split(':').filter(|part| !part.is_empty()).count();
    let is_named = parts >= 2 && !address.is_unspecified();
    (is_named && !is_part(seen.before.last()) && !is_word(seen.after.first())).then_some(text.len())
}

pub(super) fn mac(seen: &Seen<'_>) -> Option<usize> {
    let separator = *seen.found.get(2)?;
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| b":-".contains(byte));
    let pairs = || seen.found.chunks(3);
    let is_alike = pairs().all(|pair| pair.get(2).is_none_or(|byte| *byte == separator));
    let is_any = pairs().any(|pair| pair[..2] != seen.found[..2]);
    let is_cut = is_part(seen.before.last()) || is_part(seen.after.first());
    (is_alike && is_any && !is_cut).then_some(seen.found.len())
}
