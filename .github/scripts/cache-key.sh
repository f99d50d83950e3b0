#!/usr/bin/env bash
# Print `model` and `suites` for GITHUB_OUTPUT: digests of what a model is called and of the files of the suites.
# The store itself knows every model by its contents, so an old one is never wrong, only less useful.
set -euo pipefail

mapfile -t suites < <(grep -v '^[[:space:]]*$' <<<"${KBREL_SUITES:-suites}")
digest() { sha256sum | cut -c 1-16; }
model=$(printf '%s\n' "${KBREL_MODEL:-}" "${KBREL_MODEL_ARGS:-}" | digest)
suites=(${suites[@]+"${suites[@]%%::*}"})
# find takes a name that begins with a dash for an action, such as -delete, behind -- as well.
files=$(find -- ${suites[@]+"${suites[@]/#-/./-}"} -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum -- | digest)
echo "model=$model"
echo "suites=$files"
