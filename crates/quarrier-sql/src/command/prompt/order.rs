//! The prompt's own commands, which begin with a backslash.

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Order {
    Help,
    Quit,
    /// A statement whose answer is the command's output.
    Statement(String),
    /// On or off; `None` toggles it.
    Timing(Option<bool>),
    Expanded(Option<bool>),
    Pager(Option<bool>),
    /// An invalid command, with the reason.
    Wrong(String),
}

/// The commands, for `\?`.
pub(super) const HELP: &str = "\
SQL ends with ';'. FROM 'orders.ndjson' reads a file. Tab completes.
  \\d         the open tables
  \\d NAME    the columns of a table or file
  \\x         one line per value, or one per row again
  \\timing    print the time of each statement, or stop
  \\pager     show long answers in $PAGER (less), or stop
  \\?         this list
  \\q         quit, like 'exit' and Ctrl-D
";

/// The command in a line; `None` if it is a statement.
pub(super) fn of(line: &str) -> Option<Order> {
    let line = line.trim().trim_end_matches(';').trim_end();
    if matches!(line, "exit" | "quit") {
        return Some(Order::Quit);
    }
    if line == "help" {
        return Some(Order::Help);
    }
    let line = line.strip_prefix('\\')?;
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    Some(match word {
        "?" | "h" | "help" => Order::Help,
        "q" | "quit" => Order::Quit,
        "d" | "dt" if rest.is_empty() => Order::Statement("SHOW TABLES".to_string()),
        "d" => Order::Statement(format!("DESCRIBE {}", name(rest))),
        "timing" => switch(word, rest, Order::Timing),
        "x" => switch(word, rest, Order::Expanded),
        "pager" => switch(word, rest, Order::Pager),
        _ => Order::Wrong(format!("unknown command '\\{word}'; '\\?' lists the commands")),
    })
}

/// A table or file name, quoted as in a statement.
fn name(given: &str) -> String {
    let is_quoted = given.starts_with(['\'', '"']);
    if is_quoted { given.to_string() } else { format!("\"{}\"", given.replace('"', "\"\"")) }
}

fn switch(word: &str, rest: &str, order: fn(Option<bool>) -> Order) -> Order {
    match rest {
        "" => order(None),
        "on" => order(Some(true)),
        "off" => order(Some(false)),
        _ => Order::Wrong(format!("'\\{word}' takes 'on' or 'off', or nothing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_distinguished_from_statements() {
        assert_eq!(of("SELECT 1;"), None);
        assert_eq!(of("exit"), Some(Order::Quit));
        assert_eq!(of(" \\q ; "), Some(Order::Quit));
        assert_eq!(of("\\?"), Some(Order::Help));
        assert_eq!(of("\\timing"), Some(Order::Timing(None)));
        assert_eq!(of("\\timing on;"), Some(Order::Timing(Some(true))));
        assert_eq!(of("\\x off"), Some(Order::Expanded(Some(false))));
    }

    #[test]
    fn commands_for_tables_and_columns_are_statements() {
        let statement = |text: &str| Some(Order::Statement(text.to_string()));
        assert_eq!(of("\\d"), statement("SHOW TABLES"));
        assert_eq!(of("\\d orders"), statement("DESCRIBE \"orders\""));
        assert_eq!(of("\\d a.ndjson"), statement("DESCRIBE \"a.ndjson\""));
        assert_eq!(of("\\d 'a b.csv'"), statement("DESCRIBE 'a b.csv'"));
        assert_eq!(of("\\d a\"; DROP"), statement("DESCRIBE \"a\"\"; DROP\""));
    }

    #[test]
    fn an_unknown_command_refers_to_the_list() {
        for line in ["\\", "\\copy", "\\timing maybe"] {
            assert!(matches!(of(line), Some(Order::Wrong(_))), "{line}");
        }
    }
}
