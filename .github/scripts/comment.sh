#!/usr/bin/env bash
# Print the comment about the report folder KBREL_OUTPUT. Where a run left no report, or could not even install
# pytest-kbrel, it says that, so that the verdict of an earlier run does not stay.
#
# KBREL_NAME    tells the comments of several gates on one pull request apart
# KBREL_LINK    page of the job
# KBREL_COMMIT  the commit that was gated
set -euo pipefail

output=${KBREL_OUTPUT:-kbrel-report}
check() {
  if [[ -n "$2" && ! "$2" =~ ^$3$ ]]; then
    echo "$1: found '$2'; allowed: $4" >&2
    exit 4
  fi
}
check KBREL_NAME "${KBREL_NAME:-}" '[A-Za-z0-9._-]{1,60}' "up to 60 letters, digits, '.', '-' and '_'"
check KBREL_LINK "${KBREL_LINK:-}" 'https?://[A-Za-z0-9._~:/?#@!$&*+,;=%-]{1,500}' "an address that begins with https:// or http://"
check KBREL_COMMIT "${KBREL_COMMIT:-}" '[0-9a-f]{7,64}' "7 to 64 hexadecimal digits"
if [[ -f "$output/report.json" ]] && python -c 'import pytest_kbrel.cli' 2>/dev/null; then
  exec python -m pytest_kbrel.cli comment "--name=${KBREL_NAME:-}" "--link=${KBREL_LINK:-}" "--commit=${KBREL_COMMIT:-}" -- "$output"
fi
cat <<END
<!-- pytest-kbrel${KBREL_NAME:+: $KBREL_NAME} -->
## Knowledge gates: no report

The run ended before it wrote a report. Its log may say why${KBREL_LINK:+: [the run]($KBREL_LINK)}.
END
