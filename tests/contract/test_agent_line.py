"""An agent is asked over a socket, whatever is at its other end."""

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from common.errors import NodeFailure
from noded.hypervisor.kvm.agent_answers import parse_interfaces
from noded.hypervisor.kvm.agent_line import AgentRefused, AgentSilent, agent
from noded.hypervisor.kvm.user import ROOT
from tests.support.guest_agent import QEMU_GA, PretendedAgent, debians_agent
from tests.support.hypervisors import until

SHORT_S = 0.15
PING = "guest-ping"

Guest = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def ask(path: Path, command: str, *, patience_s: float = 5.0) -> Any:
    async def main() -> Any:
        async with agent(path, "web1", patience_s=patience_s) as line:
            return await line.ask(command, patience_s=patience_s)

    return asyncio.run(main())


def ask_guest(root: Path, guest: Guest, *, patience_s: float = SHORT_S) -> Any:
    """Ask what ``guest`` makes of its end of the line."""

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError):
                await guest(reader, writer)
        finally:
            writer.transport.abort()

    async def main() -> Any:
        path = root / "agent.sock"
        server = await asyncio.start_unix_server(served, path)
        try:
            async with agent(path, "web1", patience_s=patience_s) as line:
                return await line.ask(PING, patience_s=patience_s)
        finally:
            server.close()

    return asyncio.run(main())


async def number_of(reader: asyncio.StreamReader) -> int:
    """Return the number that has to come back."""
    order = json.loads((await reader.readline()).lstrip(b"\xff"))
    return int(order["arguments"]["id"])


async def answer_number(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b'\xff{"return": %d}\n' % await number_of(reader))


def after_the_number(answer: bytes) -> Guest:
    async def guest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answer_number(reader, writer)
        await reader.readline()
        writer.write(answer)
        await writer.drain()
        await reader.read()

    return guest


async def says_nothing(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()


async def hangs_up(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.readline()


async def talks_for_ever(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


async def tells_wrong_numbers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    number = await number_of(reader)
    while True:
        writer.write(b'\xff{"return": %d}\n' % (number + 1) + b"y" * 4096)
        await writer.drain()


@pytest.mark.parametrize(
    "guest",
    [
        says_nothing,
        hangs_up,
        talks_for_ever,
        tells_wrong_numbers,
        after_the_number(b""),
        after_the_number(b"{\n"),
        after_the_number(b"\xff\xfe\n"),
        after_the_number(b"[" * 60000 + b"\n"),
        after_the_number(b'{"return": "' + b"z" * (1 << 17) + b'"}\n'),
        after_the_number(b'{"return": 1, "error": 7}\n'),
    ],
)
def test_an_agent_that_says_nothing_of_use_is_silent_in_time(tmp_path: Path, guest: Guest) -> None:
    with pytest.raises(AgentSilent, match=r"web1") as caught:
        ask_guest(tmp_path, guest)
    assert len(caught.value.message) < 300


def test_what_an_agent_had_to_say_before_is_not_taken_for_an_answer(tmp_path: Path) -> None:
    async def guest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'{"return": "old"}\n\xff{"return": 7}\n{"return": "half of an')
        await answer_number(reader, writer)
        await reader.readline()
        writer.write(b'{"return": "new"}\n')
        await writer.drain()

    assert ask_guest(tmp_path, guest, patience_s=5.0) == "new"


def test_a_refusal_tells_the_agents_reason_and_no_terminal_what_to_do(tmp_path: Path) -> None:
    words = json.dumps({"error": {"desc": "\x1b[2J" + "no " * 500}}).encode()
    with pytest.raises(AgentRefused, match=r"refuses guest-ping: \\u001b\[2Jno no") as caught:
        ask_guest(tmp_path, after_the_number(words + b"\n"), patience_s=5.0)
    assert len(caught.value.message) < 300


def test_where_nobody_listens_the_line_is_closed(tmp_path: Path) -> None:
    with pytest.raises(AgentSilent, match="line to the agent in web1 is closed"):
        ask(tmp_path / "agent.sock", PING)


def test_one_session_after_another_is_served(tmp_path: Path) -> None:
    async def main() -> None:
        path, pretended = tmp_path / "agent.sock", PretendedAgent()
        async with pretended.at(path):
            for _ in range(3):
                async with agent(path, "web1") as line:
                    await line.ask("guest-fsfreeze-thaw")
        assert pretended.told == ["guest-fsfreeze-thaw"] * 3

    asyncio.run(main())


@pytest.mark.skipif(
    not QEMU_GA.exists(),
    reason="DEBIAN'S GUEST AGENT IS NOT UNPACKED (deploy/setup --test): it was not asked",
)
@pytest.mark.skipif(os.geteuid() != ROOT, reason="NOT ROOT: nobody's rights cannot be taken")
def test_debians_agent_answers_and_refuses() -> None:
    with debians_agent() as path:

        async def main() -> None:
            await until(path.exists)
            for _ in range(2):  # sessions, one after the other
                async with agent(path, "web1") as line:
                    told = await line.ask("guest-network-get-interfaces")
                    assert "lo" in [each["name"] for each in told]
                    parse_interfaces(told)
                    assert await line.ask("guest-fsfreeze-thaw") == 0
                    with pytest.raises(AgentRefused, match="guest-fsfreeze-freeze has been dis"):
                        await line.ask("guest-fsfreeze-freeze")
                    with pytest.raises(NodeFailure, match="no-such-command"):
                        await line.ask("no-such-command")

        asyncio.run(main())
