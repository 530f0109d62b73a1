//! Captured packets: pcap and pcapng.
//!
//! IETF drafts *draft-ietf-opsawg-pcap* and *draft-ietf-opsawg-pcapng*.

mod blocks;

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// pcap: a chain of packets, each with its time and length. The file has no end mark: it is whole
/// only if zeros fill its last sector, or the source ends there.
pub struct Pcap;

pub use blocks::PcapNg;

const PCAP: Kind = Kind::new("pcap");

const HEADER_BYTES: u64 = 24;
const PACKET_HEADER_BYTES: u64 = 16;
const PACKET_BYTES_MAX: u32 = 1 << 20;
/// Maximum time between two consecutive packets.
const APART_SECONDS_MAX: u32 = 400 * 24 * 3600;

impl Format for Pcap {
    fn kinds(&self) -> &[Kind] {
        &[PCAP]
    }

    fn signatures(&self) -> &[Signature] {
        &[
            Signature { hex: "D4 C3 B2 A1 02 00 04 00", at: 0 },
            Signature { hex: "A1 B2 C3 D4 00 02 00 04", at: 0 },
            Signature { hex: "4D 3C B2 A1 02 00 04 00", at: 0 },
            Signature { hex: "A1 B2 3C 4D 00 02 00 04", at: 0 },
        ]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some(mark) = view.array::<4>(0) else { return Verdict::Not };
        let is_big = mark[0] == 0xA1;
        let ticks = if mark.contains(&0x3C) { 1_000_000_000 } else { 1_000_000 };
        let mut at = HEADER_BYTES;
        let mut before = None;
        while let Some(packet) = Packet::read(view, at, is_big) {
            if !packet.is_plausible(ticks, before) {
                break;
            }
            let end = at + PACKET_HEADER_BYTES + u64::from(packet.bytes);
            if end > view.length() {
                return Verdict::broken(view, PCAP, at, view.length(), "truncated");
            }
            before = Some(packet.seconds);
            at = end;
        }
        if before.is_none() {
            return Verdict::Not;
        }
        match view.is_slack(at) {
            true => Verdict::Whole { length: at, kind: PCAP },
            false => Verdict::broken(view, PCAP, at, at, "nothing shows where it ends"),
        }
    }
}

struct Packet {
    seconds: u32,
    ticks: u32,
    bytes: u32,
    bytes_sent: u32,
}

impl Packet {
    fn read(view: &mut View<'_>, at: u64, is_big: bool) -> Option<Packet> {
        let header = view.array::<{ PACKET_HEADER_BYTES as usize }>(at)?;
        let number = |index: usize| {
            let bytes = [0, 1, 2, 3].map(|byte| header[4 * index + byte]);
            if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        Some(Packet {
            seconds: number(0),
            ticks: number(1),
            bytes: number(2),
            bytes_sent: number(3),
        })
    }

    fn is_plausible(&self, ticks: u32, before: Option<u32>) -> bool {
        self.ticks < ticks
            && (1..=PACKET_BYTES_MAX).contains(&self.bytes)
            && self.bytes <= self.bytes_sent
            && self.bytes_sent <= PACKET_BYTES_MAX
            && before.is_none_or(|before| self.seconds.abs_diff(before) < APART_SECONDS_MAX)
    }
}
