"""Finding things in a configuration, and keeping its indexes true."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import Conflict, NotFound
from common.model.backing import FileBacking
from common.model.disk import Disk
from common.model.template import DiskTemplate
from common.names import DiskId, InstanceName, MiB, NodeId
from coordinator.state.config import Config
from coordinator.state.rows import Delete, Put, Update
from tests.support.candidates import GROUP, cluster, instance, node

BASE = Config().apply([Put(cluster("beta")), Put(GROUP), Put(node("beta")), Put(node("alpha"))])


def test_things_are_found_by_name_and_by_uuid() -> None:
    web1 = instance("web1", "alpha")
    config = BASE.apply([Put(web1)])
    assert config.instance("web1") == config.instance(web1.uuid) == web1
    assert config.group("default") == config.group("group") == GROUP
    assert config.master() == config.node("beta")
    assert [each.name for each in config.sorted_nodes()] == ["alpha", "beta"]
    assert config.find_instance("web2") is None


@pytest.mark.parametrize("kind", ["node", "instance", "group"])
def test_what_is_not_there_is_named(kind: str) -> None:
    with pytest.raises(NotFound, match=f"no {kind} “web9” in this cluster"):
        getattr(BASE, kind)("web9")


def test_an_empty_configuration_says_what_to_do() -> None:
    assert Config().is_empty
    with pytest.raises(NotFound, match="gnt-cluster init"):
        _ = Config().cluster


def test_a_name_is_given_once() -> None:
    config = BASE.apply([Put(instance("web1", "alpha"))])
    other = msgspec.structs.replace(instance("web1", "beta"), uuid="other")
    with pytest.raises(Conflict, match="already an instance named web1"):
        config.apply([Put(other)])
    swapped = config.apply([Delete(instance("web1", "alpha")), Put(other)])
    assert swapped.instance("web1").uuid == "other"


def test_the_configuration_before_stays_as_it_was() -> None:
    before = BASE.apply([Put(instance("web1", "alpha"))])
    after = before.apply([Delete(instance("web1", "alpha"))])
    assert [each.name for each in before.instances_on(NodeId("alpha"))] == ["web1"]
    assert after.instances_on(NodeId("alpha")) == ()
    assert after == BASE


def test_secondary_nodes_are_those_that_hold_the_disks_too() -> None:
    disk = Disk(
        uuid=DiskId("disk"), size=MiB(8), nodes=(NodeId("alpha"), NodeId("beta")),
        backing=FileBacking(path="/srv/disk", shared=False),
    )  # fmt: skip
    mirrored = {"disk_template": DiskTemplate.DRBD, "disks": (disk.uuid,)}
    web1 = msgspec.structs.replace(instance("web1", "alpha"), **mirrored)
    config = BASE.apply([Put(web1), Put(disk), Put(instance("web2", "beta"))])
    assert config.nodes_of(web1) == ("alpha", "beta")
    assert config.instances_with_secondary(NodeId("beta")) == (web1,)
    assert config.instances_with_secondary(NodeId("alpha")) == ()
    failed_over = msgspec.structs.replace(web1, primary_node=NodeId("beta"))
    config = config.apply([Put(failed_over)])
    assert config.nodes_of(failed_over) == ("beta", "alpha")
    assert config.instances_with_secondary(NodeId("beta")) == ()
    assert config.instances_with_secondary(NodeId("alpha")) == (failed_over,)
    assert config.secondary_nodes(config.instance("web2")) == ()


_steps = st.lists(
    st.tuples(
        st.sampled_from(["put", "delete"]), st.integers(1, 5), st.integers(1, 5),
        st.sampled_from(["alpha", "beta"]),
    ),
    max_size=30,
)  # fmt: skip


@given(_steps)
def test_indexes_agree_with_a_search(steps: list[tuple[str, int, int, str]]) -> None:
    config = BASE
    for what, uuid, name, primary in steps:
        thing = msgspec.structs.replace(
            instance(f"web{name}", primary), uuid=str(uuid), primary_node=NodeId(primary)
        )
        update: Update = Put(thing) if what == "put" else Delete(thing)
        try:
            config = config.apply([update])
        except Conflict:
            taken = {each.name for each in config.instances.values() if each.uuid != str(uuid)}
            assert thing.name in taken
    for primary in ("alpha", "beta"):
        found = [each for each in config.instances.values() if each.primary_node == primary]
        assert config.instances_on(NodeId(primary)) == tuple(
            sorted(found, key=lambda each: each.name)
        )
    for number in range(1, 6):
        name_ = InstanceName(f"web{number}")
        named = [each for each in config.instances.values() if each.name == name_]
        assert config.find_instance(name_) == (named[0] if named else None)
    rebuilt = Config().apply(
        [Put(config.cluster), *map(Put, (*config.groups.values(), *config.nodes.values()))]
        + [Put(each) for each in config.instances.values()]
    )
    assert rebuilt == config


def test_the_first_parts_of_a_name_will_do_if_they_are_of_no_other() -> None:
    app1 = instance("app1.example.com", "alpha")
    config = BASE.apply([Put(app1), Put(instance("app2.example.com", "alpha"))])
    assert config.instance("app1") == config.instance("app1.example") == app1
    assert config.find_instance("app1") is None
    for ref in ("app", "app1.exam", "", "."):
        with pytest.raises(NotFound):
            config.instance(ref)
    config = config.apply([Put(instance("app1.example.org", "alpha"))])
    with pytest.raises(
        NotFound, match=r"“app1” may be app1\.example\.com, app1\.example\.org: say"
    ):
        config.instance("app1")
    config = config.apply([Put(instance("app1", "alpha"))])
    assert config.instance("app1").name == "app1"


def test_a_slip_is_told_with_the_name_that_comes_near() -> None:
    with pytest.raises(NotFound, match=r"no node “alhpa” in this cluster\. Did you mean alpha\?"):
        BASE.node("alhpa")


def test_names_are_sorted_as_people_count() -> None:
    config = BASE.apply([Put(instance(f"web{n}", "alpha")) for n in (10, 9, 1, 2)])
    names = ["web1", "web2", "web9", "web10"]
    assert [each.name for each in config.sorted_instances()] == names
    assert [each.name for each in config.instances_on(config.node("alpha").uuid)] == names
