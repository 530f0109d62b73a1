//! ASF: films and sound of Windows Media.
//!
//! Microsoft, *Advanced Systems Format (ASF) Specification 1.2*.

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// Windows Media. It has no checksums: the validator checks the chain of objects, the stated length
/// of the file, and that all data packets begin like the first one.
pub struct Asf;

const WMV: Kind = Kind::new("wmv");
const WMA: Kind = Kind::new("wma");

/// The first eight bytes of objects' GUIDs.
const HEADER: u64 = 0x11CF_668E_75B2_2630;
const DATA: u64 = 0x11CF_668E_75B2_2636;
const PROPERTIES: u64 = 0x11CF_A947_8CAB_DCA1;
const STREAM: u64 = 0x11CF_A9B7_B7DC_0791;
const VIDEO: u64 = 0x11CF_5B4D_BC19_EFC0;
/// Indexes: simple, of a stream, of media objects, of time codes.
const INDEXES: [u64; 4] =
    [0x11CF_E5B1_3300_0890, 0x11D1_35DA_D6E2_29D3, 0x4C64_12AD_FEB1_03F8, 0x4803_0C4A_3CB7_3FD0];

const OBJECTS_MAX: u32 = 10_000;

/// The fields of the header that the validator needs.
struct HeaderInfo {
    end: u64,
    /// The length of the file; 0 if the writer did not know it.
    file_bytes: u64,
    packet_bytes: u64,
    kind: Kind,
}

/// The place of a fault, and the reason.
type Fault = (u64, &'static str);

impl Format for Asf {
    fn kinds(&self) -> &[Kind] {
        &[WMV, WMA]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "30 26 B2 75 8E 66 CF 11 A6 D9 00 AA 00 62 CE 6C", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some(info) = header(view) else { return Verdict::Not };
        let kind = info.kind;
        match end(view, &info) {
            Ok(length) => Verdict::Whole { length, kind },
            Err((at, why)) => Verdict::broken(view, kind, 0, at, why),
        }
    }
}

fn header(view: &mut View<'_>) -> Option<HeaderInfo> {
    let (name, end) = object(view, 0)?;
    let count = view.u32_le(24)?;
    if name != HEADER || count > OBJECTS_MAX || !view.is_at(28, &[1, 2]) {
        return None;
    }
    let mut info = HeaderInfo { end, file_bytes: 0, packet_bytes: 0, kind: WMA };
    let mut at = 30;
    // In some files the count is too high by one.
    while at < end {
        let (name, next) = object(view, at).filter(|(_, next)| *next <= end)?;
        match name {
            PROPERTIES => {
                info.file_bytes = view.u64_le(at + 40)?;
                info.packet_bytes = u64::from(view.u32_le(at + 92)?);
                // A broadcast has no lengths.
                if view.u32_le(at + 88)? & 1 != 0 {
                    info.file_bytes = 0;
                }
            }
            STREAM if view.u64_le(at + 24) == Some(VIDEO) => info.kind = WMV,
            _ => {}
        }
        at = next;
    }
    (at == end).then_some(info)
}

/// Returns the name and the end of the object at `at`.
fn object(view: &mut View<'_>, at: u64) -> Option<(u64, u64)> {
    let name = view.u64_le(at)?;
    let bytes = view.u64_le(at + 16)?;
    if bytes < 24 {
        return None;
    }
    Some((name, at.checked_add(bytes)?))
}

fn end(view: &mut View<'_>, info: &HeaderInfo) -> Result<u64, Fault> {
    let (name, mut end) = object(view, info.end).ok_or((info.end, "no data"))?;
    if name != DATA {
        return Err((info.end, "no data"));
    }
    if end > view.length() {
        return Err((view.length(), "truncated"));
    }
    packets(view, info.end + 50, end, info.packet_bytes)?;
    while let Some((_, next)) = object(view, end).filter(|(name, _)| INDEXES.contains(name)) {
        if next > view.length() {
            return Err((view.length(), "truncated"));
        }
        end = next;
    }
    match info.file_bytes {
        0 => Ok(end),
        bytes if bytes == end => Ok(end),
        _ => Err((end, "not as long as stated")),
    }
}

/// Checks that all packets begin with the same byte.
fn packets(view: &mut View<'_>, from: u64, end: u64, bytes: u64) -> Result<(), Fault> {
    let first = view.byte(from).unwrap_or(0);
    if bytes == 0 || first & 0x90 != 0x80 {
        return Ok(());
    }
    let mut at = from;
    while at.saturating_add(bytes) <= end {
        if view.byte(at) != Some(first) {
            return Err((at, "no packet begins here"));
        }
        at += bytes;
    }
    Ok(())
}
