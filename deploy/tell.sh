# Shared by programs in this directory: how they speak and help, and how they call apt-get and pip.
export LC_ALL=C.UTF-8
PYTHON=/usr/bin/python3.11

# Run Debian's pip, which need not be installed for that, with TARGET_PYTHON if there is any.
pip() {
    quietly "${TARGET_PYTHON:-$PYTHON}" "$PIP/pip" --disable-pip-version-check --no-input "$@"
}

find_pip() { PIP=$(compgen -G '/usr/share/python-wheels/pip-*.whl'); }

apt_get() {
    DEBIAN_FRONTEND=noninteractive quietly apt-get -y -q -o DPkg::Lock::Timeout=300 \
        -o APT::Sandbox::User=root "$@" </dev/null
}

# Run a command; show what it said only if it fails.
quietly() {
    local said
    said=$("$@" 2>&1) || { tail -n 8 <<<"$said" | sed 's/^/    /' >&2 && return 1; }
}

# Run a function and print its name, what it said through say, and how long it took.
step() {
    local began=$EPOCHREALTIME
    done_what="already there"
    "$2"
    printf '  ✓ %-16s %s (%s s)\n' "$1" "$done_what" \
        "$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')"
}

say() { done_what=$*; }

fail() {
    echo "deploy/${0##*/}: $*" >&2
    exit 1
}

# Have a Python module show its help if it is asked to, before anything is installed for its sake.
# Usage: help_if_asked MODULE ARGUMENT ...
help_if_asked() {
    [[ " ${*:2} " == *" -h "* || " ${*:2} " == *" --help "* ]] || return 0
    exec "$(command -v .venv/bin/python python3 | head -n 1)" -m "$@"
}
