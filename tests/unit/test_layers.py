"""The import graph is a contract: a file imports its own layer and those below it.

Imports inside functions, under TYPE_CHECKING and by ``import_module("...")`` count like others.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from common.model.kvm import KvmParameters

PROJECT = Path(__file__).parents[2]
OURS = ("common", "noded", "coordinator")

# Each row may import the rows below it, but not its neighbours in the row.
COORDINATOR = (
    ("daemon", "cli", "rapi", "confd", "watcher", "htools"),
    ("master",),
    ("jobs",),
    ("hooks",),
    ("operations", "queries"),
    ("checks",),
    ("disks", "operating_systems"),
    ("nodes", "locks", "state"),
    ("iallocator",),
    ("quorum", "allocator"),
)

# Decisions: no clock, no I/O, no chance, neither themselves nor through another file of ours.
PURE = (
    "common.model",
    "common.names",
    "common.units",
    "common.durations",
    "coordinator.disks",
    "coordinator.operating_systems",
    "coordinator.quorum",
    "coordinator.allocator",
    "coordinator.iallocator",
    "coordinator.watcher.decide",
    "coordinator.watcher.round",
)
PURE_FILES = ("commands", "parse")  # of every driver of noded
# fmt: off
IMPURE = frozenset({
    "aiohttp", "asyncio", "concurrent", "ctypes", "fcntl", "glob", "http", "logging",
    "multiprocessing", "os", "pathlib", "pyroute2", "random", "secrets", "select", "selectors",
    "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "tempfile", "threading", "time",
    "urllib", "uvloop",
})
# fmt: on
IMPURE_CALLS = frozenset({"breakpoint", "input", "open", "print"})
HARMLESS = frozenset({"random.Random"})  # a type: chance comes as an argument of it

# Who may name KVM's files: what declares its parameters, and its driver.
OF_KVM = ("common.model.hypervisors", "common.model.kvm", "common.model.kvm_checks",
          "common.model.kvm_declared", "common.model.kvm_words", "noded.hypervisor")  # fmt: skip

# What the coordinator has of the names of KVM's parameters; none of it asks what a guest is like.
NAMED = {
    "coordinator.queries.instance_parameters": {  # Ganeti's titles, and what it shows of clusters
        "cpu_type", "migration_bandwidth", "migration_mode",
    },
    "coordinator.queries.node_fields": {"cpu_sockets"},  # a fact about nodes, of the same name
    "coordinator.rapi.shapes": {"usb_devices"},  # which Ganeti's clients write with blanks
}  # fmt: skip


@cache
def modules() -> Mapping[str, Path]:
    """Find every file of ours, by the name under which it is imported."""
    found = {}
    for path in (path for top in OURS for path in (PROJECT / top).rglob("*.py")):
        parts = path.relative_to(PROJECT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


class Read:
    """What a file imports, calls and looks up, each in the order in which it stands there."""

    def __init__(self) -> None:
        self.imports: list[str] = []  # as ``package.module`` or ``package.module.name``
        self.calls: list[str] = []  # plain names
        self.attributes: list[str] = []
        self.texts: list[str] = []

    def take(self, node: ast.AST) -> None:
        match node:
            case ast.Import():
                self.imports += [alias.name for alias in node.names]
            case ast.ImportFrom():
                self.imports += [f"{node.module}.{alias.name}" for alias in node.names]
            case ast.Attribute():
                self.attributes.append(node.attr)
            case ast.Constant(value=str(text)):
                self.texts.append(text)
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                self.imports.append(name)
            case ast.Call(func=ast.Name(id=name)):
                self.calls.append(name)
            case _:
                pass


@cache
def read(path: Path) -> Read:
    """Read a file, once for all tests: every test asks about most files."""
    found = Read()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        found.take(node)
    return found


def imports(path: Path) -> Sequence[str]:
    return read(path).imports


def under(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


def allowed_to(module: str) -> tuple[str, ...] | None:
    """Name the packages of ours that ``module`` may import; None if it has no layer."""
    top, _, rest = module.partition(".")
    part = rest.partition(".")[0]
    if top == "common":
        return ("common",)
    if top == "noded":
        return ("noded", "common")
    if not part:  # coordinator/__init__.py
        return ()
    for depth, row in enumerate(COORDINATOR):
        if part in row:
            below = (each for lower in COORDINATOR[depth + 1 :] for each in lower)
            return ("common", *(f"coordinator.{each}" for each in (part, *below)))
    return None


def breaches(module: str, imported: Iterable[str]) -> list[str]:
    allowed = allowed_to(module)
    if allowed is None:
        return [f"{module} belongs to no layer; give it one in {Path(__file__).name}"]
    return [
        f"{module} imports {name}"
        for name in imported
        if name.partition(".")[0] in (*OURS, "tests")
        and not any(under(name, prefix) for prefix in allowed)
    ]


def is_pure(module: str) -> bool:
    if module.startswith("noded.") and module.rpartition(".")[2] in PURE_FILES:
        return True
    return any(under(module, prefix) for prefix in PURE)


def impurities(path: Path) -> list[str]:
    """List what makes a file depend on more than its arguments, itself or through ours."""
    known = modules()
    found: list[str] = []
    seen, unread = {path}, [path]
    while unread:
        path = unread.pop()
        for name in imports(path):
            if name.partition(".")[0] in IMPURE and name not in HARMLESS:
                found.append(f"{path} imports {name}")
            # `from a.b import c`: c may be a file or something in b.
            target = known.get(name) or known.get(name.rpartition(".")[0])
            if target and target not in seen:
                seen.add(target)
                unread.append(target)
        found += [f"{path} calls {name}" for name in read(path).calls if name in IMPURE_CALLS]
    return found


def test_every_file_imports_downwards() -> None:
    found = [each for name, path in modules().items() for each in breaches(name, imports(path))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("shared", ["steps", "placement"])
def test_what_operations_share_knows_none_of_them(shared: str) -> None:
    own = f"coordinator.operations.{shared}"
    others = {"placement", "cluster", "node", "instance", "test"} - {shared}
    found = [
        f"{module} imports {name}"
        for module, path in modules().items()
        for name in imports(path)
        if under(module, own)
        and any(under(name, f"coordinator.operations.{other}") for other in others)
    ]
    assert not found, "\n".join(found)


def test_no_files_import_each_other_in_a_circle() -> None:
    known = modules()
    left = {
        module: {
            target
            for name in imports(path)
            if (target := name if name in known else name.rpartition(".")[0]) != module
        }
        for module, path in known.items()
    }
    while leaves := [module for module, targets in left.items() if left.keys().isdisjoint(targets)]:
        for module in leaves:
            del left[module]
    assert not left, "\n".join(sorted(left))


def test_what_nodes_told_before_proves_nothing_and_is_for_lists_alone() -> None:
    may = {"coordinator.nodes.calls", "coordinator.master.master"}  # hear it, hand it to queries
    for name, path in modules().items():
        if name.startswith("coordinator.") and "heard" in read(path).attributes:
            assert name in may or under(name, "coordinator.queries"), name


def named_of_kvm(path: Path) -> set[str]:
    """Return those names of parameters that a file has as texts; attributes are mypy's concern."""
    return set(read(path).texts) & set(KvmParameters.__struct_fields__)


def test_nobody_above_the_drivers_reads_a_parameter_of_kvm_by_its_name() -> None:
    above = {name: path for name, path in modules().items() if under(name, "coordinator")}
    assert {name: found for name, path in above.items() if (found := named_of_kvm(path))} == NAMED


def test_nobody_but_its_declaration_and_driver_names_kvms_files() -> None:
    found = [
        f"{module} imports {name}"
        for module, path in modules().items()
        if not any(under(module, each) for each in OF_KVM)
        for name in imports(path)
        if name.startswith("common.model.kvm")
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("module", [name for name in modules() if is_pure(name)])
def test_decisions_are_pure(module: str) -> None:
    found = impurities(modules()[module])
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("module", "imported", "is_breach"),
    [
        ("noded.disks.driver", "common.errors", False),
        ("noded.disks.driver", "noded.system", False),
        ("noded.disks.driver", "coordinator.state", True),
        ("coordinator.cli.main", "noded.daemon", True),
        ("common.names", "noded.system", True),
        ("common.names", "tests.support", True),
        ("coordinator.jobs.queue", "coordinator.operations.base", False),
        ("coordinator.operations.base", "coordinator.jobs.queue", True),
        ("coordinator.state.store", "coordinator.locks.manager", True),  # a neighbour
        ("coordinator.state.store", "coordinator.quorum", False),
        ("coordinator.quorum", "coordinator.allocator", True),
        ("coordinator.quorum", "asyncio", False),  # another test's concern
        ("coordinator.surprise.module", "common.errors", True),  # no such layer
    ],
)
def test_breaches_are_found(module: str, imported: str, is_breach: bool) -> None:
    assert bool(breaches(module, [imported])) is is_breach


@pytest.mark.parametrize(
    ("text", "is_pure_text"),
    [
        ("import math\nfrom random import Random\nfrom common.model.node import Node\n", True),
        ("def late() -> None:\n    import time\n", False),
        ("from os.path import join\n", False),
        ("import random\n", False),
        ("from common.paths import Paths\n", False),
        ("from importlib import import_module\nimport_module('asyncio')\n", False),
        ("text = open('/etc/passwd')\n", False),
    ],
)
def test_impurities_are_found(tmp_path: Path, text: str, is_pure_text: bool) -> None:
    path = tmp_path / "sample.py"
    path.write_text(text, encoding="utf-8")
    assert (not impurities(path)) is is_pure_text


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('port = parameters.get("spice_bind")\n', {"spice_bind"}),
        ('has = getattr(parameters, "vga")\n', {"vga"}),
        ("spice_bind = kind.has_display(parameters)\n", set()),
    ],
)
def test_names_of_parameters_are_found(tmp_path: Path, text: str, named: set[str]) -> None:
    path = tmp_path / "sample.py"
    path.write_text(text, encoding="utf-8")
    assert named_of_kvm(path) == named
