"""PostgreSQL, the embedded one and the system's."""

from support.engine_contract import EngineCase

CASES = [
    EngineCase(
        name,
        setting=("work_mem", "3MB", "3MB"),
        bad_value=("shared_buffers", "many"),
        shown_limits={
            "max_connections": "200",
            "shared_buffers": "96MB",
            "effective_cache_size": "288MB",
            "max_parallel_workers_per_gather": "1",
        },
    )
    for name in ("postgres", "postgres-system")
]
