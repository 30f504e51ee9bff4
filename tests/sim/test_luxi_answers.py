"""Each method of LUXI answers as it did, or was changed on purpose: one example of each."""

import json
from typing import Any

import msgspec

from common.errors import GntError
from common.luxi.answers import Request
from common.luxi.failures import to_ganeti
from tests.golden import WIRE
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.golden import Masked, check_golden

DELAY = {"OP_ID": "OP_TEST_DELAY", "duration": 1}
JOB = ["id", "status", "summary", "ops", "opstatus", "opresult", "oplog", "received_ts"]
WISH = {
    "type": "allocate",
    "disk_template": "sharedfile",
    "disks": [{"size": 64}],
    "beparams": {"memory": 64, "vcpus": 1},
}
RULE = "00000000-0000-4000-8000-000000000000"
TRAIL = ["gnt:user", "maintenance", 1]

# In this order; job 1 has made the instance web1 on beta.
ASKED: list[tuple[str, list[Any]]] = [
    ("Query", ["instance", ["name", "status", "pnode", "colour"], ["==", "name", "web1"]]),
    ("QueryFields", ["group", ["name", "node_cnt", "colour"]]),
    ("QueryInstances", [["web1"], ["name", "admin_state", "oper_state", "be/memory"], False]),
    ("QueryNodes", [[], ["name", "role", "pinst_list", "mfree", "uuid"], False]),
    ("QueryGroups", [["default"], ["name", "alloc_policy", "node_list"], False]),
    ("QueryNetworks", [[], ["name"], False]),
    ("QueryExports", [["beta"], False]),
    ("QueryConfigValues", [["cluster_name", "master_node", "drain_flag", "watcher_pause"]]),
    ("QueryClusterInfo", []),
    ("QueryTags", ["instance", "web1"]),
    ("ExportConfiguration", []),
    ("SubmitJob", [[DELAY]]),
    ("WaitForJobChange", [2, ["summary"], None, 0, 10]),
    ("ChangeJobPriority", [2, -10]),
    ("WhyJob", [2]),
    ("SubmitManyJobs", [[[DELAY], [DELAY | {"depends": [[2, ["success"]]]}]]]),
    ("CancelJob", [4]),
    ("QueryJobs", [[4, 99], JOB]),
    ("SetDrainFlag", [True]),
    ("SubmitJobToDrainedQueue", [[DELAY]]),
    ("ArchiveJob", [4]),
    ("AutoArchiveJobs", [0, 10]),
    ("SetWatcherPause", [4_000_000_000]),
    ("RunWatcherHooks", []),
    ("AskAllocator", [WISH]),
    ("ReplaceFilter", [None, 0, [["jobid", [">", "id", "watermark"]]], ["RATE_LIMIT", 2], [TRAIL]]),
    ("ReplaceFilter", [RULE, 1, [], "CONTINUE", []]),
    ("QueryFilters", [[], ["uuid", "watermark", "priority", "predicates", "action"]]),
    ("DeleteFilter", [RULE]),
    ("PickupJob", [1]),
    ("PickupJob", [99]),
    ("Subscribe", [{"group": ["name", "node_list"]}]),
    ("NextChanges", [1, 10]),
    ("Figures", []),
    ("ChangeRestUsers", ["ci {cleartext}secret read", ""]),
    ("RestUsers", []),
]  # fmt: skip


def test_every_method_answers_as_it_did(update_golden: bool) -> None:
    asked: list[dict[str, Any]] = []

    async def scenario() -> None:
        async with simulated_cluster(nodes=3, seed=1) as cluster:
            await cluster.run(create("web1", "beta"))
            mask = Masked()
            for method, args in ASKED:
                answer = mask(await _answer(cluster, method, args))
                asked.append({"method": method, "args": args, "answer": answer})
            methods = cluster.master.running.luxi._methods
            assert methods.keys() <= {method for method, _ in ASKED}

    simulate(scenario())
    text = json.dumps(asked, indent=1, ensure_ascii=False, sort_keys=True)
    check_golden(WIRE / "luxi.json", text + "\n", update=update_golden)


async def _answer(cluster: SimulatedCluster, method: str, args: list[Any]) -> Any:
    """Return what a client would be answered, as JSON values."""
    try:
        answer = await cluster.master.running.luxi(Request(method=method, args=tuple(args)))
    except GntError as error:
        answer = to_ganeti(error)
    return _untimed(msgspec.json.decode(msgspec.json.encode(answer)))


def _untimed(answer: Any) -> Any:
    """Return an answer that tells of times how many there are, since chance has made each."""
    match answer:
        case {"bounds": _, "counts": counts, "total_s": _}:
            return answer | {"counts": [sum(counts)], "total_s": 0.0}
        case dict():
            return {key: _untimed(value) for key, value in answer.items()}
        case list():
            return [_untimed(value) for value in answer]
        case _:
            return answer
