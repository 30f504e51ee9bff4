"""Fields that a verification hands on to those of its parts."""

from typing import Annotated

from coordinator.operations.parameter import hidden

NamedCodes = Annotated[bool, hidden("name the code of each finding")]
IgnoredCodes = Annotated[tuple[str, ...], hidden("codes that count as warnings")]
ToldChecks = Annotated[bool, hidden("tell what is looked at")]
SimulatedErrors = Annotated[bool, hidden("tell one error of each code")]
SkippedChecks = Annotated[tuple[str, ...], hidden("names of checks to leave out")]
ResultIsFindings = Annotated[
    bool, hidden("result: what was found, instead of whether there is no error")
]
