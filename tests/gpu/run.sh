#!/bin/bash
# Real NCCL on a real GPU: two ranks on one GPU, each a process that says it is another host, so that NCCL takes the network.
# usage: run.sh PATH/TO/libnccl.so.2      exit code: 0 all well, 77 no GPU or no NCCL
set -euo pipefail
cd "$(dirname "$0")/../.."
nccl=${1:?usage: tests/gpu/run.sh PATH/TO/libnccl.so.2}
[ -e "$nccl" ] || { echo "skipped: no $nccl"; exit 77; }
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release -p collander-plugin -p collander-cli
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$target/release/libcollander_plugin.so" "$work/libnccl-profiler-collander.so"
cc -O2 -Wall -o "$work/all_reduce" tests/gpu/all_reduce.c -ldl
export NCCL_PROFILER_PLUGIN=$work/libnccl-profiler-collander.so COLLANDER_SINK_DIRECTORY=$work/out
export NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_DEBUG=WARN
pids=()
for rank in 0 1; do
    NCCL_HOSTID=host$rank timeout 120 "$work/all_reduce" "$nccl" 2 "$rank" "$work/id" & pids+=($!)
done
code=0
for pid in "${pids[@]}"; do wait "$pid" || code=$?; done
[ "$code" = 0 ] || exit "$code"
"$target/release/collander" show "$work/out"
"$target/release/collander" show "$work/out" --json > "$work/show.json"
# 2 ranks × 4 sizes × 20 operations, and the account closed.
grep -Eq '"open": ?0' "$work/show.json" || { echo "operations are still open"; exit 1; }
grep -Eq '"seen": ?160' "$work/show.json" || { echo "expected 160 operations seen"; exit 1; }
