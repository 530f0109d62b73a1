//! Reads one source as often as the types of its columns require: see [`again`](super::again).

use std::collections::BTreeMap;
use std::sync::Arc;

use quarrier_core::pipeline::Run;
use quarrier_filter::sql::Lists;
use quarrier_filter::{Expr, Sieve};
use quarrier_messages::build::KindFinder;
use quarrier_messages::{Field, Schema, Value};

use super::again::{Origin, Printed, RereadReason};
use super::conditions::{Conditions, Rebinding};
use super::drain::{Drain, Ended, Tally};
use super::hidden::HiddenNames;
use super::kind;
use super::pass::Bytes;
use super::running::Session;
use super::sample::Sample;
use super::show::OutputKind;
use super::worker::{FilterKernel, Setup};
use crate::Error;

impl Session<'_, '_> {
    /// Filters one source; `is_last` says that no other follows.
    pub(super) fn passes(
        &mut self,
        name: &str,
        mut origin: Origin<'_>,
        is_last: bool,
    ) -> Result<Run, Ended> {
        let mut sample = origin.sample(self.subject(name), self.stop);
        let tally = self.tally.clone();
        let listed = self.list.as_mut().map_or(Ok(0), |list| list.length());
        let listed = listed.map_err(Ended::Failed)?;
        let run = match self.setup(name, &sample, None, is_last) {
            Ok(setup) => origin.lend(&mut sample, |bytes| {
                self.filter_one(name, &setup, bytes, Printed::default())
            }),
            Err(ended) => Err(ended),
        };
        let Err(Ended::Again(RereadReason { said, printed })) = run else { return run };
        let rewound = origin.rewound(name, &said, self.stop);
        let mut origin = rewound.map_err(Ended::Failed)?;
        let setup = self.setup_for_kinds(name, &sample)?;
        let kinds = origin.lend(&mut sample, |bytes| self.kinds(name, &setup, bytes))?;
        self.tally = tally;
        if let Some(list) = &mut self.list {
            list.back_to(listed).map_err(Ended::Failed)?;
        }
        let setup = self.setup(name, &sample, Some(&kinds), is_last)?;
        let run = origin.lend(&mut sample, |bytes| self.filter_one(name, &setup, bytes, printed));
        run.map_err(|ended| match ended {
            Ended::Again(again) => {
                let reason = format!("{}; the source changed while it was read", again.said);
                Ended::Failed(Error::Kinds { name: name.to_string(), reason })
            }
            ended => ended,
        })
    }

    /// The setup of a run that infers the types of all fields.
    fn setup_for_kinds(&self, name: &str, sample: &Sample) -> Result<Setup, Ended> {
        let format = kind::format_of(name, &sample.bytes, self.requested_format());
        let format = format.map_err(Ended::Failed)?;
        let (_, opening, first) =
            sample.opened(&format, &self.filter.limits).map_err(Ended::Failed)?;
        let every = Expr::Literal(Value::Boolean(true));
        let sieve = Sieve::new(&Schema::default(), &[every]);
        let none = (Schema::default(), Lists::default());
        Ok(Setup {
            format,
            limits: self.filter.limits.clone(),
            opening,
            first,
            rebinding: Rebinding::new(Arc::new(Conditions::none()), none, &sieve),
            sieve,
            output_kind: OutputKind::Kinds,
            hidden: HiddenNames::default(),
            lists_rejects: false,
        })
    }

    /// The fields of all messages, with the column types of a table.
    fn kinds(&mut self, name: &str, setup: &Setup, bytes: Bytes<'_>) -> Result<Schema, Ended> {
        let mut tally = Tally { counts: vec![0], messages: 0, rejected: 0, limit: u64::MAX };
        let mut list = None;
        self.watch.begin(name, bytes.end());
        let to = (&mut tally, &mut list);
        let mut drain = Drain::new(name, setup, self.watch, to, Printed::default());
        let kernel = FilterKernel::new(setup);
        let run = bytes.run(name, self.filter.workers, self.stop, &kernel, &mut drain);
        let run = run.map_err(|error| Ended::Failed(error.into()))?;
        if run.stopped {
            drain.clear();
            let stopped = Error::Stopped { name: name.to_string(), offset: drain.offset() };
            return Err(drain.ended.take().unwrap_or(Ended::Failed(stopped)));
        }
        drain.finish();
        let mut workers = kernel.into_workers();
        workers.push(drain.into_worker());
        let mut all: BTreeMap<&str, KindFinder> = BTreeMap::new();
        for (name, kinds) in workers.iter().flat_map(|worker| worker.kinds()) {
            all.entry(name).or_default().join(kinds);
        }
        let field =
            |(name, kinds): (&str, KindFinder)| Field { name: name.into(), kind: kinds.kind() };
        Ok(Schema { fields: all.into_iter().map(field).collect() })
    }
}
