//! NTFS: the file `$Bitmap`, record 6 of the master file table.

use super::free::{Free, Units};
use crate::error::Result;
use crate::ntfs::{DATA, Form, Record, Runs, boot};
use crate::part::{BOOT_BYTES, Part};

const BITMAP_RECORD: u64 = 6;

pub(super) fn read(
    part: &Part<'_>,
    first: &[u8; BOOT_BYTES],
    free: &mut Free,
) -> Result<Option<&'static str>> {
    let Some(boot) = boot(part, first)? else { return Ok(None) };
    let (cluster_bytes, clusters) = (boot.cluster_bytes, boot.clusters);
    let at = boot.table_at.saturating_add(BITMAP_RECORD * boot.record_bytes);
    let mut record = vec![0; boot.record_bytes as usize];
    part.read(at, &mut record, "the $Bitmap record")?;
    let record = Record::mend(BITMAP_RECORD, at, &mut record)
        .ok_or_else(|| part.refused(at, "a damaged $Bitmap record"))?;
    // If the attribute starts in another record, the attribute list names that record.
    let data = record.attributes().into_iter().find(|one| one.kind == DATA && one.name.is_empty());
    let content = data
        .map(|data| data.form)
        .filter(|form| !matches!(form, Form::Runs { first: 1.., .. }))
        .ok_or_else(|| part.refused(at, "a $Bitmap record without its location"))?;

    let mut units = Units::new(part, free, 0, cluster_bytes, clusters);
    match content {
        Form::Here { bytes, .. } => units.bits(&bytes)?,
        Form::Runs { runs, .. } => {
            let mut runs = Runs::new(&runs);
            while units.left() > 0 {
                let (start, length) = runs
                    .next()
                    .ok_or_else(|| part.refused(at, "a $Bitmap too short for its clusters"))?;
                let bytes = length.saturating_mul(cluster_bytes).min(units.left().div_ceil(8));
                match start {
                    Some(start) => {
                        let from = start.saturating_mul(cluster_bytes);
                        part.stream(from, bytes, "$Bitmap", &mut |bits| units.bits(bits))?;
                    }
                    None => units.same(true, bytes.saturating_mul(8))?,
                }
            }
        }
    }
    if units.left() > 0 {
        return Err(part.refused(at, "a $Bitmap too short for its clusters"));
    }
    units.finish()?;
    let end = clusters.saturating_mul(cluster_bytes).min(part.length());
    free.add(part.place(end)..part.span().end, part)?;
    Ok(Some("NTFS"))
}
