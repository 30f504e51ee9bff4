"""Completion for bash: one function, and what it has to know of each command."""

from collections.abc import Iterator

from deploy.completion.table import Line, Table, area_names

_FUNCTION = r"""# Completion of Gantry's commands for bash. Made by deploy/completion.

_gantry_names() {
    case $1 in
    @instances) gnt-instance list --no-headers -o name 2>/dev/null ;;
    @nodes) gnt-node list --no-headers -o name 2>/dev/null ;;
    @jobs) gnt-job list --no-headers -o id 2>/dev/null ;;
    @fields) "$2" list-fields --no-headers --separator=' ' 2>/dev/null | cut -d' ' -f1 ;;
    *) printf '%s\n' "$@" ;;
    esac
}

_gantry() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local program=${COMP_WORDS[0]##*/} at=1 commands='' options='' words='' values=''
    if [[ $program == gantry && $COMP_CWORD -gt 1 ]]; then
        case ${COMP_WORDS[1]} in
        @AREAS@) program=gnt-${COMP_WORDS[1]} at=2 ;;
        esac
    fi
    local command=${COMP_WORDS[at]}
    _gantry_know "$program" "$command" "$previous"
    COMPREPLY=()
    if ((COMP_CWORD == at)); then
        words=$commands
    elif [[ $values ]]; then
        words=$values
    elif [[ $current == -* ]]; then
        words=$options
    fi
    if [[ $words == @files ]]; then
        compopt -o default
        return
    fi
    [[ $words != @* ]] || words=$(_gantry_names "$words" "$program")
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

"""


def bash_script(table: Table) -> str:
    """Return a script to be sourced by bash."""
    know = "\n".join(_knowledge(table))
    return (
        _FUNCTION.replace("@AREAS@", " | ".join(area_names()))
        + f"_gantry_know() {{\n{know}\n}}\n\ncomplete -F _gantry {' '.join(table)}\n"
    )


def _knowledge(table: Table) -> Iterator[str]:
    yield "    case $1 in"
    for program, lines in table.items():
        names = [*area_names(), *lines] if program == "gantry" else list(lines)
        yield f"    {program}) commands='{' '.join(names)}' ;;"
    yield '    esac\n    case "$1 $2" in'
    for program, lines in table.items():
        for name, line in lines.items():
            yield f"    '{program} {name}')"
            yield from _line(line)
            yield "        ;;"
    yield "    esac"


def _line(line: Line) -> Iterator[str]:
    flags = [flag for option in line.options for flag in option.flags]
    yield f"        options='{' '.join(flags)}' words='{' '.join(line.words)}'"
    valued = [option for option in line.options if option.values]
    if valued:
        yield "        case $3 in"
        for option in valued:
            yield f"        {' | '.join(option.flags)}) values='{' '.join(option.values or ())}' ;;"
        yield "        esac"
