//! OLE compound files: Office documents before 2007, Outlook messages, installers.
//!
//! MS-CFB: sectors, a table that links them, a directory of streams. The file ends after the last
//! sector in use.

mod content;
mod mend;
mod storages;
mod table;

use super::{Format, Kind, Signature, Verdict};
use crate::mend::{Broken, MendContext, pairs};
use crate::view::{Extent, View};
use storages::NOWHERE;
use table::{Compound, Header, Stream, Trouble, read};

/// Compound files. The streams in their root determine the type. They have no checksum: the
/// validator checks the table, the directory, and the records of workbooks, presentations and
/// documents.
pub struct Ole;

const OLE: Kind = Kind::new("ole");
const DOC: Kind = Kind::new("doc");
const XLS: Kind = Kind::new("xls");
const PPT: Kind = Kind::new("ppt");
const MSG: Kind = Kind::new("msg");
const MSI: Kind = Kind::new("msi");
/// The class of installers, their patches and transforms, without the first byte.
const MSI_CLASS: [u8; 15] = [0x10, 0x0C, 0, 0, 0, 0, 0, 0xC0, 0, 0, 0, 0, 0, 0, 0x46];

impl Format for Ole {
    fn kinds(&self) -> &[Kind] {
        &[OLE, DOC, XLS, PPT, MSG, MSI]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "D0 CF 11 E0 A1 B1 1A E1", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some(header) = Header::read(view) else { return Verdict::Not };
        match checked(view, &header) {
            Ok(compound) => Verdict::Whole { length: compound.length, kind: kind(&compound) },
            Err((kind, trouble)) => {
                Verdict::broken(view, kind, 512, trouble.at.max(512), trouble.reason)
            }
        }
    }

    fn mend(
        &self,
        view: &mut View<'_>,
        broken: &Broken,
        context: &MendContext<'_>,
    ) -> Option<Vec<Extent>> {
        let header = Header::read(view)?;
        pairs(view, context, broken.at, &header)
    }
}

/// Checks everything that can be checked.
fn checked(view: &mut View<'_>, header: &Header) -> Result<Compound, (Kind, Trouble)> {
    let compound = read(view, header).map_err(|trouble| (OLE, trouble))?;
    match content::check(view, &compound.streams) {
        Ok(()) => Ok(compound),
        Err(trouble) => Err((kind(&compound), trouble)),
    }
}

fn kind(compound: &Compound) -> Kind {
    // Streams of embedded documents do not determine the type of the outer one.
    let is_own = |stream: &&Stream| matches!(stream.storage, 0 | NOWHERE);
    let own: Vec<_> = compound.streams.iter().filter(is_own).map(|one| &*one.name).collect();
    let has = |name: &str| own.contains(&name);
    if has("WordDocument") {
        DOC
    } else if has("Workbook") || has("Book") {
        XLS
    } else if has("PowerPoint Document") {
        PPT
    } else if has("__properties_version1.0") {
        MSG
    } else if compound.class[1..] == MSI_CLASS {
        MSI
    } else {
        OLE
    }
}
