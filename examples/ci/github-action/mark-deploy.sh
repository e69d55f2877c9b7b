#!/bin/sh
# Marks a deploy with nothing but curl (7.71 or later) and a POSIX shell, for
# where the binary actionpulse is not at hand. It may run as often as it likes:
# one key makes one marker, and finding it there is a success.
#
#   ACTIONPULSE_URL, ACTIONPULSE_PROJECT_ID, ACTIONPULSE_CI_TOKEN   whom to tell
#   MARK_KEY          names the deploy: the same on every attempt, another for the
#                     next deploy and for another environment
#   MARK_VERSION      what was deployed
#   MARK_ENVIRONMENT, MARK_COMMIT, MARK_RUN_URL, MARK_TITLE, MARK_TS   optional
#   MARK_ATTEMPTS     optional: how often to try again; 8 if it is not set
#
# Everything must come from the state of the build: a value that is made here,
# such as the output of date, would be another one on the next attempt, which
# then is refused with 409.
set -eu

fail() {
  printf 'mark-deploy: %s\n' "$1" >&2
  exit 1
}

for name in ACTIONPULSE_URL ACTIONPULSE_PROJECT_ID ACTIONPULSE_CI_TOKEN MARK_KEY MARK_VERSION; do
  eval "value=\${$name:-}"
  [ -n "$value" ] || fail "$name is not set"
done

# member NAME VALUE adds a member to the body, unless the value is empty.
body=
member() {
  [ -n "$2" ] || return 0
  case $2 in *[[:cntrl:]]*) fail "$1 holds a control character" ;; esac
  text=$(printf '%s' "$2" | sed 's/[\\"]/\\&/g')
  body="$body${body:+,}\"$1\":\"$text\""
}
member version "$MARK_VERSION"
member environment "${MARK_ENVIRONMENT:-production}"
member commit "${MARK_COMMIT:-}"
member url "${MARK_RUN_URL:-}"
member title "${MARK_TITLE:-}"
member ts "${MARK_TS:-}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '{%s}' "$body" >"$work/body.json"
# Without --fail an answer of 4xx is no error, and is not repeated; 408, 429 and
# 5xx are, after Retry-After where the server names it, and so are lost answers.
# The key and the file with the body are the same each time. The token goes by
# standard input: command lines can be read by others.
status=$(printf 'header = "Authorization: Bearer %s"\n' "$ACTIONPULSE_CI_TOKEN" | curl --silent --show-error --config - \
  --retry "${MARK_ATTEMPTS:-8}" --retry-all-errors --retry-max-time 600 --max-time 60 \
  --header "Idempotency-Key: $MARK_KEY" --header 'Content-Type: application/json' \
  --data-binary "@$work/body.json" --output "$work/answer.json" --write-out '%{http_code}' \
  "${ACTIONPULSE_URL%/}/api/v1/projects/$ACTIONPULSE_PROJECT_ID/release-markers/deploy") ||
  fail "no answer from $ACTIONPULSE_URL; run the step again, the deploy is not marked twice"

case $status in
  201) printf 'marked: ' ;;
  200) printf 'already marked: ' ;;
  409) fail "conflict: the key $MARK_KEY has marked another deploy, or this one with other values; details.differs names them: $(cat "$work/answer.json")" ;;
  *) fail "the server answered $status: $(cat "$work/answer.json")" ;;
esac
cat "$work/answer.json"
echo
