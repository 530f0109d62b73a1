//! Checks the lengths stated in Arrow IPC against the length of the source, before the library
//! allocates as much.

use arrow_ipc::{Block, Message, root_as_footer, root_as_message};
use arrow_schema::ArrowError;
use quarrier_core::source::{Source, read_exact_at};

/// Bytes after a file's footer: its length and the magic number.
const TAIL_BYTES: u64 = 10;

/// Makes the error for a length that exceeds the source.
fn beyond(what: &str) -> ArrowError {
    ArrowError::ParseError(format!("{what} longer than the file"))
}

/// Checks the messages of a stream by their metadata.
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
        check_compressed(source, &message, at + head + u64::from(length))?;
        let body = u64::try_from(message.bodyLength()).map_err(|_| beyond("a message"))?;
        at =
            (at + head + u64::from(length)).checked_add(body).ok_or_else(|| beyond("a message"))?;
        if at > source.length() {
            return Err(beyond("a message"));
        }
    }
    Ok(())
}

/// Checks the footer of a file and the positions of its batches.
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
    for block in blocks.iter().flatten().flat_map(|blocks| blocks.iter()) {
        if !is_within(block) {
            return Err(beyond("a batch"));
        }
        check_block(source, block)?;
    }
    Ok(())
}

/// Checks a batch of a file by its metadata.
fn check_block(source: &dyn Source, block: &Block) -> Result<(), ArrowError> {
    let at = u64::try_from(block.offset()).map_err(|_| beyond("a batch"))?;
    let length = u64::try_from(block.metaDataLength()).map_err(|_| beyond("a batch"))?;
    let metadata = read_exact_at(source, at, length)?;
    let head = if metadata.starts_with(&[0xFF; 4]) { 8 } else { 4 };
    let message = metadata.get(head..).ok_or_else(|| beyond("a batch"))?;
    let message =
        root_as_message(message).map_err(|error| ArrowError::ParseError(error.to_string()))?;
    check_compressed(source, &message, at + length)
}

/// Checks the stated lengths of a message's decompressed buffers: the library allocates as much,
/// and the process would abort if that exceeds the machine's memory.
fn check_compressed(
    source: &dyn Source,
    message: &Message<'_>,
    body: u64,
) -> Result<(), ArrowError> {
    let dictionary = message.header_as_dictionary_batch().and_then(|batch| batch.data());
    let batch = message.header_as_record_batch().or(dictionary);
    let Some(batch) = batch.filter(|batch| batch.compression().is_some()) else { return Ok(()) };
    for buffer in batch.buffers().iter().flatten() {
        let lengths = (u64::try_from(buffer.offset()), u64::try_from(buffer.length()));
        let (Ok(offset), Ok(length)) = lengths else { return Err(beyond("a buffer")) };
        if length < PLAIN_LENGTH_BYTES {
            continue;
        }
        let at = body.checked_add(offset).ok_or_else(|| beyond("a buffer"))?;
        let plain = read_exact_at(source, at, PLAIN_LENGTH_BYTES)?;
        let plain = plain.iter().rev().fold(0, |plain, &byte| plain << 8 | u64::from(byte));
        if plain != NOT_COMPRESSED && !may_be(plain, length) {
            return Err(ArrowError::ParseError(
                "a buffer longer than its compressed bytes allow".into(),
            ));
        }
    }
    Ok(())
}

/// Length in bytes of the decompressed length before a compressed buffer.
const PLAIN_LENGTH_BYTES: u64 = 8;

/// In place of a length: the buffer is not compressed.
const NOT_COMPRESSED: u64 = u64::MAX;

/// Maximum expansion factor of Zstandard: four bytes for a block of 128 KiB; LZ4 expands less.
const EXPANSION_MAX: u64 = 1 << 16;

/// Whether `length` bytes can decompress to `plain` bytes that fit into memory.
fn may_be(plain: u64, length: u64) -> bool {
    let Ok(bytes) = usize::try_from(plain) else { return false };
    plain <= length.saturating_mul(EXPANSION_MAX)
        && Vec::<u8>::new().try_reserve_exact(bytes).is_ok()
}

fn bytes(source: &dyn Source, at: u64) -> Result<[u8; 4], ArrowError> {
    let bytes = read_exact_at(source, at, 4)?;
    Ok([bytes[0], bytes[1], bytes[2], bytes[3]])
}
