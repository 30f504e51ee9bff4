"""What the table of disk templates says."""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from common.model.pool_kind import PoolKind
from common.model.template import TRAITS, DiskTemplate
from common.names import MiB


def test_every_template_has_its_traits() -> None:
    assert list(TRAITS) == list(DiskTemplate)


@pytest.mark.parametrize("template", DiskTemplate)
def test_traits_are_found_by_the_text_of_a_template_too(template: DiskTemplate) -> None:
    assert TRAITS[str(template)] is template.traits


def test_an_instance_is_external_mirrored_or_stays_where_it_is() -> None:
    assert {t for t in DiskTemplate if t.traits.is_mirrored} >= {"drbd"}
    assert {t for t in DiskTemplate if t.traits.holders == 1} >= {"file", "plain"}
    assert {t for t in DiskTemplate if t.traits.is_external} >= {
        "diskless", "sharedfile", "blockdev", "rbd", "ext", "gluster",
    }  # fmt: skip


def test_what_takes_no_space_asks_for_none() -> None:
    sizes = (MiB(100), MiB(200))
    spaces = {template: template.traits.disk_space(sizes) for template in DiskTemplate}
    assert {template for template, space in spaces.items() if not space} >= {"diskless", "blockdev"}
    assert spaces[DiskTemplate.PLAIN] == 300
    assert spaces[DiskTemplate.DRBD] == 300 + 2 * 128, "each disk has its metadata beside it"


def test_disks_are_in_the_pools_that_nodes_report() -> None:
    kinds = {kind: {t for t in DiskTemplate if t.traits.space is kind} for kind in PoolKind}
    assert kinds[PoolKind.DIRECTORY] >= {"file", "sharedfile", "gluster"}
    assert kinds[PoolKind.VOLUME_GROUP] >= {"plain", "drbd"}


PROJECT = Path(__file__).parents[2]
OWNERS = ("common/model/template.py", "common/model/disk_parameters.py", "coordinator/disks/")
EXCEPTED = frozenset({
    "coordinator/iallocator/show.py",  # spells those that hail calls otherwise
})  # fmt: skip


NAMED = re.compile(rf"\bDiskTemplate\.|['\"](?:{'|'.join(TRAITS)})['\"]")


def comparisons(path: Path) -> Iterator[str]:
    """Yield where a file names a template, lists some, or compares something with one's name."""
    text = path.read_text(encoding="utf-8")
    if not NAMED.search(text):
        return  # most files: to parse them all takes long
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Attribute(value=ast.Name(id="DiskTemplate"), attr=name) if name.isupper():
                yield f"{path}:{node.lineno} names {name}"
            case ast.Compare() | ast.MatchValue():
                texts = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
                yield from (f"{path}:{node.lineno} compares {t!r}" for t in texts if t in TRAITS)
            case (
                ast.keyword(arg="template", value=ast.Constant() as given)
                | ast.AnnAssign(target=ast.Name(id="template"), value=ast.Constant() as given)
            ) if given.value in TRAITS:
                yield f"{path}:{given.lineno} sets {given.value!r}"
            case ast.Tuple(elts=names) | ast.List(elts=names) | ast.Set(elts=names):
                yield from _listed(path, node, names)
            case ast.Dict(keys=names):
                yield from _listed(path, node, [name for name in names if name])
            case _:
                pass


def _listed(path: Path, node: ast.expr, names: Sequence[ast.expr]) -> Iterator[str]:
    """Yield a list that has two templates or more: the next one would be forgotten there."""
    texts = {name.value for name in names if isinstance(name, ast.Constant)} & TRAITS.keys()
    if len(texts) > 1:
        yield f"{path}:{node.lineno} lists {', '.join(sorted(map(str, texts)))}"


def test_nobody_but_their_owner_tells_templates_apart() -> None:
    tops = (PROJECT / top for top in ("common", "coordinator", "noded"))
    files = [path for top in tops for path in top.rglob("*.py")]
    found = [
        each
        for path in files
        if not (name := str(path.relative_to(PROJECT))).startswith(OWNERS) and name not in EXCEPTED
        for each in comparisons(path)
    ]
    assert not found, "ask the template's traits, or its kind:\n" + "\n".join(found)


ASKING = frozenset({
    # What DRBD's mirrors are, for Ganeti's “drbd_info”, which has no other's.
    "coordinator/operations/instance/disk_status.py",
    # From plain to mirrored disks and back: metadata are put beside data, or taken away.
    "coordinator/operations/instance/convert_in_place.py",
})  # fmt: skip
"""Who asks for the class of a backing, beside its owners and nodes' drivers."""

CLASSES = re.compile(r"\w*Backing|Elsewhere")


def classes_asked_for(path: Path) -> Iterator[str]:
    """Yield where a file asks of which class a disk's backing is."""
    text = path.read_text(encoding="utf-8")
    if not CLASSES.search(text):
        return
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, asked]):
                yield from _classes(path, asked)
            case ast.MatchClass(cls=asked):
                yield from _classes(path, asked)
            case ast.Compare(left=ast.Call(func=ast.Name(id="type"))):
                yield from _classes(path, node)
            case _:
                pass


def _classes(path: Path, asked: ast.expr) -> Iterator[str]:
    for node in ast.walk(asked):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if CLASSES.fullmatch(name):
                yield f"{path}:{node.lineno} asks for a {name}"
            case _:
                pass


def test_nobody_but_their_owner_asks_for_the_class_of_a_backing() -> None:
    found = {
        name: asked
        for path in (PROJECT / "coordinator").rglob("*.py")
        if not (name := str(path.relative_to(PROJECT))).startswith(OWNERS)
        if (asked := list(classes_asked_for(path)))
    }
    others = [each for name, asked in found.items() if name not in ASKING for each in asked]
    assert not others, "ask the backing itself, or its kind:\n" + "\n".join(others)
    assert found.keys() == ASKING, "they need no exception any more"


@pytest.mark.parametrize(
    ("text", "is_comparison"),
    [
        ("instance.disk_template is DiskTemplate.DRBD", True),
        ("instance.disk_template == 'drbd'", True),
        ("template in ('plain', 'drbd')", True),
        ("instance.disk_template.traits.is_mirrored", False),
        ("DiskTemplate('drbd')", False),
        ("names = ('plain', 'drbd')", True),
        ("names = ['plain', other, 'drbd']", True),
        ("names = {'plain': 'DTPlain', **others, 'drbd': 'DTDrbd8'}", True),
        ("word = ('plain', 'text')", False),
        ("replace(instance, template='drbd')", True),
        ("template: str = 'drbd'", True),
        ("replace(instance, template=MIRRORED)", False),
        ("isinstance(disk.backing, DrbdBacking)", True),
        ("isinstance(disk.backing, FileBacking | disks.LvmBacking)", True),
        ("isinstance(disk.backing, (FileBacking, Elsewhere))", True),
        ("match disk.backing:\n    case RbdBacking(pool=pool):\n        pass", True),
        ("type(disk.backing) is DrbdBacking", True),
        ("disk.backing.has_own_format", False),
        ("LvmBacking(group=found.group, name=found.name)", False),
    ],
)
def test_a_comparison_is_found(tmp_path: Path, text: str, is_comparison: bool) -> None:
    path = tmp_path / "sample.py"
    path.write_text(text, encoding="utf-8")
    assert bool([*comparisons(path), *classes_asked_for(path)]) is is_comparison


PAGE = "docs/howto/add-a-disk-template.md"
TREES = ("common", "coordinator", "noded", "tests/support", "tests/sim/stories")
CEPH = re.compile(r"\brbd\b|\bRbd[A-Z]|\bRBD\b")


def test_all_that_a_template_needs_is_in_the_table_of_how_one_is_added() -> None:
    """Whoever knows the template that the page follows is named there, and knows it."""
    rows = re.findall(r"^\| `([\w./]+)` \|", (PROJECT / PAGE).read_text(encoding="utf-8"), re.M)
    named = {file for row in rows for file in _files(PROJECT / row)}
    trees = {file for tree in TREES for file in _files(PROJECT / tree)}
    knowing = {file for file in trees | named if CEPH.search(file.read_text(encoding="utf-8"))}
    assert knowing == named


def _files(place: Path) -> Iterator[Path]:
    """Yield a file, or those below a directory that have something in them."""
    files = place.rglob("*.py") if place.is_dir() else [place]
    return (file for file in files if file.stat().st_size)
