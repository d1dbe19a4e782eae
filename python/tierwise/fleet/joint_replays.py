"""The joint replay of databases whose logs share a device, on recordings that are opened as needed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from tierwise.cluster.remote import opened
from tierwise.device_models.profiles import Profile
from tierwise.fleet.catalogue import RecordingAt
from tierwise.fleet.options import FleetOption
from tierwise.fleet.records import FleetDatabase
from tierwise.fleet.sharing_records import SharedDatabase
from tierwise.model.placement import Role
from tierwise.predict import Predictor, Scenario, predict_together
from tierwise.predict.devices import given
from tierwise.predict.model_error import ModelError


class JointReplays:
    """Replays databases together; those used last stay open.

    Args:
        recordings: of the fleet, each with its own name.
        most_open: most recordings that are kept open; at least the number of databases on one device.
        seeds: runs of the simulator for each answer.
        fresh: whether new devices are in their factory state.
        profiles: the user's own profiles among the devices.
        model_error: the error of predictions.
    """

    def __init__(
        self,
        recordings: Sequence[RecordingAt],
        *,
        most_open: int,
        seeds: int,
        fresh: bool = False,
        profiles: Sequence[Profile] = (),
        model_error: ModelError | None = None,
    ) -> None:
        """Open nothing yet."""
        self._uris: Mapping[str, str] = {one.name: one.uri for one in recordings}
        self._most_open, self._seeds, self._fresh = most_open, seeds, fresh
        self._profiles, self._model_error = profiles, model_error
        self._open: OrderedDict[str, Predictor] = OrderedDict()

    def __call__(self, members: Sequence[tuple[FleetDatabase, FleetOption]]) -> list[SharedDatabase]:
        """The figures of each database with the device of its log shared by all.

        Raises:
            TierwiseError: a recording can no longer be read, or cannot be replayed together with others.
        """
        with given(self._profiles):
            predictors = {database.name: self._predictor(database.name) for database, _ in members}
            scenarios = {database.name: _scenario(option) for database, option in members}
            answers = predict_together(predictors, scenarios, seeds=self._seeds)
        each_roles = [option.log_device.roles if option.log_device else [] for _, option in members]
        return [
            SharedDatabase(
                database=one.database,
                roles=roles,
                unit=one.together.unit,
                rate_alone_per_s=one.alone.rate_per_s,
                rate_per_s=one.together.rate_per_s,
                kept=one.kept,
                p99_alone_us=one.alone.p99_us,
                p99_us=one.together.p99_us,
            )
            for one, roles in zip(answers, each_roles, strict=True)
        ]

    def _predictor(self, name: str) -> Predictor:
        if name not in self._open:
            while len(self._open) >= self._most_open:
                self._open.popitem(last=False)
            with opened(self._uris[name]) as folder:
                found = Predictor.open(
                    folder, seeds=self._seeds, model_error=self._model_error, fresh=self._fresh
                )
            found.replayer.remember()
            self._open[name] = found
        self._open.move_to_end(name)
        return self._open[name]


def _scenario(option: FleetOption) -> Scenario:
    """The placement of an option, with the log's device as one that others may share."""
    log = option.placement[Role.LOG]
    places = {role: f"{log}#1" if device == log else device for role, device in option.placement.items()}
    return Scenario(placement={role.value: device for role, device in places.items()})
