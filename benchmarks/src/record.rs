//! Records: results, with the machine and the versions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::contender::{Programs, THREADS};
use crate::image::write;

/// Makes a record without figures: time, machine and versions. Call it before the first round,
/// because somebody may commit or load the machine while it measures.
pub(crate) fn begin(scale: &str, programs: &Programs, source: Option<&str>) -> Result<Value> {
    let date = output_of("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]).context("`date` failed")?;
    Ok(json!({
        "date": date,
        "scale": scale,
        "threads": THREADS,
        "machine": machine(),
        "versions": versions(programs, source),
    }))
}

/// Appends `record` to the file of its day and CPU, and returns its path.
pub(crate) fn append(folder: &Path, record: Value) -> Result<PathBuf> {
    let slug = slug(record["machine"]["cpu"].as_str().unwrap_or("unknown"));
    let date = record["date"].as_str().unwrap_or_default();
    let day = date.split('T').next().unwrap_or_default();
    let path = folder.join(format!("{day}-{slug}.json"));
    let mut records: Vec<Value> = match fs::read(&path) {
        Ok(stored) => serde_json::from_slice(&stored)
            .with_context(|| format!("{} is not a list of records", path.display()))?,
        Err(_) => Vec::new(),
    };
    records.push(record);
    fs::create_dir_all(folder)?;
    write(&path, (serde_json::to_string_pretty(&records)? + "\n").as_bytes())?;
    Ok(path)
}

fn machine() -> Value {
    let cpu_info = read("/proc/cpuinfo");
    let of_cpu = |key: &str| field(&cpu_info, key);
    let memory_kib = field(&read("/proc/meminfo"), "MemTotal")
        .and_then(|value| value.trim_end_matches(" kB").parse::<u64>().ok());
    let flags = of_cpu("flags").unwrap_or_default();
    let simd: Vec<_> = flags
        .split(' ')
        .filter(|flag| ["avx2", "avx512bw", "avx512_vbmi", "avx512vbmi"].contains(flag))
        .collect();
    json!({
        "cpu": of_cpu("model name"),
        "cpu_family_model_stepping":
            [of_cpu("cpu family"), of_cpu("model"), of_cpu("stepping")],
        "cpus": std::thread::available_parallelism().map_or(1, usize::from),
        "simd": simd,
        "is_virtual": flags.split(' ').any(|flag| flag == "hypervisor"),
        "memory_bytes": memory_kib.map(|kib| kib * 1024),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "huge_pages": read("/sys/kernel/mm/transparent_hugepage/enabled").trim(),
        "load_average": read("/proc/loadavg").trim(),
    })
}

/// `source`: the revision of which the binaries were built. Only their builder knows it, because
/// the checkout may have moved on since.
fn versions(programs: &Programs, source: Option<&str>) -> Value {
    let of = |program: &Path| output_of(program.to_str()?, &["--version"]);
    let sha256 = programs.quarrier.to_str().and_then(|program| output_of("sha256sum", &[program]));
    let sha256 = sha256.as_deref().and_then(|line| line.split(' ').next());
    json!({
        "quarrier": of(&programs.quarrier),
        "quarrier_sha256": sha256,
        "built_from": source,
        "rustc": output_of("rustc", &["--version"]),
        "vectorscan": programs.vectorscan.as_deref().and_then(of),
        "ripgrep": programs.ripgrep.as_deref().and_then(of),
        "aho-corasick": locked("aho-corasick"),
        "memchr": locked("memchr"),
    })
}

/// Returns the version of a crate in this program.
fn locked(name: &str) -> Option<&'static str> {
    let (_, after) = include_str!("../Cargo.lock").split_once(&format!("name = \"{name}\"\n"))?;
    after.strip_prefix("version = \"")?.split('"').next()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns the first `key : value` of a file in the format of /proc.
fn field(text: &str, key: &str) -> Option<String> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(found, _)| found.trim() == key).map(|(_, value)| value.trim().to_string())
}

/// Returns the first line that a program prints, if it exists and succeeds.
fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.lines().next().unwrap_or_default().to_string())
}

fn slug(name: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric();
    let words: Vec<_> = name.split(|c| !is_kept(c)).filter(|word| !word.is_empty()).collect();
    words.join("-").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_becomes_a_file_name() {
        assert_eq!(slug("Intel(R) Xeon(R) CPU @ 2.20GHz"), "intel-r-xeon-r-cpu-2-20ghz");
    }

    #[test]
    fn versions_come_from_the_lock_file() {
        assert!(locked("aho-corasick").is_some_and(|version| version.starts_with("1.")));
    }
}
