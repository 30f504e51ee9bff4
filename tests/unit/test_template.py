"""What the table of disk templates says."""

import pytest

from common.model.pool import PoolKind
from common.model.template import TRAITS, DiskTemplate
from common.names import MiB


def test_every_template_has_its_traits() -> None:
    assert list(TRAITS) == list(DiskTemplate)


@pytest.mark.parametrize("template", DiskTemplate)
def test_traits_are_found_by_the_text_of_a_template_too(template: DiskTemplate) -> None:
    assert TRAITS[str(template)] is template.traits


def test_an_instance_is_external_mirrored_or_stays_where_it_is() -> None:
    assert {t for t in DiskTemplate if t.traits.is_mirrored} == {"drbd"}
    assert {t for t in DiskTemplate if t.traits.holders == 1} == {"file", "plain"}
    assert {t for t in DiskTemplate if t.traits.is_external} == {
        "diskless", "sharedfile", "blockdev", "rbd", "ext", "gluster",
    }  # fmt: skip


def test_what_takes_no_space_asks_for_none() -> None:
    sizes = (MiB(100), MiB(200))
    spaces = {template: template.traits.disk_space(sizes) for template in DiskTemplate}
    assert {template for template, space in spaces.items() if not space} == {"diskless", "blockdev"}
    assert spaces[DiskTemplate.PLAIN] == 300
    assert spaces[DiskTemplate.DRBD] == 300 + 2 * 128, "each disk has its metadata beside it"


def test_disks_are_in_the_pools_that_nodes_report() -> None:
    kinds = {kind: {t for t in DiskTemplate if t.traits.space is kind} for kind in PoolKind}
    assert kinds[PoolKind.DIRECTORY] == {"file", "sharedfile", "gluster"}
    assert kinds[PoolKind.VOLUME_GROUP] == {"plain", "drbd"}
