"""What the demonstration prints: acts, commands as typed, their output, and a verdict."""

import sys
import time

_DIM, _BOLD, _GREEN, _RED, _END = (
    ("\033[2m", "\033[1m", "\033[32m", "\033[31m", "\033[0m")
    if sys.stdout.isatty()
    else ("", "", "", "", "")
)


class Broken(Exception):
    """The story cannot go on."""


class Transcript:
    """Counts what did not hold."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self._start = time.monotonic()

    def act(self, title: str) -> None:
        print(f"\n{_BOLD}{title}{_END}", flush=True)

    def say(self, text: str) -> None:
        print(f"  {_DIM}{text}{_END}", flush=True)

    def command(self, prompt: str, line: str) -> None:
        print(f"  {prompt}# {_BOLD}{line}{_END}", flush=True)

    def output(self, text: str, seconds: float) -> None:
        for line in text.rstrip().splitlines():
            print(f"    {line}")
        print(f"    {_DIM}({seconds:.2f} s){_END}", flush=True)

    def good(self, what: str) -> None:
        """Tell of something that holds, or this would not have been reached."""
        self.check(holds=True, what=what)

    def check(self, holds: bool, what: str) -> None:
        mark = f"{_GREEN}✓{_END}" if holds else f"{_RED}✗{_END}"
        print(f"  {mark} {what}", flush=True)
        if not holds:
            self.failures.append(what)

    def verdict(self) -> int:
        """Print the end of the story; return the exit code."""
        seconds = time.monotonic() - self._start
        if not self.failures:
            print(f"\n{_GREEN}All of it held{_END}, in {seconds:.0f} s.", flush=True)
            return 0
        print(f"\n{_RED}{len(self.failures)} things did not hold{_END}, in {seconds:.0f} s:")
        for what in self.failures:
            print(f"  ✗ {what}")
        return 1
