"""What every operation declares."""

import abc
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar, cast

from common.errors import Conflict, InvalidRequest
from common.messages import MessageType, Order, from_builtins, to_builtins
from coordinator.locks.names import Wanted
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.failed_hook import FailedHook
from coordinator.operations.follow_up import FollowUps
from coordinator.operations.ganeti import imports
from coordinator.operations.ganeti.parameters import known_parameters, unknown_operation
from coordinator.operations.parameter import Parameter, parameters_of
from coordinator.operations.placement.promises import Promise
from coordinator.operations.step import Step
from coordinator.state.config import Config

ChoiceT = TypeVar("ChoiceT")
PlanT = TypeVar("PlanT")
Batches = Sequence[Sequence[Mapping[str, Any]]]  # jobs as clients submit them
OperationT = TypeVar("OperationT", bound="type[Operation[Any, Any]]")


class _OperationType(MessageType, abc.ABCMeta):
    """Lets a message have abstract methods."""


class Operation(Order, Generic[ChoiceT, PlanT], metaclass=_OperationType, kw_only=True):
    """One thing the cluster can do; its fields are its parameters, and nothing but what was asked.

    Names of operations and fields are Ganeti's opcodes, so that its clients fit. What was left
    open is settled by ``choose``; of an operation that leaves nothing open, ``ChoiceT`` is None.
    """

    opcode: ClassVar[str]  # "OP_INSTANCE_MIGRATE"
    version: ClassVar[int] = 1  # raised when choice, plan or steps look the same and mean another
    takes_reservations: ClassVar[bool] = False  # whether it can be about what is only reserved
    choice_type: ClassVar[Any]
    plan_type: ClassVar[Any]

    @abc.abstractmethod
    def locks(self, config: Config, choice: ChoiceT, /) -> Wanted:
        """Say what must not change while this runs.

        Raises:
            NotFound: a name that is not in the configuration.
        """

    def check_object(self, config: Config) -> None:
        """Refuse what cannot be done to an instance that is only reserved.

        Raises:
            Conflict: says how it is made first.
        """
        instance = config.find_instance(str(getattr(self, "instance_name", "")))
        if instance and instance.forthcoming and not self.takes_reservations:
            raise Conflict(
                f"Instance {instance.name} is only reserved, and nothing of it is there yet: "
                f"“gnt-instance add --commit {instance.name}” makes it first.",
                instance=instance.name,
            )

    def is_for_root(self) -> bool:
        """Tell whether this gives or ends power over nodes, which the group shall not do."""
        return False

    def question(self) -> str:
        """Return what an operator is asked first, because something would be lost; or nothing.

        It is about these parameters; what is asked in any case is in the catalogue.
        """
        return ""

    async def choose(self, cluster: Cluster) -> ChoiceT:  # noqa: ARG002 -- for those that choose
        """Settle what the operator left open, say a node, without holding any lock.

        The choice is kept in the job's row until there is a plan. Called again when ``prepare``
        finds that it has gone stale meanwhile; not called when whoever submitted this has chosen.
        """
        return cast("ChoiceT", None)

    @abc.abstractmethod
    async def prepare(self, cluster: Cluster, choice: ChoiceT, /) -> PlanT:
        """Check everything and change nothing; return all that the steps need to know.

        Raises:
            GntError: what is in the way.
            StaleChoice: another choice has to be made.
        """

    def recipe(
        self,
        cluster: Cluster,  # noqa: ARG002 -- for those that change something
        plan: PlanT,  # noqa: ARG002
    ) -> Iterator[Step]:
        """Yield the steps in order. They depend on ``plan`` and on nothing else.

        The recipe is made anew by whoever goes on with the job, so looking at anything
        that changes meanwhile would make it another one.
        """
        return iter(())

    def promises(self, plan: PlanT) -> Iterable[Promise]:  # noqa: ARG002 -- for those that take room
        """Say what a plan takes of nodes; until it has ended, others count with that.

        Depends on the plan alone: whoever goes on with the job asks again.
        """
        return ()

    def result(self, plan: PlanT) -> Any:  # noqa: ARG002 -- for those that have one
        """Say what the job's result is, as JSON values."""
        return None

    def result_after(
        self,
        cluster: Cluster,  # noqa: ARG002 -- for those whose result tells of scripts
        plan: PlanT,
        failed: Sequence[FailedHook],  # noqa: ARG002
    ) -> Any:
        """Say what the job's result is when scripts that follow it have failed: mostly the same."""
        return self.result(plan)

    def jobs(self, plan: PlanT) -> FollowUps:  # noqa: ARG002 -- for those that have others do it
        """Return jobs, each a list of operations, to be submitted at the end.

        They are stored together with the news that this operation has succeeded. Its result,
        which has to be a dict then, is told their numbers under ``jobs``.
        """
        return ()

    def intends(
        self,
        cluster: Cluster,  # noqa: ARG002 -- for those that choose room
        choice: ChoiceT,  # noqa: ARG002
    ) -> Iterable[Promise]:
        """Say what others count with while this waits with a choice that was made before."""
        return ()

    def dry_result(
        self,
        cluster: Cluster,  # noqa: ARG002 -- for those that have more to tell
        plan: PlanT,  # noqa: ARG002
        titles: list[str],
    ) -> Any:
        """Say what the result of a dry run is: what would be done, unless there is better."""
        return titles

    @classmethod
    def show_dry_run(cls, result: Any) -> list[str]:
        """Return the lines that tell an operator what ``dry_result`` gave."""
        return ["Would do:", *(f"  * {title}" for title in result)]

    @classmethod
    def understood(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Return parameters as they are declared here, if Ganeti's clients write them otherwise."""
        return given

    def summary(self) -> str:
        """Name the operation and its object: ``INSTANCE_MIGRATE(web1)``."""
        name = self.opcode.removeprefix("OP_")
        positional = (n for n, p in type(self).parameters().items() if p.is_argument)
        first = next(positional, None)
        about = getattr(self, first) if first else None
        return f"{name}({about})" if about else name

    @classmethod
    def parameters(cls) -> Mapping[str, Parameter]:
        """Return how each field is spelled on the command line, in the order declared."""
        return parameters_of(cls)

    def to_input(self) -> dict[str, Any]:
        """Return the wire form: ``OP_ID`` and the parameters."""
        parameters: dict[str, Any] = to_builtins(self)
        return {"OP_ID": self.opcode} | parameters


class StaleChoice(Exception):
    """What ``choose`` settled does not hold any more; choose again."""


REGISTRY: dict[str, type[Operation[Any, Any]]] = {}


def operation(opcode: str) -> Callable[[OperationT], OperationT]:
    """Register an operation under its opcode; the catalogue says what else is known of it."""

    def register(cls: OperationT) -> OperationT:
        cls.opcode = opcode
        cls.choice_type, cls.plan_type = typing.get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined]
        REGISTRY[opcode] = cls
        return cls

    return register


VARIANTS: dict[str, dict[str, type[Operation[Any, Any]]]] = {}
"""By opcode and the flag that asks for it: what does something else than the rest of its opcode."""


def variant(flag: str) -> Callable[[OperationT], OperationT]:
    """Register a subclass of an operation, of the same opcode, for where a flag is given."""

    def register(cls: OperationT) -> OperationT:
        VARIANTS.setdefault(cls.opcode, {})[flag] = cls
        return cls

    return register


def _meant(opcode: str, given: Mapping[str, Any]) -> type[Operation[Any, Any]]:
    variants = VARIANTS.get(opcode, {})
    asked = [flag for flag in variants if given.get(flag)]
    if len(asked) > 1:
        raise InvalidRequest(f"{opcode} is asked for {' and '.join(asked)} at once.")
    return variants[asked[0]] if asked else REGISTRY[opcode]


COMMON = frozenset({"OP_ID", "dry_run", "debug_level", "priority", "depends", "comment", "reason"})


def read_operation(
    wire: dict[str, Any], *, what: str = "", spelled: Callable[[str], str] = str
) -> Operation[Any, Any]:
    """Build an operation from its wire form; common attributes are left to the queue.

    Args:
        wire: ``OP_ID`` and the parameters.
        what: what an error says cannot be read; nothing: the parameters of this opcode.
        spelled: what an error calls a path of the parameters, as ``disks[0].size``.

    Raises:
        InvalidRequest: an unknown opcode, or a parameter that is unknown or does not fit.
    """
    opcode = str(wire.get("OP_ID"))
    if opcode not in REGISTRY:
        raise unknown_operation(opcode)
    given = {key: value for key, value in wire.items() if key not in COMMON}
    if imports.is_import(opcode, given):
        kind = REGISTRY[imports.IMPORT]
        known = imports.import_parameters(given, kind.__struct_encode_fields__)
    else:
        kind = _meant(opcode, given)
        known = known_parameters(opcode, given, kind.__struct_encode_fields__)
    what = what or f"the parameters of {opcode}"
    return from_builtins(kind.understood(known), kind, what=what, spelled=spelled)
