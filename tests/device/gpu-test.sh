#!/usr/bin/env bash
# Checks the CUDA backend on a machine with a GPU; called by ./dev gpu-test, which says where the programs are (GPU_PROGRAMS).
# Ends with a table; exit code 1 where anything failed. Logs go to LOCKSTEP_GPU_LOGS (build/gpu-test).
#
#   gpu-test.sh [ops] [train] [kernels] [workers] [hosts] [failures] [sanitize]     all of them unless some are named
set -u
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
programs=${GPU_PROGRAMS:?run it through ./dev gpu-test}
logs=${LOCKSTEP_GPU_LOGS:-build/gpu-test}
mkdir -p "$logs"
groups=(shapes rows losses tables optimizers rounded images attention pointwise products)
wanted=" ${*:-ops train kernels workers hosts failures sanitize} "
names=()
rm -f "$logs"/*.txt "$logs"/*.line

# step NAME SECONDS COMMAND...: runs it with its output in a log, and makes a line of the table.
step() {
  local name=$1 seconds=$2 begin=$SECONDS code=0
  shift 2
  timeout "$seconds" "$@" >"$logs/$name.txt" 2>&1 || code=$?
  printf '%-22s exit %3d %5d s  %s failures\n' "$name" "$code" $((SECONDS - begin)) \
    "$(grep -cE '^(FAIL|BITS|CRASH|FAILED)|ERROR SUMMARY: [1-9]' "$logs/$name.txt")" | tee "$logs/$name.line"
}

# alone NAME SECONDS COMMAND..., beside NAME SECONDS COMMAND...: a step by itself, or beside others (what a sanitizer does
# goes on the processor for the most part).
alone() {
  names+=("$1")
  step "$@"
}
beside() {
  names+=("$1")
  while (($(jobs -rp | wc -l) >= $(nproc) / 2 + 1)); do wait -n; done
  step "$@" &
}

nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm --format=csv,noheader
"$programs/lockstep" env
[[ $wanted != *" ops "* ]] || alone ops 200 "$programs/cuda_check" ops tests/ops/cases 10
[[ $wanted != *" train "* ]] || alone train 150 "$programs/cuda_check" train
if [[ $wanted == *" kernels "* ]]; then
  # A process each: an error of the device ends one group only.
  for group in "${groups[@]}"; do alone "kernels-$group" 60 "$programs/kernel_check" "$group"; done
fi
[[ $wanted != *" workers "* ]] || alone workers 400 tests/device/gpu-workers.sh "$programs/lockstep" "$logs"
[[ $wanted != *" hosts "* ]] || alone hosts 280 tests/device/gpu-hosts.sh "$programs/lockstep" "$logs"
[[ $wanted != *" failures "* ]] || alone failures 200 tests/device/gpu-failures.sh "$programs"
if [[ $wanted == *" sanitize "* ]]; then
  sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  # The libraries' kernels are not ours to check, and racecheck takes minutes over one of cuBLAS's.
  for tool in memcheck racecheck initcheck; do
    for group in "${groups[@]:0:9}"; do
      LOCKSTEP_KERNELS_ONLY=1 beside "$tool-$group" 400 "$sanitizer" --tool "$tool" --print-limit 20 --error-exitcode 1 \
        "$programs/kernel_check" "$group"
    done
  done
fi

wait

echo
for name in "${names[@]}"; do cat "$logs/$name.line"; done | tee "$logs/table.txt"
grep -hE '^(FAIL|BITS|CRASH|FAILED|REFUSED)' "$logs"/*.txt | cut -c1-200 | head -60
! grep -qv 'exit   0 ' "$logs/table.txt"
