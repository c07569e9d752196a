#!/usr/bin/env bash
# run.sh BUILD TEST[@RUN] PROGRAM...: PROGRAM with a folder as last argument writes a run and its report
# there; TEST.mjs opens the report in Chromium. Screenshots stay in BUILD/web-tests/TEST[@RUN]/shots.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
shared=$(realpath -m "$1")/web-tests
test=$2
work=$shared/$test
shift 2
mkdir -p "$work"
cp "$here"/../../web/package.json "$here"/../../web/package-lock.json "$shared"
(
  flock 9  # tests run beside each other
  cmp -s "$shared/package-lock.json" "$shared/node_modules/.installed" && exit
  (cd "$shared" && npm ci --ignore-scripts --no-audit --no-fund)
  cp "$shared/package-lock.json" "$shared/node_modules/.installed"
) 9>"$shared/lock"
rm -rf "$work/run"
"$@" "$work/run"
ESSCHER_NODE_MODULES=$shared/node_modules node "$here/${test%@*}.mjs" "$work/run/report.html" "$work/shots"
