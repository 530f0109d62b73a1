//! `gauge([area[, folder]])`: the machine's ceilings as rows, measured quickly when queried.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use quarrier::Machine;
use quarrier_gauge::{Area, Error as GaugeError, Reading};
use serde_json::json;

use super::plan::{Finds, FoundExec, Out};
use super::rows::{RowsOut, text, whole};
use super::{Host, arguments};
use crate::Error;
use crate::at_once::scan_at_once;

const USAGE: &str = "gauge('memory'), gauge('disk', '/folder/on/it') or gauge()";

/// The table function.
#[derive(Debug)]
pub(super) struct Gauge {
    machine: Machine,
}

impl Gauge {
    pub(super) fn new(host: &Host) -> Self {
        Gauge { machine: host.machine.clone() }
    }
}

impl TableFunctionImpl for Gauge {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let strings = arguments::strings(USAGE, args.exprs(), 0, 2)?;
        let areas = quarrier::Gauge::areas_named(strings.first());
        let areas = areas.map_err(|error| Error::text(format!("gauge(…): {error}")))?;
        let text = |name: &str| Field::new(name, DataType::Utf8View, false);
        let schema = Arc::new(Schema::new(vec![
            text("area"),
            text("measurement"),
            text("parameters"),
            Field::new("threads", DataType::Int64, true),
            Field::new("block_bytes", DataType::Int64, true),
            Field::new("access", DataType::Utf8View, true),
            Field::new("value", DataType::Float64, false),
            text("unit"),
            Field::new("stddev", DataType::Float64, false),
            Field::new("runs", DataType::Int64, false),
            Field::new("disturbed", DataType::Boolean, false),
            text("conditions"),
        ]));
        let path = strings.into_iter().nth(1).unwrap_or_else(|| ".".to_string());
        Ok(Arc::new(GaugeTable { machine: self.machine.clone(), areas, path, schema }))
    }
}

/// The table of one call.
#[derive(Debug, Clone)]
struct GaugeTable {
    machine: Machine,
    areas: Vec<Area>,
    path: String,
    schema: SchemaRef,
}

impl GaugeTable {
    fn plan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(FoundExec::new(Arc::new(self.clone()), projection, limit)?))
    }
}

impl TableProvider for GaugeTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    scan_at_once!();
}

impl Finds for GaugeTable {
    fn name(&self) -> &'static str {
        "GaugeExec"
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn label(&self) -> String {
        let names: Vec<_> = self.areas.iter().map(|area| area.name()).collect();
        format!("areas={}", names.join(","))
    }

    fn find(&self, out: &mut Out) -> Result<()> {
        let gauge = quarrier::Gauge::new().areas(self.areas.clone()).quick(true).folder(&self.path);
        let stop = Arc::clone(out.stop());
        let report = match gauge.run(&self.machine, &mut (), &stop) {
            // The reader needs no more rows.
            Err(quarrier::Error::Gauge(GaugeError::Stopped)) => return Ok(()),
            gauged => gauged.map_err(|error| Error::table("gauge(…)", error))?.report,
        };
        let mut rows = RowsOut::new(out);
        for reading in &report.readings {
            if rows.add(|place| cell(reading, place))?.is_break() {
                return Ok(());
            }
        }
        rows.flush().map(|_| ())
    }
}

fn cell(reading: &Reading, place: usize) -> ScalarValue {
    let parameters = &reading.parameters;
    match place {
        0 => text(Some(reading.area.name())),
        1 => text(Some(&reading.measurement)),
        2 => text(Some(&json!(parameters).to_string())),
        3 => whole(parameters.integer("threads")),
        4 => whole(parameters.integer("block_bytes")),
        5 => text(parameters.text("access")),
        6 => ScalarValue::from(reading.value),
        7 => text(Some(reading.unit.name())),
        8 => ScalarValue::from(reading.stddev),
        9 => whole(Some(u64::from(reading.runs))),
        10 => ScalarValue::from(reading.disturbed),
        _ => text(Some(&json!(reading.conditions).to_string())),
    }
}
