"""The transactions of a workload as pgbench scripts, so that both send the same statements."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from tierwise import _core
from tierwise.lab.workloads import Workload


def scripts(
    workload: Workload, scale: float, clients: int, first_number: int
) -> dict[str, tuple[float, str]]:
    """Weight and script of each transaction, by name.

    Args:
        workload: its parameters may be any kind of whole number; repetitions are unrolled.
        scale: the scale of a study.
        clients: number of pgbench clients, for their shared sequences.
        first_number: start of the sequences.
    """
    resolved = json.loads(workload.resolve(scale).json)
    generators = {parameter["name"]: parameter["generator"] for parameter in resolved["parameters"]}
    writer = _Writer(generators, clients, first_number)
    return {
        transaction["name"]: (transaction["weight"], writer.script(transaction))
        for transaction in resolved["transactions"]
    }


@dataclass(frozen=True)
class _Writer:
    generators: dict[str, dict[str, Any]]
    clients: int
    first_number: int

    def script(self, transaction: dict[str, Any]) -> str:
        steps = transaction["steps"]
        once = {name for step in steps for name in self._bound(step) - self._drawn(step)}
        once |= {step["repeat"] for step in steps} & self.generators.keys()
        body = [line for step in steps for line in self._step(step)]
        if not transaction["autocommit"]:
            body = ["BEGIN;", *body, "COMMIT;"]
        return "\n".join([*self._draw(once, 0), *body, ""])

    def _bound(self, step: dict[str, Any]) -> set[str]:
        return {name for sql in step["sql"] for name in _core.statement_parameters(sql)}

    def _drawn(self, step: dict[str, Any]) -> set[str]:
        counters = {name for name in self._bound(step) if self.generators[name]["kind"] == "counter"}
        return counters | set(step["draw"])

    def _step(self, step: dict[str, Any]) -> list[str]:
        repeat = step["repeat"]
        if isinstance(repeat, int):
            return [line for number in range(repeat) for line in self._once(step, number)]
        lines: list[str] = []
        for number in range(self.generators[repeat]["high"]):
            lines += [f"\\if :{repeat} > {number}", *self._once(step, number), "\\endif"]
        return lines

    def _once(self, step: dict[str, Any], number: int) -> list[str]:
        statements = [" ".join(sql.split()) + ";" for sql in step["sql"]]
        return [*self._draw(self._drawn(step), number), *statements]

    def _draw(self, names: set[str], number: int) -> list[str]:
        in_order = [name for name in self.generators if name in names]
        return [line for name in in_order for line in self._set(name, self.generators[name], number)]

    def _set(self, name: str, generator: dict[str, Any], number: int) -> list[str]:
        low, high = generator.get("low", 0), generator.get("high", 0)
        size = high - low + 1
        match generator["kind"]:
            case "uniform":
                value = f"random({low}, {high})"
            case "zipf":
                value = f"{low} - 1 + random_zipfian(1, {size}, {generator['exponent']})"
            case "nurand":
                a = generator["a"]
                c = random.Random(a).randint(0, a)
                value = f"((random(0, {a}) | random({low}, {high})) + {c}) % {size} + {low}"
            case "counter":
                value = str(generator["start"] + number)
            case "sequence":
                base = f"{name}_base"
                value = f"{self.first_number} + :{base} + :client_id"
                return [f"\\set {base} :{base} + {self.clients}", f"\\set {name} {value}"]
            case kind:
                raise ValueError(f"parameter {name}: pgbench has nothing like {kind}")
        return [f"\\set {name} {value}"]
