//! How the program is linked: to one place in memory.
//!
//! It has 300,000 pointers to functions, in tables of what the engine can do. A program that may be put
//! anywhere has to have each of them moved when it starts, which takes longer than to start otherwise: 20 ms
//! instead of 13 for `SELECT 1`. The price: its own code lies where anybody knows; libraries, heap and
//! stacks lie anywhere as before.

#![allow(clippy::print_stdout, reason = "this is how a build script speaks")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
