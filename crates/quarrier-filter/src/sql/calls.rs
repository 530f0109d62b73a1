//! Functions, CASE, and keywords that are values.

use quarrier_messages::Value;
use sqlparser::ast;
use sqlparser::tokenizer::Location;

use super::bind::{Binder, Bound, elsewhere, place};
use super::types::Type;
use super::{literals, wrong};
use crate::Result;
use crate::calendar::{self, Part};
use crate::expr::{Arithmetic, Comparison, Expr, Function};

impl Binder<'_> {
    /// Binds a function, with or without its own syntax in SQL-92.
    pub(super) fn special(&mut self, expr: ast::Expr, at: Location) -> Result<Bound> {
        use ast::Expr as From;
        match expr {
            From::Position { expr, r#in } => self.call(Function::Position, vec![*expr, *r#in], at),
            From::Substring { expr, substring_from, substring_for, special: _, shorthand: _ } => {
                let Some(from) = substring_from else {
                    return Err(wrong(at, "SUBSTRING(text FROM start) needs its FROM"));
                };
                let arguments = [Some(expr), Some(from), substring_for];
                let arguments = arguments.into_iter().flatten().map(|argument| *argument);
                self.call(Function::Substring, arguments.collect(), at)
            }
            From::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let arguments = [Some(expr), Some(overlay_what), Some(overlay_from), overlay_for];
                let arguments = arguments.into_iter().flatten().map(|argument| *argument);
                self.call(Function::Overlay, arguments.collect(), at)
            }
            From::Trim { trim_where, trim_what, expr, trim_characters: None } => {
                let (leading, trailing) = match trim_where {
                    Some(ast::TrimWhereField::Leading) => (true, false),
                    Some(ast::TrimWhereField::Trailing) => (false, true),
                    Some(ast::TrimWhereField::Both) | None => (true, true),
                };
                let text = self.bind(*expr)?;
                let what = match trim_what {
                    Some(what) => self.bind(*what)?,
                    None => Bound::literal(Value::Text(" ".into()), Type::Text, at),
                };
                self.called(Function::Trim { leading, trailing }, vec![text, what], at)
            }
            From::Extract { field, expr, syntax: _ } => {
                let part = literals::part(&field, at)?;
                self.call(Function::Extract(part), vec![*expr], at)
            }
            From::Function(function) => self.function(function, at),
            From::Subquery(_) | From::Exists { .. } | From::InSubquery { .. } => {
                Err(elsewhere(at, "subqueries are"))
            }
            From::AnyOp { left, compare_op, right, .. } => {
                self.quantified(*left, (&compare_op, false), &right, at)
            }
            From::AllOp { left, compare_op, right } => {
                self.quantified(*left, (&compare_op, true), &right, at)
            }
            From::AtTimeZone { .. } => {
                Err(wrong(at, "timestamps are in UTC; add an INTERVAL for another zone"))
            }
            From::Collate { .. } => Err(wrong(at, "text compares by its bytes; without COLLATE")),
            From::Named { .. } => Err(wrong(
                at,
                "SYMMETRIC goes after BETWEEN; put double quotes around a column of this name",
            )),
            From::IsDistinctFrom(..) | From::IsNotDistinctFrom(..) => {
                Err(wrong(at, "IS DISTINCT FROM is not SQL-92's; write (a = b) IS NOT TRUE"))
            }
            _ => Err(elsewhere(at, "this expression is")),
        }
    }

    fn function(&mut self, function: ast::Function, at: Location) -> Result<Bound> {
        let name = function.name.to_string().to_ascii_uppercase();
        if matches!(name.as_str(), "COUNT" | "SUM" | "AVG" | "MIN" | "MAX") {
            return Err(elsewhere(at, &format!("{name} of rows is")));
        }
        let arguments = arguments(function, at)?;
        let simple = match name.as_str() {
            "UPPER" | "UCASE" => Some(Function::Upper),
            "LOWER" | "LCASE" => Some(Function::Lower),
            "CHAR_LENGTH" | "CHARACTER_LENGTH" | "LENGTH" => Some(Function::CharacterLength),
            "OCTET_LENGTH" => Some(Function::OctetLength),
            "ABS" => Some(Function::Absolute),
            "CEIL" | "CEILING" => Some(Function::Ceiling),
            "FLOOR" => Some(Function::Floor),
            "SUBSTR" => Some(Function::Substring),
            "COALESCE" => Some(Function::Coalesce),
            "NULLIF" => Some(Function::NullIf),
            _ => None,
        };
        if let Some(function) = simple {
            return self.call(function, arguments, at);
        }
        match (name.as_str(), arguments.len()) {
            ("MOD", 2) => {
                let mut bound = self.bind_all(arguments)?.into_iter();
                match (bound.next(), bound.next()) {
                    (Some(left), Some(right)) => self.calculate(Arithmetic::Remainder, left, right),
                    _ => Err(wrong(at, "MOD(number, divisor) has two arguments")),
                }
            }
            ("BIT_LENGTH", 1) => {
                let bytes = self.call(Function::OctetLength, arguments, at)?;
                let eight = Bound::literal(Value::Integer(8), Type::Integer, at);
                self.calculate(Arithmetic::Multiply, bytes, eight)
            }
            (_, 0) => match self.constant(&name, at)? {
                Some(bound) => Ok(bound),
                None => Err(wrong(at, unknown(&name))),
            },
            _ => Err(wrong(at, unknown(&name))),
        }
    }

    fn bind_all(&mut self, arguments: Vec<ast::Expr>) -> Result<Vec<Bound>> {
        arguments.into_iter().map(|argument| self.bind(argument)).collect()
    }

    fn call(
        &mut self,
        function: Function,
        arguments: Vec<ast::Expr>,
        at: Location,
    ) -> Result<Bound> {
        let arguments = self.bind_all(arguments)?;
        self.called(function, arguments, at)
    }

    /// Binds a function whose arguments must have certain types.
    fn called(
        &mut self,
        function: Function,
        mut arguments: Vec<Bound>,
        at: Location,
    ) -> Result<Bound> {
        let kind = match function {
            Function::Coalesce => {
                if arguments.is_empty() {
                    return Err(wrong(at, "COALESCE has at least one argument"));
                }
                let (alike, kind) = self.alike(arguments, "COALESCE")?;
                arguments = alike;
                kind
            }
            Function::NullIf => return self.null_if(arguments, at),
            _ => checked(function, &arguments, at)?,
        };
        self.node_of(arguments, kind, at, |arguments| Expr::Call { function, arguments })
    }

    fn null_if(&mut self, arguments: Vec<Bound>, at: Location) -> Result<Bound> {
        let Ok([first, second]) = <[Bound; 2]>::try_from(arguments) else {
            return Err(wrong(at, "NULLIF has two arguments"));
        };
        let (first, second) = super::rows::both_dated(first, second)?;
        self.comparable(&first, &second)?;
        let kind = first.kind;
        if kind == Type::Character || second.kind == Type::Character {
            let equal = self.compare(Comparison::Equal, first.clone(), second)?;
            return self.node([equal, first], kind, at, |[equal, first]| Expr::Case {
                branches: vec![(equal, Expr::Literal(Value::Null))],
                otherwise: Some(Box::new(first)),
            });
        }
        self.node([first, second], kind, at, |arguments| Expr::Call {
            function: Function::NullIf,
            arguments: arguments.into(),
        })
    }

    /// Binds CASE; the simple form compares its operand in each branch.
    pub(super) fn case(
        &mut self,
        operand: Option<Box<ast::Expr>>,
        conditions: Vec<ast::CaseWhen>,
        otherwise: Option<Box<ast::Expr>>,
        at: Location,
    ) -> Result<Bound> {
        let operand = operand.map(|operand| self.row(*operand)).transpose()?;
        let mut tests = Vec::with_capacity(conditions.len());
        let mut results = Vec::with_capacity(conditions.len() + 1);
        for ast::CaseWhen { condition, result } in conditions {
            tests.push(match &operand {
                Some(operand) => {
                    let place = place(&condition);
                    let value = self.row(condition)?;
                    self.compare_rows(Comparison::Equal, operand.clone(), value, place)?
                }
                None => self.bind(condition)?.truth()?,
            });
            results.push(self.bind(result)?);
        }
        let has_otherwise = otherwise.is_some();
        if let Some(otherwise) = otherwise {
            results.push(self.bind(*otherwise)?);
        }
        let (results, kind) = self.alike(results, "CASE")?;
        let branches = tests.len();
        tests.extend(results);
        self.node_of(tests, kind, at, |mut tests| {
            let mut results = tests.split_off(branches);
            let otherwise = if has_otherwise { results.pop().map(Box::new) } else { None };
            Expr::Case { branches: tests.into_iter().zip(results).collect(), otherwise }
        })
    }

    /// Binds the keywords that are values without an argument.
    pub(super) fn constant(&mut self, name: &str, at: Location) -> Result<Option<Bound>> {
        let (day, time) = calendar::split(self.now);
        Ok(Some(match name.to_ascii_uppercase().as_str() {
            "CURRENT_TIMESTAMP" | "LOCALTIMESTAMP" => {
                Bound::literal(Value::Timestamp(self.now), Type::Timestamp, at)
            }
            "CURRENT_DATE" => Bound::literal(Value::Date(day), Type::Date, at),
            "CURRENT_TIME" | "LOCALTIME" => Bound::literal(Value::Time(time), Type::Time, at),
            "USER" | "CURRENT_USER" | "SESSION_USER" | "SYSTEM_USER" => {
                return Err(wrong(at, format!("{name} is not supported: there are no users")));
            }
            _ => return Ok(None),
        }))
    }
}

/// Whether an argument may have a type.
type Takes = fn(Type) -> bool;

/// Returns the type of a function's result, if its arguments have the right types.
fn checked(function: Function, arguments: &[Bound], at: Location) -> Result<Type> {
    let is_whole = |kind: Type| matches!(kind, Type::Null | Type::Integer);
    let (takes, kind): (&[Takes], Type) = match function {
        Function::Upper | Function::Lower => (&[Type::is_text], Type::Text),
        Function::CharacterLength | Function::OctetLength => (&[Type::is_text], Type::Integer),
        Function::Position => (&[Type::is_text, Type::is_text], Type::Integer),
        Function::Trim { .. } => (&[Type::is_text, Type::is_text], Type::Text),
        Function::Substring if arguments.len() < 3 => (&[Type::is_text, is_whole], Type::Text),
        Function::Substring => (&[Type::is_text, is_whole, is_whole], Type::Text),
        Function::Overlay if arguments.len() < 4 => {
            (&[Type::is_text, Type::is_text, is_whole], Type::Text)
        }
        Function::Overlay => (&[Type::is_text, Type::is_text, is_whole, is_whole], Type::Text),
        Function::Absolute => {
            (&[Type::is_number], arguments.first().map_or(Type::Null, |argument| argument.kind))
        }
        Function::Ceiling | Function::Floor => {
            let kind = match arguments.first().map(|argument| argument.kind) {
                Some(Type::Decimal { .. }) => Type::Decimal { scale: 0 },
                Some(kind) => kind,
                None => Type::Null,
            };
            (&[Type::is_number], kind)
        }
        Function::Extract(part) => return extract(part, arguments, at),
        _ => return Err(wrong(at, "this function cannot be called")),
    };
    if takes.len() != arguments.len() {
        let (wanted, given) = (takes.len(), arguments.len());
        return Err(wrong(at, format!("{given} arguments where {wanted} are expected")));
    }
    for (take, argument) in takes.iter().zip(arguments) {
        if !take(argument.kind) {
            let wanted = if take(Type::Text) {
                "text"
            } else if take(Type::Float) {
                "a number"
            } else {
                "an integer"
            };
            let given = argument.kind.named();
            return Err(wrong(argument.at, format!("{given} where {wanted} is expected; CAST it")));
        }
    }
    Ok(kind)
}

/// Checks EXTRACT: the type determines which fields there are.
fn extract(part: Part, arguments: &[Bound], at: Location) -> Result<Type> {
    let from = arguments.first().map_or(Type::Null, |argument| argument.kind);
    let is_there = match from {
        Type::Null | Type::Timestamp => true,
        Type::Date => part <= Part::Day,
        Type::Time => part > Part::Day,
        Type::Months => part <= Part::Month,
        Type::Seconds => part > Part::Month,
        _ => false,
    };
    if !is_there {
        let part = format!("{part:?}").to_ascii_uppercase();
        return Err(wrong(at, format!("{} has no {part}", from.named())));
    }
    Ok(if part == Part::Second { Type::Decimal { scale: 9 } } else { Type::Integer })
}

/// Returns the arguments of a function that has nothing besides them. Examines every field of the
/// library's node, so that no clause is silently ignored.
fn arguments(function: ast::Function, at: Location) -> Result<Vec<ast::Expr>> {
    let ast::Function {
        name: _,
        uses_odbc_syntax: _,
        parameters,
        args,
        filter,
        null_treatment,
        over,
        within_group,
    } = function;
    let without = |is_absent: bool, what: &str| {
        if is_absent { Ok(()) } else { Err(elsewhere(at, &format!("{what} of a function is"))) }
    };
    without(parameters == ast::FunctionArguments::None, "a second list of arguments")?;
    without(filter.is_none(), "FILTER")?;
    without(null_treatment.is_none(), "IGNORE NULLS or RESPECT NULLS")?;
    without(over.is_none(), "OVER")?;
    without(within_group.is_empty(), "WITHIN GROUP")?;
    let list = match args {
        ast::FunctionArguments::None => return Ok(Vec::new()),
        ast::FunctionArguments::Subquery(_) => return Err(elsewhere(at, "subqueries are")),
        ast::FunctionArguments::List(list) => list,
    };
    let ast::FunctionArgumentList { duplicate_treatment, args, clauses } = list;
    without(duplicate_treatment.is_none(), "DISTINCT or ALL")?;
    without(clauses.is_empty(), "a clause after the arguments")?;
    let argument = |argument| match argument {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Ok(expr),
        _ => Err(elsewhere(at, "an argument without a value is")),
    };
    args.into_iter().map(argument).collect()
}

fn unknown(name: &str) -> String {
    format!(
        "there is no function {}; there are COALESCE, NULLIF, UPPER, LOWER, CHAR_LENGTH, \
         OCTET_LENGTH, POSITION, SUBSTRING, TRIM, OVERLAY, EXTRACT, CAST, ABS, MOD, CEILING and \
         FLOOR",
        crate::matching::shortened(name)
    )
}
