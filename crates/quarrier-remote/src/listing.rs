//! Parses pages of listings: the XML of S3 and Google, and that of Azure.
//!
//! ```text
//!  <ListBucketResult>   <Contents> <Key> <Size>   <CommonPrefixes>   <IsTruncated>   <NextContinuationToken>
//!  <EnumerationResults> <Blobs> <Blob> <Name> <Properties> <Content-Length>   <BlobPrefix>   <NextMarker>
//! ```
//!
//! Errors never show any part of the page, which may be no listing at all.

use std::ops::ControlFlow;

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};

/// Maximum size of the mark of the next page, which becomes a part of a URL.
const MARK_BYTES_MAX: usize = 8 << 10;

/// Maximum number of consecutive pages without an entry. A store that skips removed objects sends such pages.
const EMPTY_PAGES_MAX: u32 = 10_000;

/// Maximum number of pages: of billions of objects, since a page has a thousand or more.
const PAGES_MAX: u64 = 4 << 20;

/// Maximum depth of elements; listings have four. The parser remembers every open element.
const DEPTH_MAX: usize = 32;

/// An object of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedObject<'l> {
    /// The whole key, as the server sent it.
    pub key: &'l str,
    /// The size in bytes.
    pub length: u64,
}

/// The end of a page.
#[derive(Debug, PartialEq, Eq)]
pub enum Page {
    /// The receiver wanted no more.
    Stopped,
    /// The receiver got all objects of the page.
    Complete {
        /// The number of objects and folders.
        entries: u64,
        /// The mark of the next page.
        next: Option<String>,
    },
}

const NO_LISTING: &str = "the server's response is not a listing of objects";
const CUT: &str = "the server's listing is cut off";
const INCOMPLETE: &str = "the server lists an object without its key or size";
const NO_MARK: &str = "the server says that the listing goes on, but not where";
const LONG_MARK: &str = "the server's mark of the next page is too long";
const REPEATED: &str = "the server sends the same pages of objects again";
const ENDLESS: &str = "the server sends one page without objects after the other";
const TOO_MANY: &str = "the server's listing has more than four million pages";

/// The elements of a page that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    Root,
    Blobs,
    Object,
    Key,
    Properties,
    Size,
    Folder,
    IsTruncated,
    Next,
    Other,
}

impl Tag {
    fn of(parent: Option<Tag>, name: &[u8]) -> Option<Tag> {
        Some(match (parent, name) {
            (None, b"ListBucketResult" | b"EnumerationResults") => Tag::Root,
            (None, _) => return None,
            (Some(Tag::Root), b"Blobs") => Tag::Blobs,
            (Some(Tag::Root), b"Contents") | (Some(Tag::Blobs), b"Blob") => Tag::Object,
            (Some(Tag::Root), b"CommonPrefixes") | (Some(Tag::Blobs), b"BlobPrefix") => Tag::Folder,
            (Some(Tag::Root), b"NextContinuationToken" | b"NextMarker") => Tag::Next,
            (Some(Tag::Root), b"IsTruncated") => Tag::IsTruncated,
            (Some(Tag::Object), b"Key" | b"Name") => Tag::Key,
            (Some(Tag::Object), b"Properties") => Tag::Properties,
            (Some(Tag::Object), b"Size") | (Some(Tag::Properties), b"Content-Length") => Tag::Size,
            _ => Tag::Other,
        })
    }

    fn has_text(self) -> bool {
        matches!(self, Tag::Key | Tag::Size | Tag::IsTruncated | Tag::Next)
    }
}

/// Receives the objects of a listing.
pub type Take<'t> = dyn FnMut(ListedObject<'_>) -> ControlFlow<()> + 't;

/// Passes on the objects of a page. Needs memory only for the longest key.
///
/// # Errors
/// A reason without any part of the page, which is no listing, is cut off, or lacks something.
pub fn parse(xml: &[u8], take: &mut Take<'_>) -> Result<Page, &'static str> {
    let mut reader = Reader::from_reader(xml);
    reader.config_mut().expand_empty_elements = true;
    let mut page = Parser::default();
    loop {
        match reader.read_event().map_err(|_| NO_LISTING)? {
            Event::Start(start) => page.start(&start)?,
            Event::End(_) => {
                if page.end(take)?.is_break() {
                    return Ok(Page::Stopped);
                }
            }
            Event::Text(text) => page.add(&text.xml10_content().map_err(|_| NO_LISTING)?),
            Event::CData(text) => page.add(&text.xml10_content().map_err(|_| NO_LISTING)?),
            Event::GeneralRef(entity) => {
                let char = entity.resolve_char_ref().map_err(|_| NO_LISTING)?;
                let name = entity.decode().map_err(|_| NO_LISTING)?;
                match char {
                    Some(char) => page.add(char.encode_utf8(&mut [0; 4])),
                    None => page.add(resolve_predefined_entity(&name).ok_or(NO_LISTING)?),
                }
            }
            Event::Eof => return page.complete(),
            Event::Empty(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_) => {}
        }
    }
}

#[derive(Default)]
struct Parser {
    /// The open elements.
    tags: Vec<Tag>,
    /// The text of the innermost one.
    text: String,
    /// The key and the size of the object.
    key: Option<String>,
    size: Option<u64>,
    /// Whether the key is percent-encoded, as Azure does if XML cannot represent it.
    is_encoded: bool,
    entries: u64,
    is_truncated: bool,
    next: Option<String>,
    has_root: bool,
}

impl Parser {
    fn start(&mut self, start: &BytesStart<'_>) -> Result<(), &'static str> {
        let tag = Tag::of(self.tags.last().copied(), start.local_name().as_ref());
        let tag = tag.ok_or(NO_LISTING)?;
        let is_in_text = self.tags.last().is_some_and(|parent| parent.has_text());
        if is_in_text || self.tags.len() == DEPTH_MAX {
            return Err(NO_LISTING);
        }
        match tag {
            Tag::Root if self.has_root => return Err(NO_LISTING),
            Tag::Root => self.has_root = true,
            Tag::Object => (self.key, self.size) = (None, None),
            Tag::Key => {
                let encoded = start.try_get_attribute("Encoded").map_err(|_| NO_LISTING)?;
                self.is_encoded = encoded.is_some_and(|encoded| *encoded.value == *b"true");
            }
            _ => {}
        }
        self.text.clear();
        self.tags.push(tag);
        Ok(())
    }

    fn add(&mut self, text: &str) {
        if self.tags.last().is_some_and(|tag| tag.has_text()) {
            self.text.push_str(text);
        }
    }

    fn end(&mut self, take: &mut Take<'_>) -> Result<ControlFlow<()>, &'static str> {
        match self.tags.pop() {
            Some(Tag::Key) if self.is_encoded => self.key = Some(decoded(&self.text)?),
            Some(Tag::Key) => self.key = Some(std::mem::take(&mut self.text)),
            Some(Tag::Size) => self.size = Some(self.text.trim().parse().map_err(|_| INCOMPLETE)?),
            Some(Tag::IsTruncated) => self.is_truncated = self.text.trim() == "true",
            Some(Tag::Next) => self.next = Some(std::mem::take(&mut self.text)),
            Some(Tag::Folder) => self.entries += 1,
            Some(Tag::Object) => {
                self.entries += 1;
                let (Some(key), Some(length)) = (&self.key, self.size) else {
                    return Err(INCOMPLETE);
                };
                return Ok(take(ListedObject { key, length }));
            }
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    fn complete(self) -> Result<Page, &'static str> {
        let next = self.next.filter(|next| !next.is_empty());
        match &next {
            _ if !self.has_root => Err(NO_LISTING),
            _ if !self.tags.is_empty() => Err(CUT),
            None if self.is_truncated => Err(NO_MARK),
            Some(next) if next.len() > MARK_BYTES_MAX => Err(LONG_MARK),
            _ => Ok(Page::Complete { entries: self.entries, next }),
        }
    }
}

fn decoded(text: &str) -> Result<String, &'static str> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, more @ ..] = rest {
        rest = more;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (hex, more) = more.split_at_checked(2).ok_or(NO_LISTING)?;
        let hex = std::str::from_utf8(hex).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(hex.ok_or(NO_LISTING)?);
        rest = more;
    }
    String::from_utf8(bytes).map_err(|_| NO_LISTING)
}

/// Detects listings that never end.
#[derive(Debug, Default)]
pub struct Progress {
    pages: u64,
    empty: u32,
    /// The mark of an earlier page. Marks that repeat in any cycle come back to it, since it moves at powers
    /// of two (Brent's algorithm).
    earlier: Option<String>,
}

impl Progress {
    /// Records a page with `entries` and the mark of the next one.
    ///
    /// # Errors
    /// The reason to request no further page: an earlier one comes again, too many are empty, or there are too
    /// many.
    pub fn page(&mut self, entries: u64, next: &str) -> Result<(), &'static str> {
        if self.earlier.as_deref() == Some(next) {
            return Err(REPEATED);
        }
        self.empty = if entries == 0 { self.empty + 1 } else { 0 };
        if self.empty > EMPTY_PAGES_MAX {
            return Err(ENDLESS);
        }
        self.pages += 1;
        if self.pages == PAGES_MAX {
            return Err(TOO_MANY);
        }
        if self.pages.is_power_of_two() {
            self.earlier = Some(next.to_string());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parsed = Result<(Vec<(String, u64)>, Option<String>), &'static str>;

    fn parsed(xml: &str) -> Parsed {
        let mut objects = Vec::new();
        let page = parse(xml.as_bytes(), &mut |object| {
            objects.push((object.key.to_string(), object.length));
            ControlFlow::Continue(())
        })?;
        let Page::Complete { entries, next } = page else { panic!("it was not stopped") };
        assert!(entries >= objects.len() as u64);
        Ok((objects, next))
    }

    fn object(key: &str) -> String {
        format!("<Contents><Key>{key}</Key><Size>7</Size></Contents>")
    }

    #[test]
    fn keys_are_taken_verbatim() {
        for (written, key) in [
            (" a ", " a "),
            ("/a//b/", "/a//b/"),
            ("../&amp;&#x1;&#10;", "../&\u{1}\n"),
            ("<![CDATA[<&>]]>x", "<&>x"),
            ("", ""),
        ] {
            let xml = format!("<ListBucketResult>{}</ListBucketResult>", object(written));
            assert_eq!(parsed(&xml), Ok((vec![(key.to_string(), 7)], None)), "{written}");
        }
        let azure = "<?xml version='1.0'?><EnumerationResults><Prefix>p</Prefix><Blobs><Blob>\
                     <Name Encoded='true'>a%EF%BF%BE/%25</Name><Snapshot/><Properties>\
                     <Content-Length>3</Content-Length></Properties></Blob><BlobPrefix><Name>x/</Name>\
                     </BlobPrefix></Blobs><NextMarker>m&amp;m</NextMarker></EnumerationResults>";
        let expected = (vec![("a\u{FFFE}/%".to_string(), 3)], Some("m&m".to_string()));
        assert_eq!(parsed(azure), Ok(expected));
    }

    #[test]
    fn responses_that_are_no_complete_listing_are_errors() {
        let page = |inner: &str| parsed(&format!("<ListBucketResult>{inner}</ListBucketResult>"));
        for xml in ["", "x", "<html></html>", "<Error><Code>AccessDenied</Code></Error>", "{}"] {
            assert_eq!(parsed(xml), Err(NO_LISTING), "{xml}");
        }
        assert_eq!(page("&unknown;"), Err(NO_LISTING));
        assert_eq!(page("<a></b>"), Err(NO_LISTING));
        assert_eq!(page("</ListBucketResult><ListBucketResult>"), Err(NO_LISTING));
        assert_eq!(page("<Contents><Key>a</Key></Contents>"), Err(INCOMPLETE));
        assert_eq!(page("<Contents><Size>1</Size></Contents>"), Err(INCOMPLETE));
        assert_eq!(page("<Contents><Key>a</Key><Size>-1</Size></Contents>"), Err(INCOMPLETE));
        assert_eq!(page("<Contents><Key>a<b/>c</Key><Size>1</Size></Contents>"), Err(NO_LISTING));
        let nested =
            |depth: usize| page(&format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth)));
        assert_eq!(nested(DEPTH_MAX - 1), Ok((Vec::new(), None)));
        assert_eq!(nested(DEPTH_MAX), Err(NO_LISTING));
        assert_eq!(page(&"<a>".repeat(1_000_000)), Err(NO_LISTING));
        assert_eq!(page("<IsTruncated>true</IsTruncated>"), Err(NO_MARK));
        let mark = "m".repeat(MARK_BYTES_MAX + 1);
        let mark = format!("<NextContinuationToken>{mark}</NextContinuationToken>");
        assert_eq!(page(&mark), Err(LONG_MARK));
        let whole = format!("<ListBucketResult>{}</ListBucketResult>", object("a"));
        for cut in 0..whole.len() {
            assert!(parsed(&whole[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn any_change_of_a_page_is_an_error_or_a_listing() {
        let page = format!("<ListBucketResult>{}</ListBucketResult>", object("a&lt;").repeat(2));
        for at in 0..page.len() {
            for byte in [0, b'<', b'>', b'&', b'/', b'!', b'?', b'"', 0xFF] {
                let mut page = page.clone().into_bytes();
                page[at] = byte;
                let mut count = 0;
                let parsed = parse(&page, &mut |_| {
                    count += 1;
                    ControlFlow::Continue(())
                });
                assert!(parsed.is_err() || count <= 2, "{at} {byte}");
            }
        }
    }

    #[test]
    fn pages_that_repeat_or_stay_empty_end_and_others_do_not() {
        for cycle in [1, 2, 3, 100] {
            let mut progress = Progress::default();
            let mut pages = (0..).map(|number| progress.page(9, &format!("{}", number % cycle)));
            let ended = pages.position(|page| page == Err(REPEATED));
            assert!(ended.is_some_and(|pages| pages < 4 * 100), "{cycle}");
        }
        let mut progress = Progress::default();
        assert!((0..100_000).all(|number| progress.page(1, &number.to_string()).is_ok()));
        let empty: Vec<_> =
            (0..=EMPTY_PAGES_MAX).map(|n| progress.page(0, &format!("x{n}"))).collect();
        assert!(empty.iter().rev().skip(1).all(Result::is_ok));
        assert_eq!(empty.last(), Some(&Err(ENDLESS)));
        let mut progress = Progress { pages: PAGES_MAX - 2, ..Progress::default() };
        assert_eq!(progress.page(1, "a"), Ok(()));
        assert_eq!(progress.page(1, "b"), Err(TOO_MANY));
    }
}
