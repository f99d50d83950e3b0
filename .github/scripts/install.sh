#!/usr/bin/env bash
# Install pytest-kbrel: KBREL_INSTALL has the arguments of pip, one a line; `none` installs nothing. Without it
# the code in KBREL_SOURCE is installed, with the extras in KBREL_EXTRAS (such as `hf,openai`).
set -euo pipefail

if [[ "${KBREL_INSTALL:-}" == none ]]; then
  exit 0
fi
mapfile -t arguments < <(grep -v '^[[:space:]]*$' <<<"${KBREL_INSTALL:-}")
if ((${#arguments[@]} == 0)); then
  arguments=("$KBREL_SOURCE${KBREL_EXTRAS:+[$KBREL_EXTRAS]}")
fi
python -m pip --disable-pip-version-check install ${arguments[@]+"${arguments[@]}"}
