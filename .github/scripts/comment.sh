#!/usr/bin/env bash
# Print the comment about the report folder KBREL_OUTPUT. Where a run left no report, or could not even install
# pytest-kbrel, it says that, so that the verdict of an earlier run does not stay.
#
# KBREL_NAME    tells the comments of several gates on one pull request apart
# KBREL_LINK    page of the job
# KBREL_COMMIT  the commit that was gated
set -euo pipefail

output=${KBREL_OUTPUT:-kbrel-report}
if [[ -f "$output/report.json" ]] && python -c 'import pytest_kbrel.cli' 2>/dev/null; then
  exec python -m pytest_kbrel.cli comment "$output" "--name=${KBREL_NAME:-}" "--link=${KBREL_LINK:-}" "--commit=${KBREL_COMMIT:-}"
fi
cat <<END
<!-- pytest-kbrel${KBREL_NAME:+: $KBREL_NAME} -->
## Knowledge gates: no report

The run ended before it wrote a report. Its log may say why${KBREL_LINK:+: [the run]($KBREL_LINK)}.
END
