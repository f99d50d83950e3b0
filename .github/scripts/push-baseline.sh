#!/usr/bin/env bash
# Commit the files of a blessed baseline in KBREL_BLESSED as KBREL_BASELINE, and push them to KBREL_BRANCH. Nothing of
# the branch is run. The push fails if the branch has moved on meanwhile.
set -euo pipefail

if [[ ! "$KBREL_BASELINE" =~ ^[A-Za-z0-9_][A-Za-z0-9._-]*$ ]]; then
  echo "KBREL_BASELINE: found '$KBREL_BASELINE'; allowed: the name of a baseline, in letters, digits, '.', '-', '_'" >&2
  exit 4
fi
folder=baselines/$KBREL_BASELINE
if [[ -L baselines || -L "$folder" ]]; then
  echo "$folder: is a symbolic link; allowed: a folder" >&2
  exit 4
fi
# The job that blessed ran code of the branch.
files=("$KBREL_BLESSED/baseline.json" "$KBREL_BLESSED"/outcomes-*.jsonl.xz)
for file in "${files[@]}"; do
  if [[ -L "$file" || ! -f "$file" || ! "${file##*/}" =~ ^(baseline\.json|outcomes-[0-9a-f]{12}\.jsonl\.xz)$ ]]; then
    echo "$file: found no file of a baseline; allowed: baseline.json and outcomes-DIGEST.jsonl.xz" >&2
    exit 4
  fi
done
mkdir -p -- "$folder"
rm -f -- "$folder"/baseline.json "$folder"/outcomes-*.jsonl.xz
cp -- "${files[@]}" "$folder"
git add --all -- "$folder"
git -c user.name="github-actions[bot]" -c user.email="41898282+github-actions[bot]@users.noreply.github.com" \
  commit --quiet --message "Bless the baseline $KBREL_BASELINE" --message "${KBREL_REASON:-}"
git push --quiet origin "HEAD:refs/heads/$KBREL_BRANCH"
git rev-parse HEAD
