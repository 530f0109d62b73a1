//! The maximum length of a match of a string: how far around a factor it may reach.

use boreal_parser::hex_string::Token;
use boreal_parser::regex::{Node, RepetitionKind, RepetitionRange};
use boreal_parser::rule::{VariableDeclaration, VariableDeclarationValue};

/// Longer matches count as unbounded, in bytes.
const REACH_MAX: u64 = 4096;
/// Maximum nesting of nodes and alternatives. The parser's limit is lower.
const DEPTH_MAX: usize = 100;

/// Returns the maximum length of a match in bytes; `None` if it is unbounded or too long.
pub(crate) fn reach(variable: &VariableDeclaration) -> Option<u32> {
    let modifiers = &variable.modifiers;
    let bytes = match &variable.value {
        // Four characters for each three bytes, and those at both ends.
        VariableDeclarationValue::Bytes(bytes) if modifiers.base64.is_some() => {
            2 * (bytes.len() as u64) + 8
        }
        VariableDeclarationValue::Bytes(bytes) => bytes.len() as u64,
        VariableDeclarationValue::HexString(tokens) => of_tokens(tokens, 0)?,
        VariableDeclarationValue::Regex(regex) => of_node(&regex.ast, 0)?,
    };
    // A wide string may also be encoded as wide base64.
    let doubled = u32::from(modifiers.wide) + u32::from(modifiers.base64.is_some());
    let bytes = bytes.saturating_mul(1 << doubled);
    (bytes <= REACH_MAX).then_some(bytes as u32)
}

fn of_tokens(tokens: &[Token], depth: usize) -> Option<u64> {
    let mut sum = 0u64;
    for token in tokens {
        let bytes = match token {
            Token::Byte(_)
            | Token::MaskedByte(..)
            | Token::NotByte(_)
            | Token::NotMaskedByte(..) => 1,
            Token::Jump(jump) => u64::from(jump.to?),
            Token::Alternatives(branches) if depth < DEPTH_MAX => {
                longest(branches.iter().map(|branch| of_tokens(branch, depth + 1)))?
            }
            Token::Alternatives(_) => return None,
        };
        sum = sum.saturating_add(bytes);
    }
    Some(sum)
}

fn of_node(node: &Node, depth: usize) -> Option<u64> {
    if depth >= DEPTH_MAX {
        return None;
    }
    match node {
        Node::Literal(_) | Node::Dot | Node::Class(_) => Some(1),
        // The bytes of a character in UTF-8.
        Node::Char(_) => Some(4),
        Node::Empty | Node::Assertion(_) => Some(0),
        Node::Group(node) => of_node(node, depth + 1),
        Node::Concat(nodes) => nodes
            .iter()
            .try_fold(0u64, |sum, node| Some(sum.saturating_add(of_node(node, depth + 1)?))),
        Node::Alternation(nodes) => longest(nodes.iter().map(|node| of_node(node, depth + 1))),
        Node::Repetition { node, kind, .. } => {
            let most = match kind {
                RepetitionKind::ZeroOrOne => 1,
                RepetitionKind::Range(RepetitionRange::Exactly(count)) => *count,
                RepetitionKind::Range(RepetitionRange::Bounded(_, most)) => *most,
                RepetitionKind::ZeroOrMore
                | RepetitionKind::OneOrMore
                | RepetitionKind::Range(RepetitionRange::AtLeast(_)) => return None,
            };
            Some(of_node(node, depth + 1)?.saturating_mul(u64::from(most)))
        }
    }
}

fn longest(mut lengths: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    lengths.try_fold(0, |most, length| Some(most.max(length?)))
}

#[cfg(test)]
mod tests {
    use boreal_parser::file::YaraFileComponent;

    use super::*;

    #[test]
    fn the_longest_match_of_a_string() {
        for (string, expected) in [
            ("\"abc\"", Some(3)),
            ("\"abc\" wide ascii xor", Some(6)),
            ("\"abc\" base64", Some(28)),
            ("{ 4D ?? [2-4] ( 01 | 02 03 ~04 ) }", Some(9)),
            ("{ 4D [4] 5? }", Some(6)),
            ("{ 4D [2-] 5A }", None),
            ("{ 4D [4000-4096] 5A }", None),
            ("/\\babc?(de|f){2,3}.$/", Some(10)),
            ("/abc[0-9]{1,20}/ wide", Some(46)),
            ("/abc.*/", None),
            ("/abc+/", None),
            ("/(ab{2,}|c)d/", None),
            ("/((abc){100}){100}/", None),
            ("/abcé/", Some(7)),
        ] {
            let text = format!("rule a {{ strings: $a = {string} condition: $a }}");
            let file = boreal_parser::parse(&text).unwrap();
            let [YaraFileComponent::Rule(rule)] = &file.components[..] else { panic!("{string}") };
            assert_eq!(reach(&rule.variables[0]), expected, "{string}");
        }
    }
}
