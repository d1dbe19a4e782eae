"""Steps of settings that cost nothing, typed into real servers: they are accepted and undone."""

from __future__ import annotations

from pathlib import Path

from support import own_servers
from support.engine_contract import until
from support.fake_replay import about
from support.own_servers import OwnServer
from tierwise.predict import database_settings
from tierwise.predict.database_settings import ChosenSetting

BY_SQL = ("wal_compression", "max_wal_size", "checkpoint_timeout")


def shown(server: OwnServer, name: str) -> str:
    with server.postgres() as session:
        row = session.execute(f"SHOW {name}".encode()).fetchone()
    return str(row[0]) if row else ""


def typed(server: OwnServer, steps: str) -> None:
    server.execute(*filter(None, map(str.strip, steps.split(";"))))


def tried(engine: str, recorded: dict[str, str]) -> dict[str, ChosenSetting]:
    advised = database_settings.unpredicted_settings(about(engine=engine, settings=recorded))
    return {setting.setting.name: setting for setting in advised}


def test_postgres_takes_the_advised_values_and_goes_back(open_path: Path) -> None:
    with own_servers.postgres(open_path) as server:
        typed(
            server, "ALTER SYSTEM SET max_wal_size = '3GB'; SELECT pg_reload_conf();"
        )  # RESET undid this too
        until(lambda: shown(server, "max_wal_size") == "3GB")
        before = {name: shown(server, name) for name in BY_SQL}
        advised = tried("postgres", before)
        assert tuple(advised) == BY_SQL
        for name, setting in advised.items():
            assert setting.refusal is None
            typed(server, setting.there)
            until(lambda name=name: shown(server, name) != before[name])
            if grown := setting.setting.grown:
                assert grown.amount(shown(server, name)) == grown.amount(setting.value)
            typed(server, setting.back)
            until(lambda name=name: shown(server, name) == before[name])


def test_mariadb_takes_the_advised_size_of_its_log(open_path: Path) -> None:
    (name, setting), *_ = tried("mariadb", {"innodb_log_file_size": "100663296"}).items()
    assert (name, setting.refusal) == ("innodb_log_file_size", None)
    line, _, _ = setting.there.partition(" in the configuration file")
    assert line == f"{name} = {setting.value}"
    with (
        own_servers.mariadb(open_path, innodb_log_file_size=setting.value) as server,
        server.mariadb() as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT @@innodb_log_file_size")
        assert cursor.fetchone() == (int(setting.value),)


def test_a_recorded_value_goes_into_a_statement_only_if_it_is_a_word() -> None:
    reset = "ALTER SYSTEM RESET max_wal_size; SELECT pg_reload_conf();"
    for value in ("1GB'; DROP TABLE part; --", "1GB\n", ""):
        assert tried("postgres", {"max_wal_size": value})["max_wal_size"].back == reset
    back = tried("postgres", {"max_wal_size": "8GB"})["max_wal_size"].back
    assert back == "ALTER SYSTEM SET max_wal_size = '8GB'; SELECT pg_reload_conf();"
