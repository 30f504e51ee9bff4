"""The REST interfaces of all candidates show clients the cluster's certificate, once it has one."""

import asyncio
import datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from common.errors import InvalidRequest
from common.tls.rest import make_pair
from coordinator.operations.cluster.renew_crypto import RenewCrypto
from coordinator.operations.node.modify import ModifyNode
from tests.sim.settings import GAMMA
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.image import BEGINNING


def pair_with(key: rsa.RSAPrivateKey) -> str:
    """Return a key and its certificate, as ``make_pair`` does, of another kind of key."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "weak.example.com")])
    start = datetime.datetime.fromtimestamp(BEGINNING, datetime.UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name)
        .public_key(key.public_key()).serial_number(7)
        .not_valid_before(start).not_valid_after(start + datetime.timedelta(days=9))
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return (private + certificate.public_bytes(serialization.Encoding.PEM)).decode()


MINE = make_pair("rest.example.com", (), BEGINNING)
OTHER = make_pair("other.example.com", (), BEGINNING)
WEAK = pair_with(rsa.generate_private_key(65537, 1024))
KEY, CERTIFICATE = MINE.split("-----BEGIN CERT")[0], "-----BEGIN CERT" + MINE.split("BEGIN CERT")[1]


def shown_on(cluster: SimulatedCluster) -> list[str | None]:
    """Return what each node shows clients, None where that is its own."""
    files = [machine.paths.cluster_rapi_certificate for machine in cluster.machines.values()]
    return [file.read_text() if file.exists() else None for file in files]


async def renew(cluster: SimulatedCluster, **wishes: Any) -> None:
    await cluster.run(RenewCrypto(**wishes))
    await asyncio.sleep(0.9)


def test_candidates_show_what_an_operator_has_brought_until_there_is_another() -> None:
    async def story() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            assert shown_on(cluster) == [None] * 3
            await renew(cluster, rapi_certificate=MINE)
            assert shown_on(cluster) == [MINE, MINE, None]
            job = max(cluster.state.jobs)
            ((ops, text),) = await cluster.master.luxi("QueryJobs", [job], ["ops", "oplog"])
            assert ops[0]["rapi_certificate"] == "<secret>"
            assert "PRIVATE" not in str(text)
            await cluster.run(ModifyNode(node_name=GAMMA, master_candidate=True))
            await asyncio.sleep(0.9)
            assert shown_on(cluster) == [MINE] * 3
            await cluster.crash_master()
            await cluster.take_over("beta")
            await cluster.run(ModifyNode(node_name=GAMMA, master_candidate=False))
            await renew(cluster, new_rapi_certificate=True)
            alphas, betas, gammas = shown_on(cluster)
            assert (alphas, gammas) == (betas, None)
            assert alphas not in (MINE, None)

    simulate(story())


@pytest.mark.parametrize(
    ("wishes", "match"),
    [
        ({"rapi_certificate": MINE, "new_rapi_certificate": True}, "not both"),
        ({"rapi_certificate": "nonsense"}, "has to hold a private key without a password"),
        ({"rapi_certificate": KEY}, "has to hold a private key"),
        ({"rapi_certificate": CERTIFICATE}, "has to hold a private key"),
        ({"rapi_certificate": KEY + OTHER.split("-----END PRIVATE KEY-----\n")[1]},
         "is not that of the first certificate"),
        ({"rapi_certificate": WEAK}, "No server can use the certificate: EE_KEY_TOO_SMALL"),
        ({"rapi_certificate": make_pair("old", (), BEGINNING - 4000 * 86_400)},
         "The certificate ended at 20"),
        ({}, "--new-rapi-certificate"),
    ],
)  # fmt: skip
def test_what_could_not_be_shown_is_refused_and_changes_nothing(
    wishes: dict[str, Any], match: str
) -> None:
    async def story() -> None:
        async with simulated_cluster(nodes=1) as cluster:
            with pytest.raises(InvalidRequest, match=match):
                await renew(cluster, **wishes)
            assert shown_on(cluster) == [None]

    simulate(story())


def test_it_is_roots_to_say_what_clients_are_shown() -> None:
    assert RenewCrypto(rapi_certificate=MINE).is_for_root()
    assert RenewCrypto(new_rapi_certificate=True).is_for_root()
    assert not RenewCrypto(node_certificates=True).is_for_root()
