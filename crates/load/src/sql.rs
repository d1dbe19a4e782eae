//! A minimal SQL scanner: where a statement ends, and where its parameters are.

/// A statement with `:name` parameters, which each engine writes in its own way.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementTemplate {
    parts: Vec<TemplatePart>,
    names: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum TemplatePart {
    Text(String),
    Parameter(usize),
}

impl StatementTemplate {
    /// Find the parameters; those in quotes and comments, and `::` casts, are none.
    pub fn parse(sql: &str) -> Self {
        let mut template = Self {
            parts: Vec::new(),
            names: Vec::new(),
        };
        for token in sql_tokens(sql) {
            match token {
                SqlToken::Name(name) => {
                    let index = template.index_of(name);
                    template.parts.push(TemplatePart::Parameter(index));
                }
                SqlToken::Text(text) => template.parts.push(TemplatePart::Text(text.to_owned())),
                SqlToken::Semicolon => template.parts.push(TemplatePart::Text(";".to_owned())),
            }
        }
        template
    }

    /// Names of the parameters, each once, in order of first appearance.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The statement with `marker(index)` for each parameter, `index` being that of [`StatementTemplate::names`].
    pub fn render(&self, marker: impl Fn(usize) -> String) -> String {
        let mut sql = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => sql.push_str(text),
                TemplatePart::Parameter(index) => sql.push_str(&marker(*index)),
            }
        }
        sql
    }

    /// For each place of a parameter, in order, the index of its name in [`StatementTemplate::names`]: the arguments
    /// for engines whose markers have no number.
    pub fn places(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Text(_) => None,
            TemplatePart::Parameter(index) => Some(*index),
        })
    }

    fn index_of(&mut self, name: &str) -> usize {
        let known = self.names.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }
}

/// The statements of a script, without their semicolons; pieces of nothing but comments are left out.
pub fn split_script(script: &str) -> Vec<String> {
    let mut statements = vec![(String::new(), false)];
    for token in sql_tokens(script) {
        let (statement, has_code) = statements.last_mut().expect("never empty");
        match token {
            SqlToken::Semicolon => statements.push((String::new(), false)),
            SqlToken::Name(name) => {
                statement.push(':');
                statement.push_str(name);
                *has_code = true;
            }
            SqlToken::Text(text) => {
                statement.push_str(text);
                *has_code |= !is_comment(text) && !text.trim().is_empty();
            }
        }
    }
    statements
        .into_iter()
        .filter(|(_, has_code)| *has_code)
        .map(|(text, _)| text.trim().to_owned())
        .collect()
}

enum SqlToken<'a> {
    /// Anything else: plain SQL, or one whole quotation or comment.
    Text(&'a str),
    /// A parameter, without its colon.
    Name(&'a str),
    Semicolon,
}

fn sql_tokens(sql: &str) -> impl Iterator<Item = SqlToken<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (token, length) = first_token(&sql[..at], &sql[at..])?;
        at += length;
        Some(token)
    })
}

/// The first token of `sql`, which follows `before`.
fn first_token<'a>(before: &str, sql: &'a str) -> Option<(SqlToken<'a>, usize)> {
    let text = |length: usize| Some((SqlToken::Text(&sql[..length]), length));
    match sql.chars().next()? {
        ';' => Some((SqlToken::Semicolon, 1)),
        '\'' if begins_escape_string(before) => text(escape_string_length(sql)),
        quote @ ('\'' | '"' | '`') => text(1 + length_through(&sql[1..], &quote.to_string())),
        '$' => text(dollar_quoted_length(sql).unwrap_or(1)),
        _ if sql.starts_with("--") => text(length_through(sql, "\n")),
        _ if sql.starts_with("/*") => text(2 + length_through(&sql[2..], "*/")),
        _ if sql.starts_with("::") => text(2),
        ':' => match name_length(&sql[1..]) {
            0 => text(1),
            length => Some((SqlToken::Name(&sql[1..=length]), 1 + length)),
        },
        _ => text(plain_text_length(sql)),
    }
}

/// Whether a quote after this text begins a string with backslash escapes, as in `E'it\'s'`.
fn begins_escape_string(before: &str) -> bool {
    let mut last = before.chars().rev();
    matches!(last.next(), Some('e' | 'E'))
        && !last
            .next()
            .is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$')
}

/// Length of a string with backslash escapes, or all of the text.
fn escape_string_length(sql: &str) -> usize {
    let mut chars = sql.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => _ = chars.next(),
            '\'' => return at + 1,
            _ => {}
        }
    }
    sql.len()
}

fn is_comment(token: &str) -> bool {
    token.starts_with("--") || token.starts_with("/*")
}

/// Length up to and including `mark`, or all of the text.
fn length_through(text: &str, mark: &str) -> usize {
    text.find(mark).map_or(text.len(), |at| at + mark.len())
}

fn name_length(text: &str) -> usize {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return 0; // An array slice such as [1:2].
    }
    text.find(|c| !is_name(c)).unwrap_or(text.len())
}

/// Length of `$tag$ … $tag$`, if the text begins with one.
fn dollar_quoted_length(sql: &str) -> Option<usize> {
    let tag_length = 2 + name_length(&sql[1..]);
    let tag = sql.get(..tag_length).filter(|tag| tag.ends_with('$'))?;
    Some(tag_length + length_through(&sql[tag_length..], tag))
}

/// Length of the text before anything that could be special.
fn plain_text_length(sql: &str) -> usize {
    let special = |c: char| matches!(c, ';' | '\'' | '"' | '`' | '$' | '-' | '/' | ':');
    let first = sql.chars().next().map_or(0, char::len_utf8);
    sql[first..]
        .find(special)
        .map_or(sql.len(), |at| first + at)
}
