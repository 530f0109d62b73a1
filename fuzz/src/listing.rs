//! Any bytes as a page of a bucket's listing: an error, or objects that are equal after they are written as
//! a page and read again. The same bytes as the marks of pages: a listing whose marks repeat ends.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use quarrier_remote::listing::{Page, Progress, parse};

use crate::{Target, Verdict};

/// See the module.
pub const TARGET: Target = Target { name: "listing", run, once: &[], seeds: SEEDS, words: WORDS };

const SEEDS: &[&[u8]] = &[
    b"<?xml version='1.0'?><ListBucketResult xmlns='x'><Name>b</Name><Contents><Key>a&amp;/b</Key>\
      <Size>7</Size></Contents><CommonPrefixes><Prefix>c/</Prefix></CommonPrefixes>\
      <IsTruncated>true</IsTruncated><NextContinuationToken>m</NextContinuationToken></ListBucketResult>",
    b"<ListBucketResult><Contents><Size>18446744073709551615</Size><Key><![CDATA[<&>]]>&#x1;</Key>\
      </Contents><NextMarker/></ListBucketResult>",
    b"<EnumerationResults><Blobs><Blob><Name Encoded='true'>a%EF%BF%BE/%25</Name><Properties>\
      <Content-Length>3</Content-Length></Properties></Blob><BlobPrefix><Name>x/</Name></BlobPrefix>\
      </Blobs><NextMarker>m&gt;m</NextMarker></EnumerationResults>",
    b"<Error><Code>AccessDenied</Code></Error>",
];

const WORDS: &[&[u8]] = &[
    b"<ListBucketResult>",
    b"</ListBucketResult>",
    b"<EnumerationResults>",
    b"</EnumerationResults>",
    b"<Contents>",
    b"</Contents>",
    b"<Key>",
    b"</Key>",
    b"<Key/>",
    b"<Size>",
    b"</Size>",
    b"<Blobs>",
    b"<Blob>",
    b"<Name Encoded=\"true\">",
    b"</Name>",
    b"<Properties>",
    b"<Content-Length>",
    b"<CommonPrefixes>",
    b"<IsTruncated>true</IsTruncated>",
    b"<NextContinuationToken>",
    b"<NextMarker>",
    b"<![CDATA[",
    b"]]>",
    b"<!--",
    b"-->",
    b"<!DOCTYPE a [<!ENTITY b \"&b;&b;\">]>",
    b"&lt;",
    b"&#x10FFFF;",
    b"&#0;",
    b"&b;",
    b"%2F",
    b"%ff",
    b"\r\n",
    b"\xc3\xa9",
    b"\xff",
    b"18446744073709551616",
];

/// What a page says.
#[derive(Debug, PartialEq, Eq)]
struct Listed {
    objects: Vec<(String, u64)>,
    entries: u64,
    next: Option<String>,
}

/// Reads `bytes` as a page, and as marks.
pub fn run(bytes: &[u8]) -> Verdict {
    follow(bytes);
    let Some(listed) = read(bytes) else { return Verdict::Skipped };
    let held = listed.objects.iter().map(|(key, _)| key.len()).sum::<usize>()
        + listed.next.as_ref().map_or(0, String::len);
    assert!(held <= bytes.len(), "{held} bytes of names in a page of {}", bytes.len());
    assert!(listed.entries >= listed.objects.len() as u64);
    for page in [amazon(&listed), azure(&listed)] {
        assert_eq!(read(page.as_bytes()).as_ref(), Some(&listed), "{page}");
    }
    stop_early(bytes, &listed);
    Verdict::Checked
}

fn read(page: &[u8]) -> Option<Listed> {
    let mut objects = Vec::new();
    let read = parse(page, &mut |object| {
        objects.push((object.key.to_string(), object.length));
        ControlFlow::Continue(())
    });
    match read.ok()? {
        Page::Stopped => panic!("nobody stopped it"),
        Page::Complete { entries, next } => Some(Listed { objects, entries, next }),
    }
}

/// Takes only the first object.
fn stop_early(page: &[u8], listed: &Listed) {
    let mut taken = 0;
    let read = parse(page, &mut |_| {
        taken += 1;
        ControlFlow::Break(())
    });
    let is_stopped = read == Ok(Page::Stopped);
    assert_eq!((is_stopped, taken), (!listed.objects.is_empty(), listed.objects.len().min(1)));
}

/// The page as S3 and Google write it.
fn amazon(listed: &Listed) -> String {
    let mut page = "<ListBucketResult>".to_string();
    for (key, length) in &listed.objects {
        let key = escaped(key);
        let _ = write!(page, "<Contents><Key>{key}</Key><Size>{length}</Size></Contents>");
    }
    page += &"<CommonPrefixes><Prefix>x/</Prefix></CommonPrefixes>".repeat(folders(listed));
    let mark = escaped(listed.next.as_deref().unwrap_or_default());
    page + &format!("<NextContinuationToken>{mark}</NextContinuationToken></ListBucketResult>")
}

/// The page as Azure writes it, with every key percent-encoded.
fn azure(listed: &Listed) -> String {
    let mut page = "<EnumerationResults><Blobs>".to_string();
    for (key, length) in &listed.objects {
        let key: String = key.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let _ = write!(
            page,
            "<Blob><Name Encoded='true'>{key}</Name><Properties><Content-Length>{length}\
             </Content-Length></Properties></Blob>"
        );
    }
    page += &"<BlobPrefix><Name>x/</Name></BlobPrefix>".repeat(folders(listed));
    let mark = escaped(listed.next.as_deref().unwrap_or_default());
    page + &format!("</Blobs><NextMarker>{mark}</NextMarker></EnumerationResults>")
}

fn folders(listed: &Listed) -> usize {
    listed.entries as usize - listed.objects.len()
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // A line end would be normalised.
    text.replace('\r', "&#13;")
}

/// Follows the marks of a server whose byte for each of at most 256 marks is the next one, so that they
/// repeat.
fn follow(bytes: &[u8]) {
    let (mut progress, mut mark) = (Progress::default(), 0);
    for pages in 0.. {
        let Some(&next) = bytes.get(mark % bytes.len().max(1)) else { return };
        mark = usize::from(next);
        if progress.page(u64::from(next & 1), &mark.to_string()).is_err() {
            return;
        }
        assert!(pages < 4 * 256, "the same pages are requested again and again");
    }
}
