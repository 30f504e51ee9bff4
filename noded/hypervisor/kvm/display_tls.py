"""How QEMU is told to encrypt displays.

It reads its certificates while it starts, so they are lent to it until it answers. Source: qemu(1)
of 7.2, “TLS setup for network services” of its manual for the names of files.
"""

from common.model.kvm import KvmParameters

CREDENTIALS = "display-tls"  # what QEMU calls VNC's
VNC, SPICE = "vnc-tls", "spice-tls"  # directories below a guest's own
AUTHORITY, CERTIFICATE, KEY = "ca-cert.pem", "server-cert.pem", "server-key.pem"
FILES = (AUTHORITY, CERTIFICATE, KEY)


def vnc_credentials(parameters: KvmParameters, home: str) -> dict[str, str | bool]:
    """Return the object that QEMU encrypts VNC with; without a certificate nobody proves a name."""
    if not parameters.vnc_x509_path:
        return {"qom-type": "tls-creds-anon", "id": CREDENTIALS, "endpoint": "server"}
    return {
        "qom-type": "tls-creds-x509",
        "id": CREDENTIALS,
        "endpoint": "server",
        "dir": f"{home}/{VNC}",
        "verify-peer": parameters.vnc_x509_verify,
    }


def spice_options(parameters: KvmParameters, port: int, home: str) -> dict[str, str]:
    """Return where SPICE is offered, and with which certificate."""
    if not parameters.spice_use_tls:
        return {"port": str(port)}
    return {
        "tls-port": str(port),
        "x509-dir": f"{home}/{SPICE}",
        "tls-ciphers": parameters.spice_tls_ciphers,
    }
