#!/bin/bash
# Runs the CUDA backend on a machine with a GPU: what lies packed in out/backend.tar.gz (cuda_check, kernel_check,
# their libraries under lib, the op cases).
# Op cases against the interpreter, models against the CPU backend, the speed of one model, the kernels' own checks, and
# these again under compute-sanitizer as far as time allows. Everything goes to $OUT, tables to standard output.
#
#   run_gpu2.sh           all of it, in less than eight minutes
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$here/out}
begin=$SECONDS
left() { echo $((440 - (SECONDS - begin))); }
# At most $1 seconds, and never beyond the end.
limited() {
  local most=$1
  shift
  [ "$(left)" -gt 5 ] || { echo "no time left for $*"; return 1; }
  timeout $(( $(left) < most ? $(left) : most )) "$@"
}

work=$(mktemp -d)
tar -xzf "$here/out/backend.tar.gz" -C "$work" || exit 1
programs=$work/backend
export LOCKSTEP_CACHE=$work/cache
plain=/usr/local/cuda/lib64:/usr/local/cuda/lib:/usr/local/nvidia/lib64:$LD_LIBRARY_PATH
with_libraries() { LD_LIBRARY_PATH=$plain:$programs/lib "$@"; }

{
  nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,power.limit,memory.total --format=csv
  LD_LIBRARY_PATH=$plain:$programs/lib ldd "$programs/cuda_check" | grep -E 'not found|dnnl|stdc'
} > "$out/machine.txt" 2>&1
cat "$out/machine.txt"

echo "### op cases"
LD_LIBRARY_PATH=$plain:$programs/lib limited 170 "$programs/cuda_check" ops "$programs/cases" 10 > "$out/ops.txt" 2>&1
echo "exit $? after $((SECONDS - begin)) s" >> "$out/ops.txt"

echo "### models"
LD_LIBRARY_PATH=$plain:$programs/lib limited 90 "$programs/cuda_check" train > "$out/train.txt" 2>&1
echo "exit $? after $((SECONDS - begin)) s" >> "$out/train.txt"

echo "### speed"
LD_LIBRARY_PATH=$plain:$programs/lib limited 60 "$programs/cuda_check" speed > "$out/speed.txt" 2>&1
echo "exit $? after $((SECONDS - begin)) s" >> "$out/speed.txt"

echo "### kernels"
for group in shapes tables images; do
  LD_LIBRARY_PATH=$plain OUT=$work limited 30 "$programs/kernel_check" $group
  echo "exit $? $group"
done > "$out/kernel_check.txt" 2>&1

sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
if [ -x "$sanitizer" ]; then
  for tool in memcheck racecheck initcheck; do
    [ "$(left)" -gt 20 ] || break
    LD_LIBRARY_PATH=$plain OUT=$work limited 45 "$sanitizer" --tool $tool --print-limit 20 "$programs/kernel_check" \
      shapes rows losses tables optimizers images attention pointwise > "$work/$tool.txt" 2>&1
    { echo "== $tool exit $? after $((SECONDS - begin)) s"; grep -E '=========|cases,' "$work/$tool.txt" | head -60; } >> "$out/sanitizer.txt"
  done
  # The backend itself: a few files of cases, which fork nothing under the tool.
  mkdir -p "$work/few"
  cp "$programs"/cases/{layer_norm,embedding,cross_entropy,matmul,fused,softmax,sum}.cases "$work/few" 2>/dev/null
  [ "$(left)" -gt 25 ] && {
    LD_LIBRARY_PATH=$plain:$programs/lib limited 60 "$sanitizer" --tool memcheck --target-processes all --print-limit 20 \
      "$programs/cuda_check" ops "$work/few" 4 > "$work/backend.txt" 2>&1
    { echo "== memcheck of the backend, exit $?"; grep -E '=========|^FILE|^FAIL|CRASH' "$work/backend.txt" | head -80; } >> "$out/sanitizer.txt"
  }
fi

echo "### what the ops' cases say"
grep -E '^FILE|files of cases|^exit' "$out/ops.txt" | sort | grep -v 'wrong   0  refused   0'
grep -E '^CRASH|^LAST' "$out/ops.txt" | head -20
echo "--- refused, by reason"
grep '^REFUSED' "$out/ops.txt" | sed 's/.*|//' | sort | uniq -c | sort -rn | head -20
echo "--- failed"
grep -E '^FAIL|^BITS' "$out/ops.txt" | cut -c1-230 | head -60
echo "### models"
grep -E '^OK|^FAIL|^CRASH|models,|^exit' "$out/train.txt" | cut -c1-300
echo "### speed"
cat "$out/speed.txt"
echo "### kernels"
grep -E 'FAILED|cases,|^exit' "$out/kernel_check.txt" | cut -c1-200 | head -30
echo "### sanitizers"
cut -c1-160 "$out/sanitizer.txt" 2>/dev/null | head -40
echo "took $((SECONDS - begin)) s"
