"""Run the hooks of an operation: those before it may refuse it, those after it are told the end.

Nothing is sent to a node that has no scripts, but one question. Which nodes have some to run
afterwards is kept with the operation, with what they are to be told, so that whoever goes on with
the job runs them, too.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from common.errors import Conflict, GntError
from common.model.job import HooksDue, Status
from common.model.node import NodeRef
from common.names import JobId
from common.noderpc.hooks import Ending, HookReport, Hooks
from coordinator.hooks.scene import Scene
from coordinator.hooks.table import Where
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.failed_hook import FailedHook

GLOBAL = "global"  # run with each operation, whatever it is; see Ganeti's design-global-hooks
CONFIG_UPDATE = "config-update"  # on the master, after a change of the configuration
LONGEST_VALUE = 64 << 10  # bytes; Linux starts no program with one of twice that
VERSION = "2"  # of what scripts may expect

Runs = Mapping[NodeRef, tuple[HookReport, ...] | GntError]


@dataclass(frozen=True, slots=True)
class HookPhases:
    """Of one operation of a job."""

    cluster: Cluster
    job: JobId

    async def before(self, scene: Scene) -> HooksDue | None:
        """Run what is to be run before; return what is to be run afterwards, if there is any.

        Raises:
            Conflict: a script refused the operation; says which, where, and what it said.
        """
        hook, config = scene.hook, self.cluster.config
        master = config.master().ref
        asked: dict[NodeRef, list[str]] = {master: [f"{GLOBAL}-pre.d", f"{GLOBAL}-post.d"]}
        asked[master].append(f"{CONFIG_UPDATE}-post.d")
        for phase, where in (("pre", hook.before), ("post", hook.after)):
            for node in scene.nodes(where):
                directories = asked.setdefault(node, [])
                directories += (f"{GLOBAL}-{phase}.d", f"{hook.directory}-{phase}.d")
        present = await self._present(asked)
        # A node that is no member yet is asked afterwards, and may be the only one that has some.
        has_newcomers = hook.before is Where.OTHERS and hook.after is Where.EVERY
        if not any(present.values()) and not has_newcomers:
            return None
        subject, objects = scene.objects()
        variables = {
            **self._common(scene), **_prefixed("GANETI_", {**objects, **scene.parameters()})
        }  # fmt: skip
        await self._run(present, f"{GLOBAL}-pre.d", variables)
        failed = await self._run(present, f"{hook.directory}-pre.d", variables)
        refusals = [str(each) for each in failed if each.script]
        if refusals:
            raise Conflict(
                f"{scene.operation.summary()} was refused by hooks: {'; '.join(refusals)}.",
                hooks=refusals,
            )
        after = {node: tuple(d for d in has if "-post." in d) for node, has in present.items()}
        if not any(after.values()) and not has_newcomers:
            return None
        return HooksDue(
            nodes={node.uuid: has for node, has in after.items() if has},
            environment=variables,
            subject=subject,
        )

    async def after(
        self, scene: Scene, due: HooksDue, status: Status, *, has_changed: bool, again: bool
    ) -> list[FailedHook]:
        """Run what was found to be due; return what failed of the operation's own scripts.

        It is told, and changes nothing any more.

        Args:
            scene: as it is now.
            due: what ``before`` returned.
            status: how the operation ended; after a failure only the master's global scripts run.
            has_changed: whether the configuration has.
            again: whether a predecessor may have run them already.
        """
        config = self.cluster.config
        present: dict[NodeRef, Collection[str]] = {
            config.nodes[uuid].ref: has for uuid, has in due.nodes.items() if uuid in config.nodes
        }
        if again:
            self.cluster.log(
                "Hooks that follow this operation are run now, perhaps for the second time: "
                "another coordinator began it."
            )
        failed: list[FailedHook] = []
        succeeded = status is Status.SUCCESS
        if succeeded:
            _, objects = scene.objects(due.subject)
            told = {
                name.removeprefix("GANETI_"): value
                for name, value in due.environment.items()
                if name not in self._common(scene)
            }
            post = _prefixed("GANETI_POST_", {**told, **objects})
            present |= await self._newcomers(scene, present)
            own = {**due.environment, **post}
            failed = await self._run(present, f"{scene.hook.directory}-post.d", own)
            if has_changed:
                name = f"{CONFIG_UPDATE}-post.d"
                await self._run(present, name, self._common(scene))
        else:
            master = config.master().ref
            present, post = {master: present.get(master, ())}, {}
        ending = {"GANETI_POST_STATUS": "success" if succeeded else "error"}
        environment = {**due.environment, **post, **ending}
        await self._run(present, f"{GLOBAL}-post.d", environment)
        return failed

    async def _newcomers(
        self, scene: Scene, known: Mapping[NodeRef, Collection[str]]
    ) -> Mapping[NodeRef, Collection[str]]:
        """Ask nodes that were no members before."""
        if scene.hook.after is not Where.EVERY:
            return {}
        directories = [f"{GLOBAL}-post.d", f"{scene.hook.directory}-post.d"]
        new = (node for node in scene.nodes(Where.EVERY) if node not in scene.nodes(Where.OTHERS))
        return await self._present({node: directories for node in new if node not in known})

    async def _present(
        self, asked: Mapping[NodeRef, Collection[str]]
    ) -> dict[NodeRef, Collection[str]]:
        """Ask nodes which of some directories they have. Who does not answer has none."""
        answers = await self.cluster.each(
            {
                node: self.cluster.call(Hooks, node).present(
                    directories=tuple(dict.fromkeys(wanted))
                )
                for node, wanted in asked.items()
                if not self.cluster.config.nodes[node.uuid].offline
            }
        )
        silent = [str(node) for node, has in answers.items() if isinstance(has, GntError)]
        found: dict[NodeRef, Collection[str]] = {
            node: has for node, has in answers.items() if not isinstance(has, GntError)
        }
        if silent and any(found.values()):
            self.cluster.log(f"Hooks cannot be run on {', '.join(silent)}: no answer.")
        return found

    async def _run(
        self,
        present: Mapping[NodeRef, Collection[str]],
        directory: str,
        environment: Mapping[str, str],
    ) -> list[FailedHook]:
        """Run a directory on all nodes that have it at once; return what failed, and tell it."""
        phase = "post" if "-post." in directory else "pre"
        path = directory.removesuffix(f"-{phase}.d")
        told = {**environment, "GANETI_HOOKS_PHASE": phase, "GANETI_HOOKS_PATH": path}
        master = self.cluster.config.master().ref
        runs: Runs = await self.cluster.each(
            {
                node: self.cluster.call(Hooks, node).run(
                    directory=directory,
                    environment=told
                    | {"GANETI_IS_MASTER": "master" if node == master else "not_master"},
                )
                for node, has in present.items()
                if directory in has
            }
        )
        failed: list[FailedHook] = []
        for node, reports in runs.items():
            if isinstance(reports, GntError):
                failed.append(FailedHook(node, directory, "", reports.message))
                self.cluster.log(str(failed[-1]))
                continue
            for each in reports:
                if each.ending is Ending.FAILED:
                    failed.append(FailedHook(node, directory, each.script, each.said))
                    self.cluster.log(f"Hook {failed[-1]}")
                    continue
                said = f": {each.said}" if each.said else ""
                what = f"{directory}/{each.script} on {node} {each.ending}{said}"
                self.cluster.log(f"Hook {what}", detail=True)
        return failed

    def _common(self, scene: Scene) -> dict[str, str]:
        config = self.cluster.config
        return {
            "GANETI_HOOKS_VERSION": VERSION,
            "GANETI_OP_CODE": scene.operation.opcode,
            "GANETI_OBJECT_TYPE": scene.hook.about.value,
            "GANETI_CLUSTER": config.cluster.name,
            "GANETI_MASTER": config.master().name,
            "GANETI_JOB_ID": str(self.job),
        }


def _prefixed(prefix: str, variables: Mapping[str, object]) -> dict[str, str]:
    return {f"{prefix}{name}": _text(value) for name, value in variables.items()}


def _text(value: object) -> str:
    """Write a value so that a program can be started with it, whatever an operator has named."""
    if value is None:
        return ""
    text = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    kept = text.replace("\0", "").encode(errors="replace")[:LONGEST_VALUE]
    return kept.decode(errors="ignore")
