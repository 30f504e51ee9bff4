"""What a guest is told at its first boot."""

import json
from typing import Any

import pytest

from noded.images.seed import BadSetting, seed_files

TOLD = {
    "INSTANCE_NAME": "web1.example.com", "INSTANCE_UUID": "1111", "NIC_COUNT": "2",
    "NIC_0_MAC": "aa:00:00:00:00:01", "NIC_0_IP": "192.0.2.7",
    "NIC_1_MAC": "aa:00:00:00:00:02",
}  # fmt: skip


def read(name: str, **more: str) -> Any:
    text = seed_files(TOLD | {f"OSP_{key.upper()}": value for key, value in more.items()})[name]
    return json.loads(text.decode().removeprefix("#cloud-config\n"))


def test_a_guest_is_told_its_name() -> None:
    assert read("meta-data") == {"instance-id": "1111", "local-hostname": "web1.example.com"}
    assert read("meta-data", hostname="www")["local-hostname"] == "www"


def test_a_user_is_made_with_keys_and_may_become_root() -> None:
    (user,) = read("user-data", user="jane", ssh_key="ssh-ed25519 A jane\nssh-rsa B")["users"]
    assert user["name"] == "jane"
    assert user["ssh_authorized_keys"] == ["ssh-ed25519 A jane", "ssh-rsa B"]
    assert user["lock_passwd"]
    assert read("user-data", ssh_key="ssh-rsa B")["ssh_authorized_keys"] == ["ssh-rsa B"]


def test_a_password_is_taken_plain_or_hashed() -> None:
    told = read("user-data", user="jane", password="$6$salt$hash")
    assert told["chpasswd"]["users"] == [
        {"name": "jane", "password": "$6$salt$hash", "type": "hash"}
    ]
    assert read("user-data", password="open: sesame")["password"] == "open: sesame"


def test_user_data_is_taken_as_it_is() -> None:
    files = seed_files(TOLD | {"OSP_USER_DATA": "#!/bin/sh\necho hello\n"})
    assert files["user-data"] == b"#!/bin/sh\necho hello\n"


def test_nics_have_the_addresses_of_the_instance() -> None:
    network = read("network-config", gateway="192.0.2.1", nameservers="192.0.2.2,2001:db8::1")
    assert network["ethernets"] == {
        "nic0": {
            "match": {"macaddress": "aa:00:00:00:00:01"},
            "addresses": ["192.0.2.7/24"],
            "gateway4": "192.0.2.1",
            "nameservers": {"addresses": ["192.0.2.2", "2001:db8::1"]},
        },
        "nic1": {"match": {"macaddress": "aa:00:00:00:00:02"}, "dhcp4": True},
    }
    assert read("network-config", prefix="28")["ethernets"]["nic0"]["addresses"] == ["192.0.2.7/28"]


def test_addresses_of_both_versions_have_prefixes_and_gateways_of_their_own() -> None:
    def nic(address: str, **more: str) -> Any:
        told = TOLD | {"NIC_0_IP": address} | more
        return json.loads(seed_files(told)["network-config"])["ethernets"]["nic0"]

    given = {"OSP_PREFIX": "28", "OSP_PREFIX6": "56"}
    assert nic("192.0.2.7", **given)["addresses"] == ["192.0.2.7/28"]
    assert nic("2001:db8::7", **given)["addresses"] == ["2001:db8::7/56"]
    assert nic("2001:db8::7", OSP_PREFIX="28")["addresses"] == ["2001:db8::7/64"]
    network = {
        "NIC_0_NETWORK_SUBNET": "192.0.2.0/26", "NIC_0_NETWORK_GATEWAY": "192.0.2.1",
        "NIC_0_NETWORK_SUBNET6": "2001:db8::/48", "NIC_0_NETWORK_GATEWAY6": "2001:db8::1",
    }  # fmt: skip
    assert nic("192.0.2.7", **given, **network) | {"match": ""} == {
        "match": "", "addresses": ["192.0.2.7/26"], "gateway4": "192.0.2.1",
    }  # fmt: skip
    assert nic("2001:db8::7", **given, **network) | {"match": ""} == {
        "match": "", "addresses": ["2001:db8::7/48"], "gateway6": "2001:db8::1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"gateway": "router"}, "gateway cannot be “router”: it is no IP address"),
        ({"nameservers": "192.0.2.2 dns"}, "nameservers cannot be “dns”"),
        ({"prefix": "99"}, "prefix cannot be “99”"),
        ({"prefix": "64"}, "prefix cannot be “64”"),
    ],
)
def test_what_is_no_address_is_refused(wrong: dict[str, str], match: str) -> None:
    with pytest.raises(BadSetting, match=match):
        read("network-config", **wrong)


def test_nothing_in_a_value_becomes_something_else() -> None:
    nasty = 'x"}]\nruncmd: [reboot]\n#'
    assert read("user-data", user=nasty)["users"][0]["name"] == nasty
