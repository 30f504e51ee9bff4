"""A cluster as it is on its nodes' disks, made without running anything."""

import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from common.confd_snapshot import KEY_FILE
from common.messages import from_json, to_json
from common.model.cluster import Cluster
from common.model.commit import Commit, next_commit
from common.model.group import Group
from common.model.node import Node
from common.model.secret import AUTHORITY_CERTIFICATE, AUTHORITY_KEY, CONFD_KEY, Secret
from common.model.stamp import Stamp
from common.model.template import ENABLED_AT_FIRST, DiskTemplate
from common.names import ClusterId, ClusterName, Epoch, GroupId, GroupName, NodeId, NodeName
from common.paths import Paths
from common.tls.authority import issue, make_authority
from common.tls.certificate import read_pem
from common.tls.context import AUTHORITY, CERTIFICATE, KEY, Peer, check_identity
from common.tls.keys import KeyPair, make_key, make_request
from coordinator.operations.node.roster import roster_of
from coordinator.operations.node.ssconf import ssconf_files
from coordinator.state.rows import Put, settle
from coordinator.state.state import State, state_of
from noded.calls.grants import Grant
from noded.durable_file import read_if_there
from noded.identity.directory import MEMBER, Member
from noded.replica.store import ReplicaFile
from tests.support.disk import Tree

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota")
GROUP = "gantry"  # the volume group of each machine
CLUSTER = ClusterName("greek.example.com")
SHARED, LOCAL = "/srv/gantry/shared", "/srv/gantry/files"
GLUSTER = "/srv/gantry/gluster"
EVERY_TEMPLATE = tuple(dict.fromkeys((*ENABLED_AT_FIRST, *DiskTemplate)))  # shared files preferred
# TLS looks at the real clock, so the simulated one begins near it; always at the same hour,
# for runs to repeat.
BEGINNING = time.time() // 86_400 * 86_400


def ip_of(name: str) -> str:
    """Return the address of a machine: 192.0.2.1 for alpha, and so on."""
    return f"192.0.2.{NAMES.index(name) + 1}"


def uuid_of(name: str) -> str:
    """Return the UUID of a node of the first ones."""
    return f"00000000-0000-4000-8000-{NAMES.index(name) + 1:012x}"


def first_state(names: Sequence[str], candidates: int) -> State:
    """Return the state of a cluster whose first node is its master."""
    authority = _authority()
    group = Group(uuid=GroupId("00000000-0000-4000-8000-0000000000a0"), name=GroupName("default"))
    nodes = [
        Node(
            uuid=NodeId(uuid_of(name)), name=NodeName(name), primary_ip=ip_of(name),
            group=group.uuid, master_candidate=number < candidates,
            key=read_pem(_identity_files(name)[CERTIFICATE].decode()).key,
        )
        for number, name in enumerate(names)
    ]  # fmt: skip
    cluster = Cluster(
        uuid=ClusterId("00000000-0000-4000-8000-0000000000c0"), name=CLUSTER,
        master=nodes[0].uuid, shared_file_storage_dir=SHARED, file_storage_dir=LOCAL,
        gluster_storage_dir=GLUSTER,
        volume_group_name=GROUP,
        enabled_disk_templates=EVERY_TEMPLATE,
        candidate_pool_size=candidates,
    )  # fmt: skip
    secrets = (
        Secret(id=AUTHORITY_KEY, value=authority.key),
        Secret(id=AUTHORITY_CERTIFICATE, value=authority.certificate),
        Secret(id=CONFD_KEY, value="c0fd" * 10),
    )
    return state_of((cluster, group, *nodes, *secrets), Stamp())


@cache
def images(names: tuple[str, ...], candidates: int) -> dict[str, Tree]:
    """Return what each node of a new cluster has on its disk, as in epoch 1; making it is slow."""
    state = first_state(names, candidates)
    commit = next_commit(Stamp(), Epoch(1), tuple(settle(Put(i))[1] for i in state.items()))
    paths = Paths("/")
    common = {
        paths.grants: to_json(Grant(epoch=Epoch(1), master=state.config.master().name)),
        paths.roster: to_json(roster_of(state.stamped(commit.stamp))),
        paths.revoked_keys: b"",
    } | {paths.ssconf / name: text.encode() for name, text in ssconf_files(state.config).items()}
    of_candidates = {
        paths.replica: _replica(commit),
        paths.confd / KEY_FILE: state.secrets[CONFD_KEY].value.encode(),
        paths.cluster_rapi_users: b"",
    }
    return {
        node.name: _tree(
            common
            | {paths.identity / name: text for name, text in _identity_files(node.name).items()}
            | (of_candidates if node.master_candidate else {})
        )
        for node in state.config.sorted_nodes()
    }


def _tree(files: Mapping[Path, bytes]) -> Tree:
    tree: Tree = {}
    for path, content in files.items():
        place = tree
        for name in path.parts[1:-1]:
            below = place.setdefault(name, {})
            assert isinstance(below, dict)
            place = below
        place[path.name] = content
    return tree


def _replica(commit: Commit) -> bytes:
    with TemporaryDirectory() as directory:
        path = Path(directory, "state.sqlite")
        replica = ReplicaFile(path)
        replica.append((commit,))
        replica.close()  # which brings its log into the file
        return path.read_bytes()


@cache
def _authority() -> KeyPair:
    return make_authority(CLUSTER, now=BEGINNING)


@cache
def _identity_files(name: str) -> dict[str, bytes]:
    key = make_key()
    certificate = issue(
        _authority(), make_request(key, NodeName(name)), node=NodeName(name),
        addresses=[ip_of(name)], now=BEGINNING,
    )  # fmt: skip
    member = Member(
        cluster=CLUSTER, cluster_uuid=ClusterId("00000000-0000-4000-8000-0000000000c0"),
        node=NodeName(name), node_uuid=NodeId(uuid_of(name)),
    )  # fmt: skip
    return {
        KEY: key.encode(), CERTIFICATE: certificate.encode(),
        AUTHORITY: _authority().certificate.encode(), MEMBER: to_json(member),
    }  # fmt: skip


class Identity(NamedTuple):
    """What a machine shows to others: who it is, and of which cluster."""

    uuid: NodeId
    peer: Peer
    names: frozenset[str]  # for which its certificate is good
    issuer: str  # PEM of the authority that signed it
    trusted: str  # PEM of the authorities whose signature it takes


def read_identity(directory: Path) -> Identity | None:
    """Read what others see of a node's certificate; None for a node of no cluster."""
    names = (MEMBER, AUTHORITY, CERTIFICATE)
    text, authority, certificate = (read_if_there(f"{directory}/{name}") for name in names)
    if text is None or authority is None or certificate is None:
        return None
    member, trusted = from_json(text, Member, what=MEMBER), authority.decode()
    peer = check_identity_once(directory, member.node)
    issuer = _issuer(certificate, trusted)
    return Identity(member.node_uuid, peer, _names(certificate), issuer, trusted)


@cache
def _issuer(certificate: bytes, authorities: str) -> str:
    """Return which of several authorities has signed a certificate."""
    shown = x509.load_pem_x509_certificate(certificate)
    for pem in authorities.split(ssl.PEM_FOOTER + "\n"):
        whole = f"{pem}{ssl.PEM_FOOTER}\n"
        with suppress(InvalidSignature, ValueError):
            shown.verify_directly_issued_by(x509.load_pem_x509_certificate(whole.encode()))
            return whole
    raise AssertionError("no authority that this node trusts has signed its own certificate")


@cache
def _names(certificate: bytes) -> frozenset[str]:
    shown = x509.load_pem_x509_certificate(certificate)
    alternatives = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return frozenset(alternatives.get_values_for_type(x509.DNSName))


def check_identity_once(directory: Path, node: NodeName) -> Peer:
    """Do what ``check_identity`` does, once for the same files: the handshake is slow."""
    files = tuple(read_if_there(f"{directory}/{name}") for name in (KEY, CERTIFICATE, AUTHORITY))
    if (*files, node) not in _peers:
        _peers[*files, node] = check_identity(directory, node)
    return _peers[*files, node]


_peers: dict[tuple[bytes | NodeName | None, ...], Peer] = {}
