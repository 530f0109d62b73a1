# Every target, or the script that it runs, prints what it does first. `make help` lists the targets.

.DEFAULT_GOAL := help
.PHONY: help all demo test docs bench install install-lib dist dist-arm cluster test-cluster test-free-threaded

PREFIX ?= /usr/local

# A free-threaded Python for the tests of its wheel.
FREE_THREADED_PYTHON ?= python3.14t

# A fresh rustup and Debian's system tools are often not on the path of a plain user.
export PATH := $(PATH):$(HOME)/.cargo/bin:/usr/sbin:/sbin

help: ## This list
	@sed -n 's/^\([a-z-]*\): ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 13

all: ## Build both optimised binaries in target/release
	@scripts/setup.sh rust
	cargo build --release --locked -p quarrier-cli -p quarrier-sql

cluster: ## Build quarrier-cluster in target/release, the program of 'quarrier cluster'
	@scripts/setup.sh rust
	cargo build --profile cluster --locked -p quarrier-cluster
	install -D -t "$${CARGO_TARGET_DIR:-target}/release" "$${CARGO_TARGET_DIR:-target}/cluster/quarrier-cluster"

demo: ## Set up, build, make a disk image from files of this machine, search and carve it
	@scripts/setup.sh rust image
	@demo/run.sh

test: ## Set up and run all tests
	@scripts/setup.sh rust image gpu python serve c
	cargo test --workspace --locked
	cargo test --locked --manifest-path interleavings/Cargo.toml --target-dir "$${CARGO_TARGET_DIR:-target}"
	scripts/python.sh test
	scripts/docs.sh snippets
	cargo xtask tidy
	cargo run --quiet --locked --manifest-path fuzz/Cargo.toml --target-dir "$${CARGO_TARGET_DIR:-target}" -- --seconds 35

test-cluster: ## Set up and run the tests of quarrier-cluster
	@scripts/setup.sh rust
	cargo test --workspace --locked --test cluster

test-free-threaded: ## Set up and test the Python package with FREE_THREADED_PYTHON (python3.14t)
	@scripts/setup.sh rust python
	scripts/python.sh test-free-threaded "$(FREE_THREADED_PYTHON)"

test-arm: ## Set up and run the tests of the engines for 64-bit Arm, in an emulator
	@scripts/setup.sh rust arm
	scripts/arm.sh test

docs: ## Build the documentation in target/docs, check its links and run its snippets
	@scripts/setup.sh rust image serve docs
	scripts/docs.sh site
	cargo build --workspace --locked --bins
	scripts/docs.sh snippets

bench: ## Measure against the ceilings of this machine
	@scripts/setup.sh rust
	benchmarks/run

install: all ## Install programs, man pages and completions under PREFIX (/usr/local)
	scripts/install.sh "$${CARGO_TARGET_DIR:-target}/release" "$(PREFIX)"

install-lib: ## Build libquarrier and install it with its headers for C and C++ under PREFIX
	@scripts/setup.sh rust
	cargo build --release --locked -p quarrier-c
	scripts/install-lib.sh "$${CARGO_TARGET_DIR:-target}/release" "$(PREFIX)"

dist: ## Build and test all packages in target/dist: wheels, archive, .deb
	@scripts/setup.sh rust dist
	scripts/dist.sh

dist-arm: ## The same packages for 64-bit Arm, cross-compiled
	@scripts/setup.sh rust arm dist
	TARGET=aarch64-unknown-linux-gnu scripts/dist.sh
