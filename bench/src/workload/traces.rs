//! Real traces, read from the files that were fetched for them; none of them is ours to ship.

use std::collections::HashSet;
use std::io;
use std::path::Path;

/// Requests of one day to a web server of NASA, in order (1995-08-01, Internet Traffic Archive).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// All that was logged of it: equal texts are one request.
    pub line: String,
    /// What was asked for.
    pub url: String,
}

/// Reads the requests.
///
/// # Errors
/// Those of the file system, with the name of the missing file.
pub fn requests(data: &Path) -> io::Result<Vec<Request>> {
    let text = read(data, "http_nasa/nasa_19950801.tsv")?;
    let request = |line: &str| {
        let url = line.split('\t').nth(4)?.to_owned();
        Some(Request { line: line.to_owned(), url })
    };
    Ok(text.lines().skip(1).filter_map(request).collect())
}

/// A message of one student to another (SNAP CollegeMsg).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who wrote it.
    pub from: u32,
    /// Whose page it was written on.
    pub to: u32,
}

/// Reads the messages, in order of time.
///
/// # Errors
/// Those of the file system, with the name of the missing file.
pub fn messages(data: &Path) -> io::Result<Vec<Message>> {
    let text = read(data, "msg_collegemsg/CollegeMsg.txt")?;
    let message = |line: &str| {
        let mut fields = line.split_ascii_whitespace().map(str::parse::<u32>);
        let from = fields.next()?.ok()?;
        let to = fields.next()?.ok()?;
        let time = fields.next()?.ok()?;
        Some((time, Message { from, to }))
    };
    let mut messages: Vec<(u32, Message)> = text.lines().filter_map(message).collect();
    messages.sort_by_key(|&(time, _)| time);
    Ok(messages.into_iter().map(|(_, message)| message).collect())
}

/// Columns that together tell one DNS query from another.
const DNS_KEY: [&str; 6] = ["id.orig_h", "id.orig_p", "id.resp_h", "trans_id", "query", "qtype"];

/// Reads the distinct DNS queries of a Zeek log, in order: source, port, destination, transaction,
/// name and type, parted by tabs.
///
/// # Errors
/// Those of the file system, with the name of the missing file; and for a log without a column.
pub fn dns_queries(data: &Path) -> io::Result<Vec<String>> {
    let name = "ip_zeek/dns.log";
    let text = read(data, name)?;
    let header = text.lines().find_map(|line| line.strip_prefix("#fields\t")).unwrap_or_default();
    let names: Vec<&str> = header.split('\t').collect();
    let place = |wanted: &str| names.iter().position(|name| *name == wanted);
    let places: Option<Vec<usize>> = DNS_KEY.into_iter().map(place).collect();
    let missing = || io::Error::new(io::ErrorKind::InvalidData, format!("{name} lacks a column"));
    let places = places.ok_or_else(missing)?;
    let mut seen = HashSet::new();
    let mut queries = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let key: Option<Vec<&str>> = places.iter().map(|&at| fields.get(at).copied()).collect();
        let Some(key) = key.map(|key| key.join("\t")) else { continue };
        if seen.insert(key.clone()) {
            queries.push(key);
        }
    }
    Ok(queries)
}

/// The file as text; bytes that are none are replaced.
fn read(data: &Path, name: &str) -> io::Result<String> {
    let path = data.join(name);
    let bytes = std::fs::read(&path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a few lines of each trace.
    fn folder() -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("lately-traces-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "http_nasa/nasa_19950801.tsv",
            "host\tlogname\ttime\tmethod\turl\tresponse\na\t-\t1\tGET\t/x\t200\nshort\n",
        );
        write("msg_collegemsg/CollegeMsg.txt", "3 4 20\n1 2 10\n");
        write(
            "ip_zeek/dns.log",
            "#fields\tts\tid.orig_h\tid.orig_p\tid.resp_h\ttrans_id\tquery\tqtype\n\
             1\ta\t1\tb\t7\tq\t1\n2\ta\t1\tb\t7\tq\t1\n3\ta\t1\tb\t8\tq\t1\n#close\n",
        );
        folder
    }

    #[test]
    fn reads_each_trace() {
        let data = folder();
        let requests = requests(&data).unwrap();
        assert_eq!((requests.len(), requests[0].url.as_str()), (1, "/x"));
        let messages = messages(&data).unwrap();
        assert_eq!(messages, [Message { from: 1, to: 2 }, Message { from: 3, to: 4 }]);
        let queries = dns_queries(&data).unwrap();
        assert_eq!(queries, ["a\t1\tb\t7\tq\t1", "a\t1\tb\t8\tq\t1"]);
        std::fs::remove_dir_all(&data).unwrap();
    }

    #[test]
    fn names_the_file_that_is_missing() {
        let error = requests(Path::new("/nowhere")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/http_nasa/nasa_19950801.tsv"), "{error}");
    }
}
