#!/bin/bash
# Runs what lies in out/ (kernel_check, gpu_limits) on a machine with a GPU: checks first, then limits, then the checks
# again under the memory checker as far as time allows. Tables go to standard output, everything to $OUT.
#
#   run_gpu.sh            all of it, in less than six minutes
#   run_gpu.sh check      only the checks
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$here/out}
export OUT=$out
programs=$here/out
chmod +x "$programs"/kernel_check "$programs"/gpu_limits 2>/dev/null
export LD_LIBRARY_PATH=/usr/local/cuda/lib64:/usr/local/cuda/lib:/usr/local/nvidia/lib64:$LD_LIBRARY_PATH
begin=$SECONDS
left() { echo $((330 - (SECONDS - begin))); }

{
  nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,power.limit,memory.total --format=csv
  find / -xdev \( -name 'libcudnn.so.9*' -o -name 'libcublasLt.so.1*' -o -name 'libcudart.so.1*' -o -name 'libnccl.so.2*' -o -name 'libnvrtc.so.1*' \) 2>/dev/null
} > "$out/machine.txt" 2>&1
cat "$out/machine.txt"

echo "### start-up, first time in this boot"
timeout 60 "$programs/gpu_limits" startup > "$out/startup.txt" 2>&1
cat "$out/startup.txt"
echo "### start-up, second time"
timeout 60 "$programs/gpu_limits" startup 2>&1 | grep -E 'cuInit|context|cublasLt|cudnn|nvrtc' | tee -a "$out/startup.txt"

echo "### checks"
# A process each: an error of the device ends one group only.
for group in pointwise shapes rows losses tables optimizers images attention products speed; do
  timeout 60 "$programs/kernel_check" $group >> "$out/kernel_check.txt" 2>&1
  echo "exit $? $group" >> "$out/kernel_check.txt"
done
echo "($(left) s left)"

if [ "$1" != check ]; then
  echo "### limits"
  for section in copies launches ipc attention capture ceilings epilogues head products; do
    timeout 75 "$programs/gpu_limits" $section >> "$out/gpu_limits.txt" 2>&1
    echo "exit $? $section" >> "$out/gpu_limits.txt"
  done
  echo "($(left) s left)"
  # The cuDNN of the Python packages, where it is another one.
  other=$(grep -m1 site-packages.*libcudnn.so.9 "$out/machine.txt")
  if [ -n "$other" ] && [ "$(left)" -gt 60 ]; then
    echo "### attention with $other"
    echo "== cuDNN at $other" >> "$out/gpu_limits.txt"
    LD_LIBRARY_PATH=$(dirname "$other"):$LD_LIBRARY_PATH timeout 45 "$programs/gpu_limits" attention >> "$out/gpu_limits.txt" 2>&1
  fi
fi

sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
for tool in memcheck racecheck initcheck; do
  if [ -x "$sanitizer" ] && [ "$(left)" -gt 25 ]; then
    echo "### $tool ($(left) s left)"
    OUT=/tmp timeout $(( $(left) < 70 ? $(left) : 70 )) "$sanitizer" --tool $tool --print-limit 20 \
      "$programs/kernel_check" shapes rows losses tables optimizers images attention pointwise > "/tmp/$tool.txt" 2>&1
    { echo "== $tool exit $?"; grep -E '=========|cases,' "/tmp/$tool.txt" | head -60; grep -c ' ok$' "/tmp/$tool.txt"; } >> "$out/sanitizer.txt"
    tail -4 "$out/sanitizer.txt"
  fi
done

echo "### limits, in short"
[ -f "$out/gpu_limits.txt" ] && grep -vE 'dw .*f32|gpt2 apart' "$out/gpu_limits.txt" | cut -c1-150 | tail -75
echo "### speed"
sed -n '/== speed/,$p' "$out/kernel_check.txt" | grep -v FAILED | cut -c1-110
echo "### checks that failed"
grep -E '^FAILED|cases,|^exit' "$out/kernel_check.txt" | cut -c1-200 | head -60
echo "took $((SECONDS - begin)) s"
