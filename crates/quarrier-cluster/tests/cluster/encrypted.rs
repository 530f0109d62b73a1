//! Clusters with certificates.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::lab::{Cluster, Draw, Lab, assert_same, bytes, finished, text};

/// An address of this machine that is not 127.0.0.1, where Ballista's own servers listen.
const HOST: &str = "127.0.0.2";

fn openssl(folder: &Path, arguments: &str) {
    let output = Command::new("openssl").args(arguments.split(' ')).current_dir(folder).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// The certificates of a new authority, in a folder.
fn certificates(lab: &Lab, name: &str) -> PathBuf {
    let folder = lab.path().join(name);
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("names"), "subjectAltName=DNS:quarrier-cluster").unwrap();
    for arguments in [
        "req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=lab -keyout ca.key -out ca.crt",
        "req -newkey rsa:2048 -nodes -subj /CN=quarrier-cluster -keyout tls.key -out tls.csr",
        "x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 9 -extfile names \
         -out tls.crt",
    ] {
        openssl(&folder, arguments);
    }
    folder
}

#[test]
fn a_search_is_encrypted_and_strangers_are_refused() {
    let lab = Lab::new();
    let (ours, others) = (certificates(&lab, "ours"), certificates(&lab, "others"));
    lab.file("source", &bytes(&mut Draw::new(23), 200_000));
    let cluster = Cluster::start_with(2, HOST, Some(&ours));
    let arguments = ["search", "-e", "2026", "-E", "[a-z]+@", "--format", "json", "source"];
    let plain = lab.run(&arguments);
    let arguments = [&arguments[..], &["--cluster", &cluster.at, "--unit-size", "20000"]].concat();
    let search = |tls: Option<&Path>| {
        let mut command = lab.command(&arguments);
        if let Some(tls) = tls {
            command.env("QUARRIER_CLUSTER_TLS", tls);
        }
        finished(command, Duration::from_secs(60))
    };
    assert_same(&plain, &search(Some(&ours)), &cluster.logs());
    for stranger in [None, Some(others.as_path())] {
        let output = search(stranger);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(output.stdout.is_empty() && said.contains("does not answer"), "{said}");
    }
    assert!(cluster.status().contains("\"units_ended\":10"), "{}", cluster.status());
}
