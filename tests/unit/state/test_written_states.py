"""What any version has written, this one can read."""

from contextlib import suppress

import pytest

from common.errors import InvalidRequest
from common.model.job import ArchivedJob, Job
from coordinator.jobs.foreign import read_queued
from coordinator.operations.registry import load_all
from coordinator.state.rows import from_row
from coordinator.state.state import state_of
from tests.golden.states import WrittenState, versions, written_states

STATES = {
    f"version {version}: {state.told}": state
    for version in versions()
    for file in ("cluster.json", "stories.json")
    for state in written_states(version, file)
}


@pytest.mark.parametrize("told", STATES)
def test_a_state_of_another_version_can_be_loaded(told: str) -> None:
    written = STATES[told]
    state = state_of(map(from_row, written.loaded), written.stamp)
    assert state.stamp == written.stamp
    assert len(list(state.items())) == len(written.loaded)
    for instance in state.config.sorted_instances():
        assert state.config.disks_of(instance) or not instance.disks
        assert instance.primary_node in state.config.nodes


@pytest.mark.parametrize("told", STATES)
def test_an_archived_job_of_another_version_can_be_read(told: str) -> None:
    for row in STATES[told].archived:
        item = from_row(row)
        assert isinstance(item, ArchivedJob)
        assert str(item.job.id) == row.id


@pytest.mark.parametrize("told", STATES)
def test_a_queued_operation_of_another_version_is_known_or_refused(told: str) -> None:
    load_all()
    for job in _jobs(STATES[told]):
        for record in job.ops:
            secrets = dict.fromkeys(record.secret, "told again")
            with suppress(InvalidRequest):  # it says that another version has queued it
                operation, _ = read_queued(job.id, record, secrets)
                assert operation.opcode == record.input["OP_ID"]


def _jobs(written: WrittenState) -> list[Job]:
    return [item for row in written.loaded if isinstance(item := from_row(row), Job)]
