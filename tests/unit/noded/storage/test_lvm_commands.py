from common.model.backing import LvmBacking
from common.names import DiskId, InstanceId, MiB
from noded.storage.lvm import commands
from noded.storage.lvm.volumes import NewVolume, Volume

DISK = DiskId("0e1b3c8a-1111-4222-8333-444455556666")
WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")
TAGS = f"--addtag gantry --addtag gantry.disk.{DISK} --addtag gantry.instance.{WEB1}"


def volume(kind: str = "disk", *, thin_pool: str = "") -> Volume:
    return Volume(LvmBacking(group="xenvg", name=f"{DISK}.{kind}", thin_pool=thin_pool), DISK, WEB1)


def test_new_volume_is_marked_as_holding_old_data() -> None:
    line = " ".join(commands.create(NewVolume(volume(), MiB(128)), ("/dev/sda",)))
    assert line == (
        f"lvcreate --yes --setactivationskip y {TAGS} --activate y --ignoreactivationskip --addtag "
        "gantry.zero-from.0 --wipesignatures n --zero n --size 128m "
        f"--name {DISK}.disk xenvg /dev/sda"
    )


def test_stripes_are_asked_for_where_there_are_several() -> None:
    striped = commands.create(NewVolume(volume(), MiB(128), stripes=2, stripe_kib=64))
    assert "--stripes 2 --stripesize 64k" in " ".join(striped)
    assert "--stripesize" not in commands.create(NewVolume(volume(), MiB(128), stripe_kib=64))


def test_thin_volume_is_as_its_pool_makes_it() -> None:
    line = " ".join(commands.create(NewVolume(volume(thin_pool="thin"), MiB(128))))
    assert line == (
        f"lvcreate --yes --setactivationskip y {TAGS} --activate n --type thin --thinpool thin "
        f"--virtualsize 128m --name {DISK}.disk xenvg"
    )


def test_any_number_of_volumes_is_changed_by_one_command() -> None:
    both = (volume("data"), volume("meta"))
    for command in (commands.remove, commands.finish, commands.activate, commands.deactivate):
        assert command(both)[-2:] == (f"xenvg/{DISK}.data", f"xenvg/{DISK}.meta")
    assert commands.script([("a", "b"), ("c",)]) == b"a b\nc\n"
