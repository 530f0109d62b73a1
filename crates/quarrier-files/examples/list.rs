//! Lists the files of an image: `list IMAGE`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

use quarrier_core::source::open;

fn main() {
    let name = std::env::args_os().nth(1).unwrap();
    let source = open(name.as_ref()).unwrap();
    let found = quarrier_files::find(&*source).unwrap();
    for system in &found.systems {
        println!("# {system:?}");
        let damages = system
            .list(&*source, quarrier_files::Reach::FreeClusters, &false.into(), &mut |entry| {
                println!(
                    "{} {} {} {} {} {:?} {:?}",
                    entry.inode,
                    entry.kind.name(),
                    entry.state.name(),
                    entry.size,
                    entry.path,
                    entry.extents(),
                    entry.content.lost
                );
                Ok(())
            })
            .unwrap();
        println!("{damages:?}");
    }
}
