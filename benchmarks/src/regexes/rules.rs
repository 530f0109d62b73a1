//! Realistic sets of regexes: secrets, indicators of compromise, lines of logs.
//!
//! Their structure is that of published rules (a vendor's name, then a token of a class of bytes);
//! the text is our own. The first 50 are the most diverse; longer sets add families of one
//! structure with names drawn from a seed.

use crate::random::{Random, vocabulary};

/// The sizes of the sets: each is a prefix of the next.
pub(crate) const SETS: [usize; 3] = [50, 200, 1000];

/// Regexes without a literal, each searched alone.
pub(crate) const ALONE: [&str; 3] = [
    r"\b[0-9a-f]{32}\b",
    r"\b[A-Z][a-z]{2,15}[A-Z][a-z]{2,15}\b",
    r"\b[A-Z]{2}\d{2}[0-9A-Z]{11,30}\b",
];

const VARIOUS: [&str; 50] = [
    // Secrets.
    r"\b(?:AKQA|ASQA|AGQA|AROQ|AIDQ)[A-Z2-7]{16}\b",
    r"\bghz_[0-9A-Za-z]{36}\b",
    r"\bgitz-[0-9A-Za-z_-]{20}\b",
    r"\bxoxq-[0-9]{10,13}-[0-9]{10,13}-[0-9A-Za-z]{24,32}\b",
    r"\bsq_(?:live|test)_[0-9A-Za-z]{24,99}\b",
    r"\bSG\.[\w-]{20,24}\.[\w-]{39,50}\b",
    r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----[\s\S]{32,2000}?-----END",
    r"\bey[A-Za-z0-9_-]{17,400}\.ey[A-Za-z0-9/_-]{17,400}\.[A-Za-z0-9/_-]{10,400}",
    r"(?i)[\w.-]{0,40}?(?:access|auth|api|credential|creds|key|passwd|password|secret|token)[\w .-]{0,20}['\x22]?[ \t]{0,3}(?:=|:=|=>|:)[ \t]{0,3}['\x22]([0-9a-z_.=-]{16,100})['\x22]",
    r"(?i)\bbearer [a-z0-9._~+/-]{20,200}=*",
    r"(?i)authorization: basic [a-z0-9+/]{8,200}={0,2}",
    r"[a-z][a-z0-9+.-]{1,20}://[^\s/@:]{3,40}:[^\s/@:]{3,40}@[^\s/]{1,100}",
    r"https://hooks\.slaq\.example/services/T\w{8,10}/B\w{8,12}/\w{24}",
    r"(?i)(?:mysql|postgres|mongodb|redis)(?:\+srv)?://[^\s'\x22]{8,200}",
    r"\bAIzb[0-9A-Za-z_-]{35}\b",
    // Indicators.
    r"\b(?:\d{1,3}\.){3}\d{1,3}\b",
    r"\b(?:\d{1,3}\.){3}\d{1,3}:\d{2,5}\b",
    r"\b[0-9a-f]{32}\b",
    r"\b[0-9a-f]{40}\b",
    r"\b[0-9A-Fa-f]{64}\b",
    r"\b[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,63}\.[A-Za-z]{2,10}\b",
    r"\b[a-z2-7]{56}\.onion\b",
    r"\b(?:bc1|[13])[a-km-zA-HJ-NP-Z1-9]{25,39}\b",
    r"\b0x[0-9a-fA-F]{40}\b",
    r"\b(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}\b",
    r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
    r"\bCVE-\d{4}-\d{4,7}\b",
    r"(?i)\b[a-z]:\\(?:[^\\/:*?\x22<>|\r\n]{1,60}\\){1,6}[^\\/:*?\x22<>|\r\n]{1,60}\.(?:exe|dll|scr|bat|ps1)\b",
    r"(?i)\b(?:hklm|hkcu|hkey_local_machine)\\software\\[\w\\ .-]{4,120}",
    r"(?i)powershell(?:\.exe)?\s{1,4}(?:-\w{1,20}\s{1,4}){1,6}-e(?:nc|ncodedcommand)?\s{1,4}[a-z0-9+/=]{20,400}",
    r"(?i)\bhttps?://[^\s/$.?#\x22'<>]{1,80}\.(?:top|xyz|ru|cn|tk)(?:/[^\s\x22'<>]{0,200})?",
    r"(?i)cmd(?:\.exe)?\s/c\s[^\r\n]{5,200}",
    r"\b\d{4}[ -]\d{4}[ -]\d{4}[ -]\d{4}\b",
    r"\b\d{3}-\d{2}-\d{4}\b",
    r"\b[A-Z]{2}\d{2}(?: ?[0-9A-Z]{4}){3,7}\b",
    // Logs.
    r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})",
    r"\b\d{2}/(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)/\d{4}:\d{2}:\d{2}:\d{2} [+-]\d{4}",
    r"(?m)^(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d{2}:\d{2}:\d{2} [\w.-]{1,64} [\w/-]{1,40}\[\d{1,7}\]:",
    r"Failed password for (?:invalid user )?\S{1,32} from (?:\d{1,3}\.){3}\d{1,3} port \d{1,5}",
    r"\x22 (?:4|5)\d\d \d{1,10}",
    r"(?i)\b(?:error|fatal|panic)\b[^\n]{0,80}?\b(?:timeout|refused|denied|unreachable)\b",
    r"\b(?:[a-z][a-z0-9]{1,20}\.){2,6}[A-Z]\w{1,40}(?:Exception|Error)\b",
    r"File \x22[^\x22\n]{1,200}\x22, line \d{1,6}",
    r"(?i)segfault at [0-9a-f]{4,16} ip [0-9a-f]{4,16}",
    r"\bpid[ =:]\d{1,7}\b",
    r"(?i)union\s{1,4}(?:all\s{1,4})?select\s[^\r\n]{1,100}",
    r"(?:\.\./){3,12}[\w./-]{1,60}",
    r"(?i)<script[^>]{0,80}>[^<]{1,200}(?:document\.cookie|eval\()",
    r"\$\{jndi:(?:ldap|rmi|dns)s?://[^\s}]{1,120}\}",
    r"(?i)user-agent: [^\r\n]{0,60}(?:sqlmap|nikto|masscan|zgrab)[^\r\n]{0,60}",
];

/// Returns the first `count` regexes, one per line of a pattern file.
pub(crate) fn rules(count: usize) -> Vec<String> {
    let mut random = Random::new(33);
    let names: Vec<String> =
        vocabulary(&mut random, 4000).into_iter().filter(|name| name.len() >= 6).collect();
    let mut rules: Vec<String> = VARIOUS.iter().map(ToString::to_string).collect();
    let mut names = names.iter();
    while rules.len() < count {
        let Some(name) = names.next() else { break };
        // Up to 200, a scanner of secrets; beyond that, half of them are indicators and log lines.
        let families = if rules.len() < 200 { 4 } else { 12 };
        rules.push(drawn(&mut random, name, rules.len() % families));
    }
    rules.truncate(count);
    rules
}

/// Makes a rule of a family, for `name`.
fn drawn(random: &mut Random, name: &str, family: usize) -> String {
    const CLASSES: [&str; 5] = ["[a-z0-9]", "[a-f0-9]", "[a-z0-9_-]", "[A-Z0-9]", "[a-zA-Z0-9=+/]"];
    const LENGTHS: [usize; 6] = [20, 24, 32, 40, 48, 64];
    let (class, length) = (*random.pick(&CLASSES), *random.pick(&LENGTHS));
    let number = 1 + random.below(9);
    match family {
        0 | 1 => format!(
            r"(?i)[\w.-]{{0,40}}?(?:{name})(?:[ \t\w.-]{{0,20}})[\s'\x22]{{0,3}}(?:=|>|:=|=>|,|:)[\s'\x22=]{{0,5}}({class}{{{length}}})(?:[\s'\x22;]|\z)"
        ),
        2 => format!(r"\b{}_{class}{{{length}}}\b", &name[..4]),
        3 => format!(
            r"(?i)\b{name}[_-]?(?:api|app|access)?[_-]?(?:key|token|secret)\b[^\r\n]{{0,20}}{class}{{{length}}}"
        ),
        4 => format!(r"(?i)\b(?:[a-z0-9-]{{1,30}}\.)?{name}\.(?:com|net|org|info)\b"),
        5 => format!(r"(?i)\\{name}\d{{0,3}}\.(?:exe|dll|sys)\b"),
        6 => format!(r"\b{name}\[\d{{1,7}}\]: (?:accepted|denied|closed) [^\r\n]{{1,80}}"),
        7 => format!(r"\b{}-{number}\d{{3,6}}\b", name.to_uppercase()),
        8 => format!(r"(?i)(?:Global|Local)\\{name}[0-9a-f]{{4,16}}"),
        9 => format!(r"\b(?:GET|POST) /{name}/[\w/.-]{{1,60}}\.(?:php|jsp|aspx)\b"),
        10 => format!(r"(?i)\b{name}=['\x22]?\d{{{number},12}}\b"),
        _ => format!(r"[\w.+-]{{1,40}}@(?:mail\.)?{name}\.(?:ru|cn|top|io)\b"),
    }
}
