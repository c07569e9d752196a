#!/usr/bin/env bash
# run.sh BUILD DEMO: browser tests of the report page made by program DEMO; works in BUILD/web-tests,
# where the screenshots stay. Needs npm and Chromium.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$1/web-tests
demo=$2
mkdir -p "$work"
cp "$here"/../../web/package.json "$here"/../../web/package-lock.json "$work"
if ! cmp -s "$work/package-lock.json" "$work/node_modules/.installed"; then
  (cd "$work" && npm ci --ignore-scripts --no-audit --no-fund)
  cp "$work/package-lock.json" "$work/node_modules/.installed"
fi
rm -rf "$work/run"
"$demo" "$work/run"
ESSCHER_NODE_MODULES=$work/node_modules node "$here/report.mjs" "$work/run/report.html" "$work/shots"
