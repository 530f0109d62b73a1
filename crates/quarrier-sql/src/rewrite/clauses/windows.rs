//! `WINDOW w AS (…)`: replaces `OVER w` and `OVER (w …)` by the definition.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, NamedWindowDefinition, NamedWindowExpr, OrderBy, Query, Select, SelectItem,
    VisitorMut, WindowSpec, WindowType,
};

use super::super::walk::{Flow, Stop, ended, walk};
use super::flow;
use crate::{Error, Result};

/// Expands named windows in a SELECT, but not in queries within it.
pub(super) fn written_out(select: &mut Select) -> Result<()> {
    let defined = std::mem::take(&mut select.named_window);
    let mut names = Names { defined: &defined, depth: 0 };
    let outputs = select.projection.iter_mut().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    let conditions = [&mut select.having, &mut select.qualify, &mut select.selection];
    for expr in outputs.chain(conditions.into_iter().flatten()) {
        ended(walk(expr, &mut names))?;
    }
    check(&defined)
}

/// Expands named windows in the ORDER BY of a SELECT.
pub(super) fn written_out_in(order: &mut OrderBy, defined: &[NamedWindowDefinition]) -> Result<()> {
    ended(walk(order, &mut Names { defined, depth: 0 }))
}

/// Checks all definitions, including those that no function uses.
fn check(defined: &[NamedWindowDefinition]) -> Result<()> {
    for (place, NamedWindowDefinition(name, _)) in defined.iter().enumerate() {
        if defined[..place].iter().any(|other| is_same(&other.0.value, &name.value)) {
            return Err(Error::text(format!("the window {name} is defined twice")));
        }
        spec_of(defined, &name.value, 0)?;
    }
    Ok(())
}

struct Names<'d> {
    defined: &'d [NamedWindowDefinition],
    depth: usize,
}

impl VisitorMut for Names<'_> {
    type Break = Stop;

    fn pre_visit_query(&mut self, _: &mut Query) -> Flow {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> Flow {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        match expr {
            Expr::Function(Function { over: Some(over), .. }) if self.depth == 0 => {
                flow(self.over(over))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Names<'_> {
    fn over(&self, over: &mut WindowType) -> Result<()> {
        let spec = match over {
            WindowType::NamedWindow(name) => spec_of(self.defined, &name.value, 0)?,
            WindowType::WindowSpec(spec) => whole(self.defined, spec, 0)?,
        };
        *over = WindowType::WindowSpec(spec);
        Ok(())
    }
}

/// The definition of a named window. More steps than there are definitions mean a cycle.
fn spec_of(defined: &[NamedWindowDefinition], name: &str, steps: usize) -> Result<WindowSpec> {
    let found = defined.iter().find(|window| is_same(&window.0.value, name));
    let Some(NamedWindowDefinition(_, definition)) = found else {
        return Err(Error::text(format!(
            "there is no window {name}; define it in a WINDOW clause"
        )));
    };
    if steps > defined.len() {
        return Err(Error::text(format!("the window {name} is defined by itself")));
    }
    match definition {
        NamedWindowExpr::NamedWindow(other) => spec_of(defined, &other.value, steps + 1),
        NamedWindowExpr::WindowSpec(spec) => whole(defined, spec, steps + 1),
    }
}

/// A window specification, completed from the window that it names.
fn whole(defined: &[NamedWindowDefinition], spec: &WindowSpec, steps: usize) -> Result<WindowSpec> {
    let WindowSpec { window_name, partition_by, order_by, window_frame } = spec.clone();
    let Some(name) = window_name else { return Ok(spec.clone()) };
    let base = spec_of(defined, &name.value, steps)?;
    let is_free = partition_by.is_empty()
        && (order_by.is_empty() || base.order_by.is_empty())
        && base.window_frame.is_none();
    if !is_free {
        let reason = format!(
            "OVER ({name} …) may add an ORDER BY or frame that {name} lacks, but no PARTITION BY"
        );
        return Err(Error::text(reason));
    }
    let order_by = if order_by.is_empty() { base.order_by } else { order_by };
    Ok(WindowSpec { window_name: None, partition_by: base.partition_by, order_by, window_frame })
}

fn is_same(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
}
