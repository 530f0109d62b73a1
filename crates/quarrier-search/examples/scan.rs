//! scratch
use std::ops::ControlFlow;
use quarrier_core::pipeline::{Access, Pipeline, Chunk, Emitter, Kernel, Need};
use quarrier_search::*;
struct Sum; impl Kernel for Sum { type Output=u64; fn need(&self)->Need{Need::default()} fn work(&self,c:&Chunk<'_>,e:&mut Emitter<'_,u64>){ *e.output()+=c.owned().iter().map(|&b|b as u64).sum::<u64>(); } }
fn main(){
  let a:Vec<String>=std::env::args().collect();
  let t0=std::time::Instant::now();
  let src=quarrier_core::source::open(a[1].as_ref()).unwrap();
  let acc=match a[3].as_str(){"w"=>Access::Window,"r"=>Access::Read,"q"=>Access::Queue,_=>Access::Uring};
  if a[2]=="sum" { let mut t=0; let r=Pipeline::new(&*src).access(acc).workers(a[4].parse().unwrap()).run(&Sum,&mut |_:&Chunk<'_>,o:&mut u64| t+=std::mem::take(o)).unwrap(); println!("sum {t} {:.2} GB/s", r.bytes as f64/r.elapsed.as_secs_f64()/1e9); return; }
  let pats=parse_file(&std::fs::read(&a[2]).unwrap()).unwrap();
  let n=pats.len(); let t1=std::time::Instant::now();
  let sample=Sample::take(&*src); let t2=std::time::Instant::now();
  let engine=a.get(5).map_or("auto",|s|s.as_str()).parse().unwrap();
  let s=Searcher::builder().sample(sample).engine(engine).build(pats).unwrap();
  let t3=std::time::Instant::now();
  let mut c=0u64;
  let mut sink=s.sink(|_,f|{c+=f.len() as u64; ControlFlow::Continue(())});
  let r=Pipeline::new(&*src).access(acc).workers(a[4].parse().unwrap()).run(&s,&mut sink).unwrap();
  drop(sink);
  println!("n {n} found {c} {:.2} GB/s whole {:.2} sample {:?} build {:?} {}", r.bytes as f64/r.elapsed.as_secs_f64()/1e9, r.bytes as f64/t0.elapsed().as_secs_f64()/1e9, t2-t1, t3-t2, s.choices()[0]);
}
