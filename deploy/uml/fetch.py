"""Fetch and unpack packages of a release of Debian, which need not be this machine's."""

from pathlib import Path

from deploy.uml.command import Trouble, run
from deploy.uml.place import DEBIAN_12

KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
DOWNLOAD_S = 300.0


def fetch(packages: tuple[str, ...], release: str, into: Path) -> None:
    """Unpack the newest version of each package into a new directory.

    Raises:
        Trouble: one cannot be had.
    """
    download(packages, release, into)
    for package in into.glob("*.deb"):
        run(("dpkg-deb", "--extract", str(package), str(into)))
        package.unlink()


def download(packages: tuple[str, ...], release: str, into: Path) -> None:
    """Put the newest version of each package, as a file, into a new directory.

    Raises:
        Trouble: one cannot be had.
    """
    into.mkdir()
    apt: tuple[str, ...] = ("apt-get", "-q", "-o", "APT::Sandbox::User=root")
    if release != DEBIAN_12:
        apt = (*apt, *_foreign(release, into.with_name(f"{into.name}.lists")))
        run((*apt, "update", "-o", "APT::Update::Error-Mode=any"), timeout_s=DOWNLOAD_S)
    run(("env", "-C", str(into), *apt, "download", *packages), timeout_s=DOWNLOAD_S)


def sources() -> list[str]:
    """Return this machine's own sources of Debian 12: a mirror may be all that it reaches.

    Raises:
        Trouble: it has none.
    """
    archive()
    return sorted(f"deb {uri} {suite} main" for uri, suite in _archives())


def archive() -> str:
    """Return the address from which this machine has Debian 12 itself.

    Raises:
        Trouble: it has none.
    """
    for uri, suite in _archives():
        if suite == DEBIAN_12:
            return uri
    raise Trouble(f"apt on this machine has no source of Debian's {DEBIAN_12}; add one.")


def _foreign(release: str, directory: Path) -> tuple[str, ...]:
    """Return apt's options for another release from the same archive, with lists of their own."""
    uri = archive()
    (directory / "lists/partial").mkdir(parents=True)
    source = directory / "sources.list"
    source.write_text(f"deb [signed-by={KEYS}] {uri} {release} main\n")
    settings = {
        "Dir::Etc::SourceList": source,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": directory / "lists",
        "Dir::Cache": directory,
        "Acquire::Languages": "none",
    }
    return tuple(word for key, value in settings.items() for word in ("-o", f"{key}={value}"))


def _archives() -> set[tuple[str, str]]:
    """Return URI and suite of each of this machine's sources of Debian 12's main component."""
    wanted = ("$(ORIGIN)", "$(CODENAME)", "$(COMPONENT)", "$(REPO_URI)")
    listing = run(("apt-get", "indextargets", "--format", " ".join(wanted), "Created-By: Packages"))
    return {
        (uri, suite)
        for origin, suite, component, uri in (line.split(" ", 3) for line in listing.splitlines())
        if origin == "Debian" and suite.startswith(DEBIAN_12) and component == "main"
    }
