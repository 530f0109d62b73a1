//! The cache of compiled kernels: finds stored ones, and compiles damaged ones again.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;

use quarrier_gpu::kernels::{FILTER, filter_constants};
use quarrier_gpu::{Cache, Error, compile_to_ptx};

/// Returns a folder that does not exist yet.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("quarrier-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn files(folder: &PathBuf) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn cached_kernels_are_not_compiled_again() {
    let folder = folder("kept");
    let cache = Cache::at(folder.join("kernels"));
    let made = Cell::new(0);
    let ask = |key: &str, text: &str| {
        let make = || {
            made.set(made.get() + 1);
            Ok(text.to_string())
        };
        cache.get_or(key, make).unwrap()
    };
    assert_eq!(ask("one", "text of one"), "text of one");
    assert_eq!(ask("one", "something else"), "text of one");
    assert_eq!(ask("two", ""), "");
    assert_eq!(ask("two", "something else"), "");
    assert_eq!(made.get(), 2);
    assert_eq!(files(&folder.join("kernels")).len(), 2);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_that_is_torn_or_changed_is_made_again() {
    let folder = folder("torn");
    let cache = Cache::at(&folder);
    let text = "first line\nsecond line\n";
    let kept = || cache.get_or("key", || Ok("made again".to_string())).unwrap();
    for damage in 0..60 {
        cache.get_or("key", || Ok(text.to_string())).unwrap();
        assert_eq!(kept(), text);
        let path = &files(&folder)[0];
        let mut content = fs::read(path).unwrap();
        match damage {
            0 => content.clear(),
            1 => content.push(b'x'),
            2 => content = b"quarrier-kernel 1 \xFF\n".to_vec(),
            _ if damage % 2 == 0 => content.truncate(content.len() * damage / 60),
            _ => {
                let at = content.len() * damage / 60;
                content[at] ^= 1;
            }
        }
        fs::write(path, content).unwrap();
        assert_eq!(kept(), "made again", "damage {damage}");
        fs::remove_file(path).unwrap();
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_of_another_key_is_ignored() {
    let folder = folder("other");
    let cache = Cache::at(&folder);
    let get = |key: &str, text: &str| cache.get_or(key, || Ok(text.to_string())).unwrap();
    get("one", "text of one");
    let one = files(&folder).remove(0);
    get("two", "text of two");
    let two = files(&folder).into_iter().find(|path| *path != one).unwrap();
    fs::copy(&one, &two).unwrap();
    assert_eq!(get("two", "made again"), "made again");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn without_a_writable_cache_kernels_are_compiled_each_time() {
    let folder = folder("file");
    fs::write(&folder, "no folder").unwrap();
    let cache = Cache::at(folder.join("kernels"));
    for text in ["first", "second"] {
        assert_eq!(cache.get_or("key", || Ok(text.to_string())).unwrap(), text);
    }
    let wrong = cache.get_or("key", || Err(Error::NoDevice("no".to_string())));
    assert_eq!(wrong, Err(Error::NoDevice("no".to_string())));
    fs::remove_file(folder).unwrap();
}

#[test]
fn nvidias_compiler_is_asked_once_for_each_generation() {
    let folder = folder("ptx");
    let cache = Cache::at(&folder);
    let constants = filter_constants(32);
    let compile = |architecture| compile_to_ptx(&FILTER, &constants, architecture, Some(&cache));
    let first = match compile(80) {
        Ok(first) => first,
        Err(error) => {
            assert!(matches!(error, Error::NoDevice(_)), "{error}");
            return;
        }
    };
    assert_eq!(compile(80).as_ref(), Ok(&first));
    assert_ne!(compile(90).unwrap(), first);
    assert_eq!(files(&folder).len(), 2);
    fs::remove_dir_all(folder).unwrap();
}
