"""Keeping what is confidential out of what a script says."""

HIDDEN = b"********"
SHORTEST = 4  # bytes; less than that is in any text, and no secret


class Mask:
    """Hides values of parameters wherever they stand, and each line of one that has several."""

    def __init__(self, secrets: tuple[str, ...]) -> None:
        lines = {line.strip().encode() for secret in secrets for line in secret.splitlines()}
        self._secrets = sorted((each for each in lines if len(each) >= SHORTEST), key=len)[::-1]

    def hide(self, line: bytes) -> bytes:
        for secret in self._secrets:
            line = line.replace(secret, HIDDEN)
        return line
