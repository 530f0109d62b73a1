//! NUMA nodes: parts of the machine with memory and CPUs that are near each other.

use std::fs;
use std::path::Path;

/// A node with memory that this process may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The number of the node.
    pub number: u32,
    /// The CPUs of the node that this process may use; none for a node that only has memory.
    pub cpus: Vec<usize>,
}

/// The nodes whose memory this process may use, in order of their numbers; none if the system does not
/// report nodes.
pub fn nodes(allowed_cpus: &[usize]) -> Vec<Node> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"));
    nodes_in(Path::new("/sys/devices/system/node"), allowed, allowed_cpus)
}

fn nodes_in(folder: &Path, allowed_nodes: Option<&str>, allowed_cpus: &[usize]) -> Vec<Node> {
    let list = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let with_memory = list("has_memory").or_else(|| list("online")).unwrap_or_default();
    let allowed = allowed_nodes.map(numbers_of);
    numbers_of(&with_memory)
        .into_iter()
        .filter(|number| allowed.as_ref().is_none_or(|allowed| allowed.contains(number)))
        .map(|number| {
            let cpus = numbers_of(&list(&format!("node{number}/cpulist")).unwrap_or_default());
            let is_allowed = |cpu: &usize| allowed_cpus.contains(cpu);
            Node { number: number as u32, cpus: cpus.into_iter().filter(is_allowed).collect() }
        })
        .collect()
}

/// The largest number that a list may have: more nodes or CPUs than any kernel supports.
const NUMBER_MOST: usize = 1 << 16;

/// The numbers in a list such as `0-3,8`.
fn numbers_of(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (last <= NUMBER_MOST).then_some(first..=last)
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u32, cpus: &[usize]) -> Node {
        Node { number, cpus: cpus.to_vec() }
    }

    #[test]
    fn nodes_have_the_memory_and_the_cpus_that_this_process_may_use() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("online", "0-3\n");
        write("has_memory", "0-1,3\n");
        write("node0/cpulist", "0-3,8-11\n");
        write("node1/cpulist", "4-7\n");
        write("node3/cpulist", "\n");
        let of = |nodes, cpus: &[usize]| nodes_in(folder.path(), nodes, cpus);
        let all: Vec<usize> = (0..12).collect();
        assert_eq!(
            of(None, &all),
            [node(0, &[0, 1, 2, 3, 8, 9, 10, 11]), node(1, &[4, 5, 6, 7]), node(3, &[])]
        );
        assert_eq!(of(Some("\t0,3\n"), &[2, 8, 5]), [node(0, &[2, 8]), node(3, &[])]);
        assert!(nodes_in(Path::new("/nonexistent"), None, &all).is_empty());
    }

    #[test]
    fn lists_are_parsed_and_nonsense_is_ignored() {
        assert_eq!(numbers_of("0-2,7\n"), [0, 1, 2, 7]);
        assert_eq!(numbers_of("3-1,x,-,0-99999999999"), Vec::<usize>::new());
    }
}
