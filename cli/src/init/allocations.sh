#!/usr/bin/env bash
# allocations.sh COMMAND…: fails if the command allocates more than the base did.
# THROUGH: only what happens in calls of methods that match, as `com\.acme\.`. BASE: the base's log; made if it is not there.
set -euo pipefail
BASE=${BASE:-base.lucce}
rm -f new.lucce
lucce run --events alloc --out new.lucce -- "$@"
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
