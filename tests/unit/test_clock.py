import asyncio
import time

import pytest

from tests.support import clock
from tests.support.clock import Deadlock, EndlessRun, Unnoticed, simulate


def test_hour_passes_at_once() -> None:
    async def scenario() -> float:
        async with asyncio.TaskGroup() as group:
            for i in range(100):
                group.create_task(asyncio.sleep(36 * i))
        return asyncio.get_running_loop().time()

    started = time.perf_counter()
    assert simulate(scenario()) == pytest.approx(3564, abs=1e-3)
    assert time.perf_counter() - started < 1


def test_timers_fire_in_order_of_time() -> None:
    seen: list[float] = []

    async def note(after_s: float) -> None:
        await asyncio.sleep(after_s)
        seen.append(asyncio.get_running_loop().time())

    async def scenario() -> None:
        async with asyncio.TaskGroup() as group:
            for after_s in (0.3, 90_000.0, 0.1, 7.0):
                group.create_task(note(after_s))

    simulate(scenario(), limit_s=100_000)
    assert seen == [0.1, 0.3, 7.0, 90_000.0]


def test_steps_and_timers_come_in_the_order_of_asyncio() -> None:
    async def scenario() -> list[str]:
        loop, seen, ended = asyncio.get_running_loop(), list[str](), asyncio.Event()

        def step(number: int) -> None:
            seen.append(f"step {number}")
            if number % 4 == 0:
                loop.call_later(0, seen.append, f"timer of {number}")
            if number < 3 * clock.TURNS_AT_ONCE:
                loop.call_soon(step, number + 1)
            else:
                ended.set()

        step(0)
        await ended.wait()
        return seen

    assert simulate(scenario()) == asyncio.run(scenario())


def test_timeout_ends_a_wait() -> None:
    async def scenario() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(900):
                await asyncio.Event().wait()

    simulate(scenario())


def test_deadlock_names_the_waiting_tasks() -> None:
    async def inner(gate: asyncio.Event) -> None:
        await gate.wait()

    async def outer(gate: asyncio.Event) -> None:
        await inner(gate)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        beta = loop.create_task(outer(asyncio.Event()), name="beta")
        gamma = loop.create_task(asyncio.Lock().acquire(), name="gamma")
        await gamma
        await beta

    with pytest.raises(Deadlock) as caught:
        simulate(scenario())
    report = str(caught.value)
    beta = next(line for line in report.splitlines() if line.startswith("  beta: "))
    assert "outer (unit/test_clock.py:" in beta
    assert "> inner (" in beta
    assert "<asyncio.locks.Event object" in beta
    assert "for task beta" in report
    assert "gamma" not in report  # it is done


def test_endless_run_is_stopped() -> None:
    async def tick() -> None:
        while True:  # noqa: ASYNC110  # the mistake that the clock has to notice
            await asyncio.sleep(1)

    with pytest.raises(EndlessRun, match=r"after 60 s:\n.*tick \("):
        simulate(tick(), limit_s=60)


def test_busy_loop_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    async def spin() -> None:
        while True:  # noqa: ASYNC110  # the mistake that the clock has to notice
            await asyncio.sleep(0)

    monkeypatch.setattr(clock, "STEPS_WITHOUT_PROGRESS", 100)
    with pytest.raises(EndlessRun, match="busy at 0 s"):
        simulate(spin())


@pytest.mark.parametrize("held", [False, True])
def test_unnoticed_failure_fails_the_run(held: bool) -> None:
    tasks: list[asyncio.Task[None]] = []

    async def fail() -> None:
        raise ValueError("lost")

    async def scenario() -> None:
        task = asyncio.get_running_loop().create_task(fail())
        if held:
            tasks.append(task)
        await asyncio.sleep(1)

    with pytest.raises(Unnoticed, match="ValueError\\('lost'\\)"):
        simulate(scenario())


def test_thread_work_runs_in_the_loop_and_takes_no_time() -> None:
    order: list[str] = []

    def work() -> int:
        order.append("work")
        return 7

    def refuse() -> None:
        raise OSError("full")

    async def scenario() -> None:
        waiting = asyncio.ensure_future(asyncio.to_thread(work))
        await asyncio.sleep(0)
        order.append("other task")
        assert await waiting == 7
        with pytest.raises(OSError, match="full"):
            await asyncio.to_thread(refuse)
        assert asyncio.get_running_loop().time() == 0

    simulate(scenario())
    assert order == ["other task", "work"]


def test_sockets_between_tasks_work() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        await asyncio.sleep(30)
        writer.close()
        await writer.wait_closed()

    async def scenario() -> bytes:
        async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"hello\n")
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
        assert asyncio.get_running_loop().time() >= 30
        return answer

    assert simulate(scenario()) == b"hello\n"


def test_failure_of_the_scenario_comes_through() -> None:
    async def scenario() -> None:
        raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        simulate(scenario())
