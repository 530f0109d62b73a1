//! The facade, as a program that uses it sees it.

mod doors;
