"""What a study may set: a list for each engine, in any spelling; nothing else reaches a program."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.engine_contract import open_directory
from support.paths import ROOT
from tierwise.lab import engines, studies
from tierwise.lab.engines.base import Engine
from tierwise.lab.engines.mariadb.binaries import installed_mariadb
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.lab.validation import servers
from tierwise.lab.validation.validation_spec import load_validation
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import parse_toml
from tierwise.model.placement import Role

ALL = ("postgres", "postgres-system", "mariadb", "sqlite", "rocksdb", "duckdb")

REFUSED = {
    "postgres": """
        ARCHIVE_MODE archive-command Archive_Command restore_command archive_cleanup_command
        recovery_end_command shared_preload_libraries SHARED-PRELOAD-LIBRARIES session_preload_libraries
        local_preload_libraries archive_library jit_provider dynamic_library_path extension_control_path
        oauth_validator_libraries output_plugin_libraries config_file hba_file ident_file data_directory
        external_pid_file ssl_passphrase_command ssl_key_file krb_server_keyfile log_directory log_filename
        log_destination logging_collector unix_socket_directories unix_socket_permissions listen_addresses
        port bonjour password_encryption authentication_timeout allow_system_table_mods
        ignore_system_indexes lo_compat_privileges row_security search_path session_replication_role
        primary_conninfo default_tablespace temp_tablespaces dynamic_shared_memory_type
        synchronous_standby_names mine.setting plpgsql.extra_warnings zero_damaged_pages
        stats_temp_directory
    """,
    "mariadb": """
        init_file init-file INIT_FILE skip_grant_tables skip-grant-tables plugin_dir plugin-dir plugin_load
        plugin_load_add plugin-loa plug loose-plugin_load_add loose_plugin_load LOOSE-init-file
        enable-skip-grant-tables disable-secure-auth maximum-plugin_dir skip-name-resolve
        skip_innodb_doublewrite loose_innodb_doublewrite init_connect init_slave secure_file_priv
        local_infile datadir basedir chroot user lc_messages_dir character_sets_dir log_error general_log
        general_log_file slow_query_log_file log_bin log_bin_index log_basename innodb_data_home_dir
        innodb_log_group_home_dir innodb_undo_directory innodb_tmpdir innodb_temp_data_file_path
        innodb_data_file_path aria_log_dir_path tmpdir socket port bind_address extra_port skip_networking
        pid_file ssl_key wsrep_provider wsrep_notify_cmd debug gdb core_file des_key_file feedback_url
        unix_socket old_passwords event_scheduler thread_handling defaults_file defaults_extra_file console
        ft_stopword_file relay_log innodb_buffer_pool_filename allow_suspicious_udfs innodb_force_recovery
    """,
    "sqlite": """
        temp_store_directory data_store_directory writable_schema trusted_schema key load_extension journal
        main.journal_mode JOURNAL_MOD
    """,
    "duckdb": """
        custom_extension_repository autoinstall_extension_repository autoload_known_extensions
        home_directory allow_unsigned_extensions extension_directories profile_output profiling_output
        log_query_path secret_directory temp_directory enable_external_access allowed_directories
        allowed_paths file_search_path http_proxy lock_configuration python_enable_replacements search_path
        access_mode
    """,
    "rocksdb": """
        wal_dir db_log_dir merge_operator comparator compaction_filter_factory table_factory
        memtable_factory file_checksum_gen_factory sst_partitioner_factory wal_filter repair
        create_if_missing manual_wal_flush env db_paths rocksdb_version
    """,
}


def created(name: str, settings: Mapping[str, str]) -> Engine:
    require(name)
    return engines.create_engine(name, settings)


def require(name: str) -> None:
    try:
        engines.create_engine(name)
    except TierwiseError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("engine", "setting"), [(engine, name) for engine, names in REFUSED.items() for name in names.split()]
)
def test_what_is_not_listed_is_refused_in_any_spelling(engine: str, setting: str) -> None:
    with pytest.raises(TierwiseError, match=rf"setting {re.escape(setting)} is not among those") as caught:
        created(engine, {setting: "1"})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("engine", ALL)
def test_a_misspelt_name_has_its_neighbour(engine: str) -> None:
    require(engine)
    name = min(type(engines.create_engine(engine)).allowed_settings())
    with pytest.raises(TierwiseError, match=f"did you mean {name}"):
        engines.create_engine(engine, {f"{name}x": "1"})


@pytest.mark.parametrize("value", ["1\0", "1\n2", "1\r--init-file=x", "\x1b[2J"])
@pytest.mark.parametrize(
    ("engine", "setting"),
    [
        ("postgres", "work_mem"),
        ("mariadb", "sort_buffer_size"),
        ("sqlite", "cache_size"),
        ("duckdb", "threads"),
        ("rocksdb", "write_buffer_size"),
    ],
)
def test_a_value_is_one_printable_line(engine: str, setting: str, value: str) -> None:
    with pytest.raises(TierwiseError, match=f"setting {setting} has the value") as caught:
        created(engine, {setting: value})
    assert str(caught.value).isprintable()


def test_a_name_of_several_lines_is_shown_on_one() -> None:
    with pytest.raises(TierwiseError, match="is not among those") as caught:
        created("postgres", {"work_mem\n\x1b[2J": "1MB"})
    assert str(caught.value).isprintable()


def test_other_spellings_of_a_listed_name_mean_that_name() -> None:
    with open_directory() as directory, created("postgres", {"Work-Mem": "3MB"}) as engine:
        engine.init({Role.SYSTEM: directory})
        engine.start()
        assert engine.settings()["work_mem"] == "3MB"
    with pytest.raises(TierwiseError, match="setting WORK_MEM is given twice"):
        engines.create_engine("postgres", {"work-mem": "1MB", "WORK_MEM": "2MB"})


@pytest.mark.parametrize("engine", ["mariadb", "postgres"])
def test_a_server_of_a_validation_takes_no_more(engine: str) -> None:
    for name in ("init_file", "shared_preload_libraries", "plugin-load-add", "hba_file"):
        with pytest.raises(TierwiseError, match=f"setting {name} is not among those"):
            servers.create_database(engine, engine, {name: "x"})


STUDY = """
name = "strange"
question = "?"
engines = ["{engine}"]
workload = "single_commit"
transactions = 10
repeats = 1
baseline = "own"
[devices]
own = {{ path = "{path}" }}
[placements.own]
default = "own"
{settings}
"""


@pytest.mark.parametrize("way", ["settings", "variant", "set"])
@pytest.mark.parametrize(
    ("engine", "setting"), [("mariadb", "plugin_load_add"), ("postgres", "shared_preload_libraries")]
)
def test_a_study_with_a_strange_setting_starts_nothing(
    open_path: Path, run_dir: Path, engine: str, setting: str, way: str
) -> None:
    require(engine)
    tables = {
        "settings": f'[settings.{engine}]\n{setting} = "mine"',
        "variant": f'[sweep]\nvariant = ["a"]\n[variants.a.settings.{engine}]\n{setting} = "mine"',
        "set": "",
    }
    file = open_path / "study.toml"
    file.write_text(STUDY.format(engine=engine, path=open_path, settings=tables[way]))
    more = ["--set", f"settings.{engine}.{setting}=mine"] if way == "set" else []
    command = [sys.executable, "-m", "tierwise", "study", "run", str(file), "-o", str(open_path / "r"), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"setting {setting} is not among those" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


# What is listed


def shipped_settings() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Of every study and validation in the repository: its name, the engine, and the settings."""
    for name in studies.study_names():
        study = studies.load_study(name)
        for overrides in (study, study.quick, study.paper_scale, *study.variants.values()):
            for engine, given in overrides.settings.items():
                yield name, engine, given
    files = [*ROOT.glob("examples/validation/*.toml"), *ROOT.glob("docs/evidence/validation/**/*.toml")]
    for file in [None, *files]:
        try:
            spec = load_validation(file)
        except TierwiseError:
            continue
        for engine, given in spec.settings.items():
            yield str(file), engine, given
        for case in spec.cases:
            yield str(file), case.server or "", case.settings


def test_every_shipped_study_and_validation_sets_what_it_may() -> None:
    refused = [(name, engine, given) for name, engine, given in shipped_settings() if given]
    assert len(refused) > 20
    for name, engine, given in refused:
        try:
            created(engine, given)
        except TierwiseError as error:
            raise AssertionError(f"{name}: {error}") from None


def test_ways_to_commit_are_listed() -> None:
    for name in ALL:
        require(name)
        made = type(engines.create_engine(name))
        for setting in made.durability():
            assert setting.settings.keys() <= made.allowed_settings()


@pytest.mark.parametrize("engine", ["postgres", "postgres-system"])
def test_postgresqls_list_has_no_paths_names_or_commands(engine: str) -> None:
    """All are numbers or words of a list, but for one whose words the server checks."""
    require(engine)
    with open_directory() as directory, created(engine, {}) as server:
        assert isinstance(server, PostgresEngine)
        server.init({Role.SYSTEM: directory})
        server.start()
        rows: list[Any] = server._known_process().query(
            "SELECT name, vartype FROM pg_catalog.pg_settings WHERE context <> 'internal'"
        )
    texts = {name for name, kind in rows if kind == "string"}
    allowed = PostgresEngine.allowed_settings()
    assert texts & allowed <= {"debug_io_direct"}
    assert len(allowed & {name for name, _ in rows}) > 150


def test_no_name_in_mariadbs_list_is_the_beginning_of_another_option() -> None:
    """A server takes the beginning of an option for the option, where it does not know the name itself."""
    require("mariadb")
    completed = subprocess.run(
        [installed_mariadb().server, "--no-defaults", "--help", "--verbose"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    options = {
        name.replace("-", "_") for name in re.findall(r"^\s+(?:-\w, )?--([\w-]+)", completed.stdout, re.M)
    }
    allowed = type(engines.create_engine("mariadb")).allowed_settings()
    assert len(allowed & options) > 150
    unknown = allowed - options
    assert not {(name, option) for name in unknown for option in options if option.startswith(name)}


def test_the_documentation_points_to_every_list() -> None:
    page = (ROOT / "docs" / "reference" / "engines.md").read_text("utf-8")
    for folder in ("postgres", "mariadb", "rocksdb", "duckdb"):
        file = f"python/tierwise/lab/engines/{folder}/settings.toml"
        assert file in page
        assert parse_toml((ROOT / file).read_text("utf-8"), file)
