#!/usr/bin/env bash
# Post the file KBREL_BODY on pull request KBREL_PULL_REQUEST of GITHUB_REPOSITORY, in place of the comment
# with the same first line, so that there is one. With KBREL_COMMIT nothing is posted once the pull request has
# a later commit. KBREL_NAME and KBREL_LINK are those of comment.sh. It needs gh with GH_TOKEN, which may write to pull requests.
set -euo pipefail

if [[ -L "$KBREL_BODY" ]]; then
  echo "$KBREL_BODY: is a symbolic link; allowed: a file" >&2
  exit 2
fi
# The job before may have ended before it wrote one.
if [[ ! -s "$KBREL_BODY" ]]; then
  mkdir -p -- "$(dirname -- "$KBREL_BODY")"
  bash "$(dirname "${BASH_SOURCE[0]}")/comment.sh" >"$KBREL_BODY"
fi
# The marker of another gate would replace the comment of that one.
marker="<!-- pytest-kbrel${KBREL_NAME:+: $KBREL_NAME} -->"
if [[ "$(head -n 1 -- "$KBREL_BODY")" != "$marker" ]]; then
  echo "$KBREL_BODY: found no marker '$marker' in its first line; allowed: what kbrel comment writes" >&2
  exit 2
fi
repository=repos/$GITHUB_REPOSITORY
if [[ -n "${KBREL_COMMIT:-}" ]]; then
  head=$(gh api "$repository/pulls/$KBREL_PULL_REQUEST" --jq .head.sha)
  if [[ "$head" != "$KBREL_COMMIT" ]]; then
    echo "not posted: the pull request is at ${head:0:12}, and this is about ${KBREL_COMMIT:0:12}"
    exit 0
  fi
fi
# Only comments of apps: anybody may write a comment that begins with the marker.
comments=$(gh api --paginate "$repository/issues/$KBREL_PULL_REQUEST/comments?per_page=100" \
  --jq '.[] | select(.user.type == "Bot") | [.id, (.body | split("\n")[0] | rtrimstr("\r"))] | @tsv')
posted=
while IFS=$'\t' read -r id first; do
  if [[ "$first" != "$marker" ]]; then
    continue
  fi
  if [[ -z "$posted" ]]; then
    gh api --method PATCH "$repository/issues/comments/$id" -F "body=@$KBREL_BODY" --silent
    posted=$id
  else
    gh api --method DELETE "$repository/issues/comments/$id" --silent
  fi
done <<<"$comments"
if [[ -z "$posted" ]]; then
  gh api --method POST "$repository/issues/$KBREL_PULL_REQUEST/comments" -F "body=@$KBREL_BODY" --silent
fi
