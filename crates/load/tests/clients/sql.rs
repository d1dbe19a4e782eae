//! Where statements end and parameters are.

use proptest::prelude::*;
use tierwise_load::sql::{Template, split};

fn dollars(sql: &str) -> String {
    Template::parse(sql).render(|index| format!("${}", index + 1))
}

#[test]
fn a_parameter_used_twice_is_one_parameter() {
    let template = Template::parse("UPDATE t SET a = a + :by, b = b - :by WHERE id = :id");
    assert_eq!(template.names(), ["by", "id"]);
    assert_eq!(template.places().collect::<Vec<_>>(), [0, 0, 1]);
    assert_eq!(
        dollars("SET a = a + :by, b = b - :by WHERE id = :id"),
        "SET a = a + $1, b = b - $1 WHERE id = $2"
    );
}

#[test]
fn what_only_looks_like_a_parameter_is_left_alone() {
    for sql in [
        "SELECT ':no', \":no\" FROM t",
        "SELECT a::text, b[1:2] FROM t",
        "SELECT 1 -- :no",
        "SELECT /* :no */ 1",
        "SELECT $$ :no $$, $tag$ :no $tag$, $1",
        "SELECT 'it''s :no'",
        "SELECT 'unfinished :no",
        "SELECT 'é:no', 5 : 2",
    ] {
        assert_eq!(dollars(sql), sql);
        assert!(Template::parse(sql).names().is_empty(), "{sql}");
    }
}

#[test]
fn a_parameter_may_follow_anything() {
    assert_eq!(dollars("(:a,:b)-:c/:d||:é:e"), "($1,$2)-$3/$4||:é$5");
}

#[test]
fn scripts_split_at_semicolons_outside_quotes() {
    let script = "-- first; not\nCREATE TABLE a (b text DEFAULT ';');\n\nINSERT INTO a VALUES (:x);;\n-- end";
    let statements = split(script);
    assert_eq!(statements.len(), 2);
    assert!(statements[0].ends_with("DEFAULT ';')"));
    assert_eq!(statements[1], "INSERT INTO a VALUES (:x)");
}

#[test]
fn a_backslash_escapes_a_quote_only_in_an_escape_string() {
    let statements =
        split(r"SELECT E'it\'s; :no \\', :x; SELECT 'a\'; SELECT some'b\'; SELECT (e'\';')");
    let expected = [
        r"SELECT E'it\'s; :no \\', :x",
        r"SELECT 'a\'",
        r"SELECT some'b\'",
        r"SELECT (e'\';')",
    ];
    assert_eq!(statements, expected);
    assert_eq!(Template::parse(&statements[0]).names(), ["x"]);
}

proptest! {
    #[test]
    fn any_text_is_kept_but_for_its_parameters(sql in "[a-z:;'\"$ /*\\-é\n]{0,60}") {
        let template = Template::parse(&sql);
        let names = template.names().to_vec();
        prop_assert_eq!(template.render(|index| format!(":{}", names[index])), sql);
    }
}
