"""Faults in what clients of the coordinator are promised."""

from tests.mutate.fault import Fault

PARAMETERS = "coordinator/operations/ganeti/parameters.py"
SUBMIT = "coordinator/cli/submit.py"

CLIENTS = (
    Fault(
        "asked for and not done",
        "nobody believes that a parameter was obeyed which is not ours",
        PARAMETERS,
        "if not any(_equal(value, one) for one in (*_nothing(ganetis[name]), *harmless)):",
        "if False:",
        ("tests/unit/operations/test_operations.py",),
    ),
    Fault(
        "true taken for one",
        "a default is of its own type",
        PARAMETERS,
        "return bool(value == other) and type(value) is type(other)",
        "return bool(value == other)",
        ("tests/unit/operations/test_operations.py",),
    ),
    Fault(
        "one job for several",
        "a command does for each object what it was asked to",
        SUBMIT,
        "for name in chosen.names]",
        "for name in chosen.names[:1]]",
        ("tests/unit/cli/test_selection.py",),
    ),
    Fault(
        "cluster looked for by its new name",
        "a command asks before it does what cannot be taken back, whatever it is about",
        SUBMIT,
        'if asks and chosen is None and _kind(entry) != "cluster":',
        "if asks and chosen is None:",
        ("tests/unit/cli/test_asking_before.py",),
    ),
    Fault(
        "nobody asked",
        "what cannot be taken back is asked about",
        SUBMIT,
        "if not question or options.dry_run:",
        "if True:",
        ("tests/unit/cli/test_selection.py",),
    ),
    Fault(
        "options taken for values",
        "an option after one that lacks its value is not the value",
        "coordinator/cli/parser.py",
        'elif re.match(r"-[^-]", value) and value not in self._option_string_actions:',
        'elif value.startswith("-"):',
        ("tests/unit/cli/test_submit.py is_not_taken_for_one",),
    ),
    Fault(
        "command for nodes read as ours",
        "words of a command for nodes reach them as they are",
        "coordinator/cli/parser.py",
        'if word == "--" or (ends_early and not word.startswith("-")):',
        'if word == "--":',
        ("tests/unit/cli/test_remote.py",),
    ),
)
