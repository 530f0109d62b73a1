//! Mail.

use quarrier_carve::Verdict;
use quarrier_carve::format::mail::Mail;

use crate::sample::validated;

const HEAD: &str = "Return-Path: <a@b.org>\r\nFrom: a <a@b.org>\r\nTo: c@d.org\r\n\
    Date: Thu, 1 Jan 1970 00:00:00 +0000\r\nSubject: a\r\n b\r\n";

fn length(mail: &str, after: &[u8]) -> Option<(u64, &'static str)> {
    match validated(&Mail, mail.as_bytes(), after) {
        Verdict::Whole { length, kind } => Some((length, kind.name)),
        _ => None,
    }
}

#[test]
fn a_mail_ends_where_its_parts_or_its_text_do() {
    let plain = format!("{HEAD}\r\nThe text.\r\n");
    assert_eq!(length(&plain, &[0; 700]), Some((plain.len() as u64, "eml")));
    assert_eq!(length(&plain, &[0xFF; 700]), None);
    let parts = format!(
        "{HEAD}Content-Type: multipart/mixed;\r\n boundary=\"==x\"\r\n\r\n--==x\r\n\r\n\
         a\r\n--==x--\r\n"
    );
    for after in [&[0u8; 700][..], &[0xFF; 700], b"text behind"] {
        assert_eq!(length(&parts, after), Some((parts.len() as u64, "eml")));
    }
    let mailbox = format!("From - Thu Jan  1 00:00:00 1970\r\n{plain}");
    assert_eq!(length(&mailbox, &[0; 700]), Some((mailbox.len() as u64, "mbox")));
}

#[test]
fn lines_that_are_no_head_are_no_mail() {
    for text in ["Return-Path: <a@b>\n\ntext\n", "Received: from here\nto there\n\nand so on\n"] {
        assert_eq!(validated(&Mail, text.as_bytes(), &[0; 100]), Verdict::Not);
    }
}
