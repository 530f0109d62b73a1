//! Lengths that Arrow IPC states, held against the source's before anything is reserved for them.

use arrow_ipc::{Block, root_as_footer, root_as_message};
use arrow_schema::ArrowError;
use quarrier_core::source::{Source, read_exact_at};

/// Behind a file's footer: its length and the magic.
const TAIL_BYTES: u64 = 10;

/// Says where a length comes from that the source does not have.
fn beyond(what: &str) -> ArrowError {
    ArrowError::ParseError(format!("{what} longer than the file"))
}

/// Checks the messages of a stream, whose metadata it reads.
pub(super) fn check_stream(source: &dyn Source) -> Result<(), ArrowError> {
    let mut at = 0;
    while at + 4 <= source.length() {
        let word = |at| Ok::<_, ArrowError>(u32::from_le_bytes(bytes(source, at)?));
        let (length, head) = match word(at)? {
            u32::MAX => (word(at + 4)?, 8),
            length => (length, 4),
        };
        if length == 0 {
            return Ok(());
        }
        let metadata = read_exact_at(source, at + head, u64::from(length))?;
        let message = root_as_message(&metadata)
            .map_err(|error| ArrowError::ParseError(error.to_string()))?;
        let body = u64::try_from(message.bodyLength()).map_err(|_| beyond("a message"))?;
        at =
            (at + head + u64::from(length)).checked_add(body).ok_or_else(|| beyond("a message"))?;
        if at > source.length() {
            return Err(beyond("a message"));
        }
    }
    Ok(())
}

/// Checks the footer of a file and the places of its batches.
pub(super) fn check_file(source: &dyn Source) -> Result<(), ArrowError> {
    let tail = source.length().checked_sub(TAIL_BYTES).ok_or_else(|| beyond("a footer"))?;
    let length = u64::from(u32::from_le_bytes(bytes(source, tail)?));
    let start = tail.checked_sub(length).ok_or_else(|| beyond("a footer"))?;
    let footer = read_exact_at(source, start, length)?;
    let footer =
        root_as_footer(&footer).map_err(|error| ArrowError::ParseError(error.to_string()))?;
    let is_within = |block: &Block| {
        let lengths = [block.offset(), i64::from(block.metaDataLength()), block.bodyLength()];
        let end = lengths
            .iter()
            .try_fold(0u64, |end, &length| end.checked_add(u64::try_from(length).ok()?));
        end.is_some_and(|end| end <= source.length())
    };
    let blocks = [footer.dictionaries(), footer.recordBatches()];
    match blocks.iter().flatten().all(|blocks| blocks.iter().all(is_within)) {
        true => Ok(()),
        false => Err(beyond("a batch")),
    }
}

fn bytes(source: &dyn Source, at: u64) -> Result<[u8; 4], ArrowError> {
    let bytes = read_exact_at(source, at, 4)?;
    Ok([bytes[0], bytes[1], bytes[2], bytes[3]])
}
