"""What is no argument of a command: values that are read from files, and secrets."""

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run


def test_tags_come_from_a_file_too(
    run: Run, submitted: list[list[dict[str, object]]], tmp_path: Path
) -> None:
    (tmp_path / "tags").write_text("blue\n\n rack:7 \n")
    assert run(f"gnt-node add-tags --from {tmp_path}/tags beta green").code == 0
    assert submitted[0][0]["tags"] == ["green", "blue", "rack:7"]
    ran = run("gnt-node add-tags beta")
    assert (ran.code, ran.out) == (2, "")
    assert "Say which tags" in ran.err
    assert "cannot be read" in run("gnt-node add-tags --from /nowhere beta").err


def test_a_secret_comes_from_a_file(
    run: Run, submitted: list[list[dict[str, object]]], tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("gantry-join.x\n")
    line = f"gnt-node add beta --address 192.0.2.2 --token-file {tmp_path}/token"
    assert run(line).code == 0
    assert submitted[0][0]["token"] == "gantry-join.x"
    ran = run("gnt-node add beta --address 192.0.2.2 --token-file /nowhere")
    assert (ran.code, ran.out) == (2, "")
    assert "--token-file: The file “/nowhere” cannot be read: No such file" in ran.err


def test_a_secret_comes_over_ssh(
    run: Run,
    submitted: list[list[dict[str, object]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # where nobody but this ssh is
    ssh = tmp_path / "ssh"
    line = "gnt-node add beta --address 192.0.2.2 --ssh root@beta"
    assert (run(line).code, run(line).err) == (
        7,
        "Failure: This machine has no ssh; give --token-file instead.\n",
    )
    ssh.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/words\necho Welcome!\necho gantry-join.x\n')
    ssh.chmod(0o755)
    assert run(line).code == 0
    assert submitted[0][0]["token"] == "gantry-join.x"
    assert (tmp_path / "words").read_text() == "-T -- root@beta gantry join-token\n"
    for code, told in ((255, "ssh could not get to root@beta"), (3, "failed on root@beta with 3")):
        ssh.write_text(f"#!/bin/sh\nexit {code}\n")
        ran = run(line)
        assert ran.code == 7
        assert told in ran.err
    ran = run("gnt-node add beta --address 192.0.2.2 --ssh=-oProxyCommand=boo")
    assert (ran.code, ran.out) == (2, "")
    assert "“-oProxyCommand=boo” is no host" in ran.err


def test_a_file_of_key_and_certificate_is_read_whole(
    run: Run, submitted: list[list[dict[str, object]]], tmp_path: Path
) -> None:
    file = tmp_path / "pair.pem"
    file.write_text("-----BEGIN\nkey\n-----BEGIN\ncertificate\n")
    assert run(f"gnt-cluster renew-crypto --rapi-certificate {file}").code == 0
    ((order,),) = submitted
    assert order["rapi_certificate"] == "-----BEGIN\nkey\n-----BEGIN\ncertificate"
    for text, told in (("", "is empty"), ("x" * 100_001, "is larger than 100000 bytes")):
        file.write_text(text)
        ran = run(f"gnt-cluster renew-crypto --rapi-certificate {file}")
        assert (ran.code, told in ran.err) == (2, True)
    assert len(submitted) == 1
