#!/usr/bin/env bash
# Runs `lucce gate` with the inputs of action.yml, and appends gate.md to the job's summary. Ends as the command does.
set -euo pipefail
words=(--max-growth "$MAX_GROWTH" --junit gate.xml --markdown gate.md)
while IFS= read -r log; do
    [ -z "$log" ] || words+=(--base "$log")
done <<<"$BASE"
[ -z "$THROUGH" ] || words+=(--through "$THROUGH")
[ "$WITH_LINES" = true ] || words+=(--no-lines)
while IFS= read -r log; do
    [ -z "$log" ] || words+=("$log")
done <<<"$NEW"
rm -f gate.md gate.xml
status=0
"$LUCCE" gate "${words[@]}" || status=$?
if [ -f gate.md ]; then
    cat gate.md >>"$GITHUB_STEP_SUMMARY"
else
    echo "lucce gate ended with $status; the job's log has the reason" >>"$GITHUB_STEP_SUMMARY"
fi
exit "$status"
