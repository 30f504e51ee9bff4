"""A node is taken in over ssh: with a key that it trusts, and a host key that the master knows."""

from tests.lab.stage import Stage, said

KEY = "/root/.ssh/operator"
ADD = "gnt-node add --address 10.78.0.13 --ssh root@gamma gamma"
CONFIG = f"Host gamma\n  IdentityFile {KEY}\n  BatchMode yes\n"


def test_a_node_joins_over_ssh(stage: Stage) -> None:
    assert "exit 0" in said(stage.alpha, "gnt-node remove gamma")
    stage.alpha.run(f"ssh-keygen -q -t ed25519 -N '' -f {KEY}")
    stage.alpha.run("cat >/root/.ssh/config", stdin=CONFIG)
    try:
        refused = said(stage.alpha, ADD)
        assert "Host key verification failed" in refused
        assert "ssh could not get to root@gamma" in refused

        host_key = stage.gamma.run("cut -d' ' -f1,2 /etc/ssh/ssh_host_ed25519_key.pub")
        stage.alpha.run("cat >/root/.ssh/known_hosts", stdin=f"gamma {host_key}")
        trusted = stage.alpha.run(f"cat {KEY}.pub")
        stage.gamma.run("cat >>/root/.ssh/authorized_keys", stdin=trusted)
        assert "exit 0" in said(stage.alpha, ADD)
    finally:
        stage.alpha.run(f"rm -f {KEY} {KEY}.pub /root/.ssh/config /root/.ssh/known_hosts")
        stage.gamma.run("sed -i '2,$d' /root/.ssh/authorized_keys")
    assert "ERROR" not in stage.verify()
