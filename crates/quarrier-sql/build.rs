//! Links the program to a fixed address.
//!
//! It has 300,000 function pointers, in tables of DataFusion's features. The loader would have to
//! relocate each of them in a position-independent program, which takes longer than the rest of the
//! start: 20 ms instead of 13 for `SELECT 1`. The price is that the address of its own code is
//! predictable; libraries, heap and stacks are still randomised.

#![allow(clippy::print_stdout, reason = "build scripts print their directives")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
