"""One run: one execution of one workload under one placement, from empty devices to a record."""

from __future__ import annotations

from contextlib import ExitStack

from tierwise.host.cgroups import MemoryLimit
from tierwise.lab import engines
from tierwise.lab.engines.base import Engine, ResourceLimits
from tierwise.lab.studies.runner import fault_run, pattern_run, placement_proof
from tierwise.lab.studies.runner.lap_run import (
    LapRunner,
    RunContext,
    max_clients_of_laps,
    measure_transactions,
    program_with_tables,
    tables_filled_by_laps,
)
from tierwise.lab.studies.runner.placement_proof import PlacementVerifier, resident_shares
from tierwise.lab.studies.runner.run_record import (
    failed_record,
    record_with_laps,
    record_with_mix,
    unmeasured_record,
)
from tierwise.lab.studies.runner.run_recording import RecordingDestination, record_run
from tierwise.lab.studies.runner.run_storage import open_storage
from tierwise.lab.studies.study import RunPlan, Study
from tierwise.lab.workloads import Workload
from tierwise.model.errors import TierwiseError
from tierwise.model.executor import ProgressCallback
from tierwise.model.placement import Role
from tierwise.results import ColdStart, EngineInfo, RunResult


def execute_run(
    study: Study,
    plan: RunPlan,
    study_seed: int,
    progress: ProgressCallback,
    recordings: RecordingDestination | None = None,
    *,
    drop_caches: bool = False,
) -> RunResult:
    """Run once and undo everything, even on failure.

    Devices are created anew and filled at memory speed. Then the caches are put into the study's state, and
    the measured phase begins: laps, or a mix of transactions after a warm-up.

    Args:
        study: the study, at the run's point of the sweep.
        study_seed: the seed that decided the order of runs.
        progress: called at the start of each phase.
        recordings: destination of the recording of the measured phase; without it, nothing is recorded.
        drop_caches: make cold starts by dropping the caches of the whole machine; only if the user says so.

    Returns:
        A record with status ``ok``; ``invalid`` if a device exceeded its overrun bound; or ``failed``, with
        the cause, if a device broke, the measured phase aborted, a checksum was wrong, or a role's files were
        not where the placement has them.
    """
    if study.patterns:
        return _execute_patterns(study, plan, study_seed, progress)
    if study.cuts is not None or study.deaths is not None:
        return fault_run.execute_fault_run(study, plan, study_seed, progress)
    with ExitStack() as undo:
        engine = engines.create_engine(plan.engine, study.settings_of(plan.engine))
        workload = Workload.load(study.workload)
        program = workload.resolve(study.scale, study.constants, engine.dialect)
        if program.stages:
            study = study.model_copy(update={"clients": max_clients_of_laps(program)})
        engine.limits = ResourceLimits(study.memory, study.parallelism, study.clients)
        if study.memory is not None:
            engine.confinement = undo.enter_context(MemoryLimit.make(study.memory))
        progress("making devices")
        storage = open_storage(study, plan, engine.roles, undo, by_role=True)
        undo.enter_context(engine)
        bench = RunContext(study, plan, engine, storage, program, progress, recordings, drop_caches)
        bare = EngineInfo(name=engine.name, version=engine.version(), settings={})
        prepared = unmeasured_record(study, plan, study_seed, bare, storage, workload=workload)
        try:
            cold = _load(bench)
        except TierwiseError as error:
            if broken := storage.broken():
                return failed_record(prepared, [f"while loading: {error}", *broken, *_causes(engine)])
            if out_of_memory := _out_of_memory(engine):
                raise TierwiseError(f"{error.message} ({out_of_memory[0]})", "raise memory") from error
            raise
        info = bare.changed(settings=engine.settings())
        shares = resident_shares(engine, storage)
        return _measure(bench, prepared.changed(engine=info, residency=shares, cold_start=cold))


def _load(bench: RunContext) -> ColdStart | None:
    """Load the database; give how its caches were emptied, if the study wants them cold."""
    engine, storage, program = bench.engine, bench.storage, bench.program
    bench.progress("loading")
    storage.set_timing(False)
    engine.init(storage.places)
    engine.start()
    engine.execute_schema(program.schema)
    engine.on_loaded = lambda rows: bench.progress(f"loading: {rows} rows")
    left_out = tables_filled_by_laps(program)
    engine.load_tables(program_with_tables(program.json, lambda name: name not in left_out), bench.plan.seed)
    engine.execute_schema(program.after_load)
    engine.checkpoint()
    cold = engine.restart_cold(drop_caches=bench.drop_caches) if bench.study.caches == "cold" else None
    storage.set_timing(True)
    return cold


def _measure(bench: RunContext, run: RunResult) -> RunResult:
    """The measured phase and its placement verification; partial results are kept on failure."""
    engine, storage = bench.engine, bench.storage
    bench.progress("measuring")
    verifier = PlacementVerifier(engine, storage)
    try:
        laps = bool(bench.program.stages)
        with record_run(
            engine, storage, bench.recordings, bench.plan.run_id, laps=laps, progress=bench.progress
        ) as recording:
            if laps:
                run = record_with_laps(run, LapRunner(bench, recording).run(), bench.program.score)
            else:
                sampled = bench.study.waits and recording is None
                run = record_with_mix(run, *measure_transactions(bench, recording), sampled=sampled)
            if recording is not None and run.status != "failed":
                recording.finish(run.transactions)
        if run.status != "failed":
            return _prove(bench, run, verifier)
        return run.changed(problems=[*run.problems, *storage.broken(), *_causes(engine)])
    except TierwiseError as error:
        return failed_record(run, [str(error), *storage.broken(), *_causes(engine)])
    finally:
        verifier.close()


def _prove(bench: RunContext, run: RunResult, verifier: PlacementVerifier) -> RunResult:
    """Write all data out at memory speed, and verify where it went."""
    bench.progress("proving the placement")
    bench.storage.set_timing(False)
    bench.engine.checkpoint()
    proven = run.changed(proof=verifier.verify(run.counters))
    leaks = placement_proof.placement_problems(proven.proof)
    return failed_record(proven, [*proven.problems, *leaks]) if leaks else proven


def _causes(engine: Engine) -> list[str]:
    cause = engine.failure()
    return [*([cause] if cause else []), *_out_of_memory(engine)]


def _out_of_memory(engine: Engine) -> list[str]:
    limit = engine.confinement
    if limit is None or not limit.kills():
        return []
    return [f"the kernel ended {limit.kills()} processes at the limit of {limit.size_bytes >> 20}M of memory"]


def _execute_patterns(study: Study, plan: RunPlan, study_seed: int, progress: ProgressCallback) -> RunResult:
    """Execute a study of devices: a file in place of a database."""
    with ExitStack() as undo:
        progress("making devices")
        storage = open_storage(study, plan, {Role.DATA}, undo)
        progress("filling")
        target = pattern_run.prepare_pattern_file(storage, undo)
        prepared = unmeasured_record(study, plan, study_seed, pattern_run.pattern_engine_info(), storage)
        progress("measuring")
        try:
            measured = pattern_run.measure_patterns(study, plan, storage, target)
        except TierwiseError as error:
            return failed_record(prepared, [str(error)])
        return measured.record(prepared)
