#!/usr/bin/env bash
# heads.sh BUILD ESSCHER: the report of `esscher heads` on the sample heads, opened in Chromium.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$1/web-tests-heads
program=$2
mkdir -p "$work"
cp "$here"/../../web/package.json "$here"/../../web/package-lock.json "$work"
if ! cmp -s "$work/package-lock.json" "$work/node_modules/.installed"; then
  (cd "$work" && npm ci --ignore-scripts --no-audit --no-fund)
  cp "$work/package-lock.json" "$work/node_modules/.installed"
fi
rm -rf "$work/run"
"$program" heads "$here/../data/sample-heads.safetensors" --components 2,4,8 --out "$work/run"
ESSCHER_NODE_MODULES=$work/node_modules node "$here/heads.mjs" "$work/run/report.html" "$work/shots"
