"""Find tests that say what is to happen, and never have it happen."""

from opcode import opmap
from types import CodeType

_LOADS = opmap["LOAD_FAST"]


def untold(code: CodeType) -> list[str]:
    """Name the functions within a test that nothing in it uses: a story that is not told.

    A function's bytecode is pairs of an operation and its argument, here the number of a local
    variable. What another function within uses is none of those.
    """
    inner = {const.co_name for const in code.co_consts if isinstance(const, CodeType)}
    here = {name: number for number, name in enumerate(code.co_varnames) if name in inner}
    if not here:
        return []
    used = {
        argument
        for operation, argument in zip(code.co_code[::2], code.co_code[1::2], strict=True)
        if operation == _LOADS
    }
    return [name for name, number in here.items() if number not in used]
