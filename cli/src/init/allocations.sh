#!/usr/bin/env bash
# allocations.sh COMMAND…: fails if the command allocates more than the base did.
# THROUGH: only what happens in calls of methods that match, as `com\.acme\.`. BASE: the base's log; made if it is not there.
# ONLY: the main class or archive to record, if the command starts several JVMs.
set -euo pipefail
BASE=${BASE:-base.lucce}
rm -f new.lucce new-*.lucce
lucce run --events alloc ${ONLY:+--opt only="$ONLY"} --out new.lucce -- "$@"
if compgen -G 'new-*.lucce' >/dev/null; then
    echo "the command started several JVMs: set ONLY to the main class of one" >&2
    exit 2
fi
lucce check new.lucce
gate() {
    lucce gate new.lucce --base "$1" ${THROUGH:+--through "$THROUGH"} --max-growth 3% --no-lines \
        --junit gate.xml --markdown gate.md
}
if [ ! -f "$BASE" ]; then
    gate new.lucce    # a run that cannot be judged is no base
    cp new.lucce "$BASE"
    echo "no base to compare with: this run is the base from now on"
    exit 0
fi
gate "$BASE"
