"""MariaDB, the system's."""

from support.engine_contract import EngineCase

CASES = [
    EngineCase(
        "mariadb",
        setting=("sort_buffer_size", "3M", "3145728"),
        bad_value=("innodb_buffer_pool_size", "many"),
        shown_limits={"innodb_buffer_pool_size": str(192 << 20), "max_connections": "200"},
    )
]
