//! Where a server is, as a URL or in keywords.

use mysql_async::{Opts, OptsBuilder};

use crate::error::LoadError;

/// Options of a connection, which counts the rows that an update finds and not only those that it changes,
/// as other engines do, and keeps all its statements.
pub(super) fn parse(text: &str) -> Result<Opts, LoadError> {
    let options = if text.contains("://") {
        let url = text.replacen("mariadb://", "mysql://", 1);
        let options = Opts::from_url(&url).map_err(|error| wrong(&error.to_string()))?;
        OptsBuilder::from_opts(options)
    } else {
        keywords(text)?
    };
    Ok(options.stmt_cache_size(0).client_found_rows(true).into())
}

fn keywords(text: &str) -> Result<OptsBuilder, LoadError> {
    let mut options = OptsBuilder::default().prefer_socket(false);
    for word in text.split_whitespace() {
        let Some((keyword, value)) = word.split_once('=') else {
            return Err(wrong(&format!("{word:?} is no keyword with a value")));
        };
        options = match keyword {
            "socket" => options.socket(Some(value)),
            "host" => options.ip_or_hostname(value),
            "port" => options.tcp_port(
                (value.parse()).map_err(|_| wrong(&format!("port {value:?} is no number")))?,
            ),
            "user" => options.user(Some(value)),
            "password" => options.pass(Some(value)),
            "dbname" => options.db_name(Some(value)),
            _ => return Err(wrong(&format!("unknown keyword {keyword:?}"))),
        };
    }
    Ok(options)
}

fn wrong(problem: &str) -> LoadError {
    LoadError::Address(problem.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_and_urls_say_the_same() {
        let keywords = parse("host=db port=3307 user=me password=x dbname=base").unwrap();
        let url = parse("mariadb://me:x@db:3307/base?prefer_socket=false").unwrap();
        assert_eq!(keywords, url);
        let socket = parse("socket=/tmp/m.sock user=me").unwrap();
        assert_eq!(socket.socket(), Some("/tmp/m.sock"));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, problem) in [
            ("nonsense", "nonsense"),
            ("port=high", "port \"high\""),
            ("sock=/tmp/m.sock", "\"sock\""),
            ("http://db", "http"),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(problem), "{text}: {message}");
        }
    }
}
