use quarrier_core::pipeline::{Access, Pipeline};
use quarrier_core::source::FileSource;
use quarrier_search::{Pattern, Sample, Searcher};
use std::ops::ControlFlow;
use std::time::Instant;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let source = FileSource::open(std::path::Path::new(&args[1])).unwrap();
    let workers: usize = args[2].parse().unwrap();
    for regex in &args[3..] {
        let searcher = Searcher::builder()
            .sample(Sample::default())
            .build(vec![Pattern::regex(regex).unwrap()])
            .unwrap();
        let mut times = Vec::new();
        let mut count = 0;
        let mut told = None;
        for _ in 0..5 {
            count = 0;
            let mut sink = searcher.sink(|_, f| {
                count += f.len();
                ControlFlow::Continue(())
            });
            let t = Instant::now();
            Pipeline::new(&source)
                .access(Access::Read)
                .workers(workers)
                .run(&searcher, &mut sink)
                .unwrap();
            times.push(t.elapsed().as_secs_f64());
            told = sink.too_long().map(|e| e.to_string());
            drop(sink);
        }
        times.sort_by(f64::total_cmp);
        println!("{regex:24} min {:.3} median {:.3} s  found {count} {told:?}", times[0], times[2]);
    }
}
