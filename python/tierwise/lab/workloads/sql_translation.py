"""Translation of statements from PostgreSQL's dialect to another engine's, by sqlglot."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import sqlglot
from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ErrorLevel, SqlglotError

from tierwise.lab.workloads.program import RoleSql
from tierwise.model.errors import TierwiseError

_TOO_DEEP = "nested too deeply"
_DATE_PARTS = {"YEAR": "%Y", "MONTH": "%m", "DAY": "%d"}
"""Date parts with their formats in SQLite, which stores dates as text."""


@contextmanager
def _without_log() -> Iterator[None]:
    """Silence the log of sqlglot, which repeats the errors that it raises."""
    logger = logging.getLogger("sqlglot")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def translate_statement(statement: str, dialect: str, where: str) -> str:
    """One statement in another dialect; ``:name`` parameters stay as they are.

    The engine orders nulls unless the statement specifies it: an explicit order would keep engines from using
    their indexes.
    """
    return _write(_parse(statement, dialect, where), dialect, where)


def translate_schema(
    schema: RoleSql, after_load: RoleSql, dialect: str, where: str
) -> tuple[RoleSql, RoleSql]:
    """Statements before and after the load phase, in another dialect.

    Storage parameters (``WITH``, ``USING``) are left out. SQLite cannot add a primary key to an existing
    table, and DuckDB to none with an index, so these tables are created with their keys.
    """
    before = [(role, _parse(sql, dialect, where)) for role, sql in schema]
    behind = [(role, _parse(sql, dialect, where)) for role, sql in after_load]
    for _, statement in before:
        _drop_storage_parameters(statement)
    if dialect in ("sqlite", "duckdb"):
        made = [statement for _, statement in before if _creates(statement, "TABLE")]
        tables = {_table_name(statement): statement for statement in made}
        closed = {*tables} if dialect == "sqlite" else set[str]()

        def is_left(statement: exp.Expr) -> bool:
            name = _table_name(statement)
            if dialect == "duckdb" and _creates(statement, "INDEX"):
                closed.add(name)
            return name not in closed or not _fold_primary_key(statement, tables)

        before = [(role, statement) for role, statement in before if is_left(statement)]
        behind = [(role, statement) for role, statement in behind if is_left(statement)]
    return (
        [(role, _write(statement, dialect, where)) for role, statement in before],
        [(role, _write(statement, dialect, where)) for role, statement in behind],
    )


@cache
def _reader(dialect: str) -> type[Postgres]:
    """PostgreSQL's dialect with the other's order of nulls, so that sqlglot adds no explicit order."""
    order = sqlglot.Dialect.get_or_raise(dialect).NULL_ORDERING
    return type(f"PostgresFor{dialect.title()}", (Postgres,), {"NULL_ORDERING": order})


def _parse(statement: str, dialect: str, where: str) -> exp.Expr:
    try:
        with _without_log():
            parsed = sqlglot.parse_one(statement, read=_reader(dialect))
    except (SqlglotError, RecursionError) as error:
        problem = _TOO_DEEP if isinstance(error, RecursionError) else str(error).splitlines()[0]
        raise TierwiseError(
            f"{where}: {_short(statement)}: {problem}", "write it in PostgreSQL's SQL"
        ) from error
    if isinstance(parsed, exp.Command):
        raise _cannot(statement, dialect, where)
    # Another engine takes ``$1`` or ``?`` without a value as null.
    unbound = [
        node
        for node in parsed.find_all(exp.Parameter, exp.Placeholder)
        if isinstance(node, exp.Parameter) or not node.this
    ]
    if unbound:
        raise TierwiseError(
            f"{where}: {_short(statement)}: {unbound[0].sql('postgres')} gets no value",
            "write :name, and declare it under [parameters]",
        )
    return parsed


def _write(statement: exp.Expr, dialect: str, where: str) -> str:
    original = ""
    try:
        original = statement.sql("postgres")
        adapted = statement.transform(_adapted, dialect)
        if not _keeps_meaning(adapted, dialect):
            raise _cannot(original, dialect, where)
        with _without_log():
            return adapted.sql(dialect, unsupported_level=ErrorLevel.RAISE, comments=False)
    except SqlglotError as error:
        raise _cannot(original, dialect, where) from error
    except RecursionError:
        what = _short(original) or "a statement"
        raise TierwiseError(f"{where}: {what}: {_TOO_DEEP}", "write it in parts") from None


def _adapted(node: exp.Expr, dialect: str) -> exp.Expr:
    """Rewrite a node that sqlglot leaves unchanged but the dialect writes differently."""
    if isinstance(node, exp.Placeholder) and node.this:
        return exp.Var(this=f":{node.name}")
    if isinstance(node, exp.TruncateTable) and dialect == "sqlite":
        return exp.Delete(this=node.expressions[0])
    if isinstance(node, exp.Analyze) and dialect == "mysql":
        return exp.Analyze(**{**node.args, "kind": "TABLE"})
    if isinstance(node, exp.Extract) and dialect == "sqlite" and node.name.upper() in _DATE_PARTS:
        part = exp.func("strftime", exp.Literal.string(_DATE_PARTS[node.name.upper()]), node.expression)
        return exp.cast(part, "int")
    return node


def _keeps_meaning(statement: exp.Expr, dialect: str) -> bool:
    """Whether sqlglot's text, written without an error, has the same meaning in the dialect."""
    if isinstance(statement, exp.Create) and statement.find(exp.UnloggedProperty):
        return False
    if dialect == "mysql":
        return statement.find(exp.OnConflict) is None
    if dialect == "sqlite":
        return not isinstance(statement, exp.Alter) or statement.find(exp.AddConstraint) is None
    return True


def _drop_storage_parameters(statement: exp.Expr) -> None:
    """Remove ``WITH (...)`` and ``USING``, which only say how rows are stored."""
    for written in list(statement.find_all(exp.Property)) if isinstance(statement, exp.Create) else []:
        if type(written) in (exp.Property, exp.FileFormatProperty):
            written.pop()
    if (left := statement.args.get("properties")) is not None and not left.expressions:
        statement.set("properties", None)


def _fold_primary_key(statement: exp.Expr, tables: dict[str, exp.Expr]) -> bool:
    """Move a primary key, all that a statement adds, into its table's definition; return whether it did."""
    alone = isinstance(statement, exp.Alter) and len(statement.args["actions"]) == 1
    keys = list(statement.find_all(exp.PrimaryKey)) if alone else []
    table = tables.get(_table_name(statement))
    if not keys or table is None or not isinstance(table.this, exp.Schema):
        return False
    table.this.append("expressions", keys[0].copy())
    return True


def _creates(statement: exp.Expr, kind: str) -> bool:
    return isinstance(statement, exp.Create) and statement.kind == kind


def _table_name(statement: exp.Expr) -> str:
    table = statement.find(exp.Table)
    return table.name.lower() if table is not None else ""


def _cannot(statement: str, dialect: str, where: str) -> TierwiseError:
    return TierwiseError(
        f"{where}: {_short(statement)}: cannot be said in the dialect {dialect}",
        "write it in standard SQL, or choose another engine",
    )


def _short(statement: str) -> str:
    """The beginning of a statement, in one line."""
    line = " ".join(statement.split())
    return line if len(line) <= 80 else line[:77] + "..."
