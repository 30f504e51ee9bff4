"""Whether metadata of DRBD 8.4 may become those of DRBD 9.

``drbdmeta`` converts them, but forgets which generation the bitmap belongs to, and with it what
this copy has and the other one lacks. So it may do so only where there is nothing to forget. A copy
that only followed when its node went down has nothing of that kind: what it missed since, or had
not confirmed yet, the other one has noted.
"""

_FLAGS = slice(4, 11)  # behind the generations: current, bitmap's, two former ones
_NONE = "0" * 16
_CONSISTENT, _PRIMARY, _ALL_DIRTY, _CRASHED = 0, 2, 4, 6


def why_not_converted(told: str) -> str:
    """Return what would be lost; nothing if nothing would.

    Args:
        told: by ``drbdmeta get-gi`` of metadata of 8.4: generations and flags, with colons between.
    """
    words = told.strip().split(":")
    flags = words[_FLAGS]
    if len(words) != _FLAGS.stop or set(flags) - {"0", "1"}:
        return "they cannot be read"
    is_on = [flag == "1" for flag in flags]
    if is_on[_PRIMARY] or is_on[_CRASHED]:
        return "the disk was in use when this node went down"
    if words[1] != _NONE:
        return "this copy has what the other one lacks"
    if is_on[_ALL_DIRTY] or not is_on[_CONSISTENT]:
        return "this copy is not good"
    return ""
