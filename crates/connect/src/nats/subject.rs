//! Names of streams and consumers, and subjects, by the rules of NATS.

/// What is wrong with the name of a stream or a consumer.
pub(super) fn check_name(name: &str) -> Result<(), &'static str> {
    let is_forbidden = |byte: u8| byte <= b' ' || b".*>/\\".contains(&byte) || byte == 127;
    if name.is_empty() {
        return Err("it is empty");
    }
    if name.bytes().any(is_forbidden) {
        return Err("names of streams and consumers have no spaces, `.`, `*`, `>`, `/` and `\\`");
    }
    Ok(())
}

/// What is wrong with a filter of subjects.
pub(super) fn check_filter(filter: &str) -> Result<(), &'static str> {
    let tokens: Vec<_> = filter.split('.').collect();
    let last = tokens.len() - 1;
    for (at, token) in tokens.into_iter().enumerate() {
        if token.is_empty() || token.bytes().any(|byte| byte <= b' ') {
            return Err("a subject is made of tokens without spaces, with a `.` between them");
        }
        if token.contains('>') && (token != ">" || at != last) {
            return Err("`>` stands alone, at the end of a filter");
        }
        if token.contains('*') && token != "*" {
            return Err("`*` stands alone, for one token of a filter");
        }
    }
    Ok(())
}

/// What is wrong with a subject that is published to.
pub(super) fn check_subject(subject: &str) -> Result<(), &'static str> {
    check_filter(subject)?;
    if subject.contains(['*', '>']) {
        return Err("`*` and `>` are for those who read; records are published to one subject");
    }
    if subject.starts_with('$') {
        return Err("subjects that begin with `$` are the server's own");
    }
    Ok(())
}

/// Bytes of the longest subject that fields of a record make: a server takes 4,096 for a whole command.
const LONGEST: usize = 1_024;

/// A subject of this text, where fields of a record may have brought along what none can have: it is never one of the
/// server's own, nor too long for it.
pub(super) fn of_text(text: &str) -> String {
    let token = |token: &str| match token {
        "" => "_".to_owned(),
        token => token.replace(|char: char| char <= ' ' || "*>\x7f".contains(char), "_"),
    };
    let mut subject = text.split('.').map(token).collect::<Vec<_>>().join(".");
    if subject.starts_with('$') {
        subject.replace_range(..1, "_");
    }
    let end = (0..=LONGEST.min(subject.len())).rev().find(|&at| subject.is_char_boundary(at));
    subject.truncate(end.unwrap_or(0));
    if subject.ends_with('.') {
        subject.push('_');
    }
    subject
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_filters_and_subjects() {
        assert!(check_name("READS").is_ok() && check_name("a-b_1").is_ok());
        assert!(["", "a.b", "a b", "a*", ">", "a/b"].iter().all(|name| check_name(name).is_err()));
        for filter in ["a", "a.b", "a.*.c", ">", "a.>", "*"] {
            assert!(check_filter(filter).is_ok(), "{filter}");
        }
        for filter in ["", "a.", ".a", "a..b", "a b", "a.>.b", "a>", "a*.b"] {
            assert!(check_filter(filter).is_err(), "{filter}");
        }
        assert!(check_subject("clean.a").is_ok());
        assert!(["a.*", ">", "$JS.x", ""].iter().all(|subject| check_subject(subject).is_err()));
    }

    #[test]
    fn any_text_makes_a_subject() {
        for (text, subject) in [
            ("clean.a", "clean.a"),
            ("clean.a b", "clean.a_b"),
            ("a..b.", "a._.b._"),
            ("*.>", "_._"),
            ("$JS.API.STREAM.PURGE.RAW", "_JS.API.STREAM.PURGE.RAW"),
            (&"é".repeat(600), &"é".repeat(512)),
            (&"a.".repeat(600), &("a.".repeat(512) + "_")),
        ] {
            assert_eq!(of_text(text), subject);
            assert!(check_subject(subject).is_ok());
        }
    }
}
