#!/bin/bash
# The validation of vLLM's runners in docs/validation/h200-vllm.md: a drawn subset through snakemake, then the
# same cases in another process and order, then some of them beside CUPTI. About eight minutes on an H200.
# Each step is left out where its result is there already, so a run that was cut short goes on.
#
#     bench/vllm/validate.sh vllm/0.24.0/sm90 OUT
set -u
cd "$(dirname "$0")/../.."
dataset=$1 out=$2
ops=gemm,compute_scale,scale_matrix,attention_context,attention_generation,encoder_attention
draw=(subset=h200-check ops=$ops limit_per_op=300)
export PYTHONPATH=$PWD/workflow OPATLAS_WARM_CACHES=${OPATLAS_WARM_CACHES:-$PWD/results/warm}
mkdir -p "$out"
step() { echo "== $(date +%T) $*"; }

step draw
[ -f "$out/cases.csv" ] || python3 bench/vllm/draw.py "$dataset" "$out/cases.csv" "${draw[@]}" || exit 1
[ -f "$out/some.csv" ] || python3 bench/vllm/draw.py "$dataset" "$out/some.csv" --first 60 "${draw[@]}" || exit 1
step compile
[ -f "$out/warm.log" ] || python3 bench/vllm/warm.py "$out/cases.csv" "$OPATLAS_WARM_CACHES" > "$out/warm.log" 2>&1
tail -1 "$out/warm.log"
step dataset
python3 -m snakemake --cores 4 --resources device=1 --quiet progress rules \
    "results/$dataset@h200-check" --config "${draw[@]}" audit_share=0 > "$out/snakemake.log" 2>&1
echo "snakemake: exit $?"
tail -3 "$out/snakemake.log"
# measure.py runs outside of a worker's clean room, so it is told the same caches.
caches() { for pair in DG_JIT_CACHE_DIR:deep_gemm TRTLLM_DG_CACHE_DIR:trtllm_deep_gemm TRITON_CACHE_DIR:triton \
    VLLM_CACHE_ROOT:vllm FLASHINFER_WORKSPACE_BASE:flashinfer; do
    export "${pair%%:*}=$OPATLAS_WARM_CACHES/${pair##*:}"; done; }
caches
step another order
[ -f "$out/run2.csv" ] || python3 bench/timing/measure.py "$out/cases.csv" --backend vllm --order 2 \
    --out "$out/run2.csv" > "$out/run2.log" 2>&1
grep -v -e INFO -e WARNING "$out/run2.log" | grep "a second"
step beside CUPTI
[ -f "$out/run3.csv" ] || python3 bench/timing/measure.py "$out/some.csv" --backend vllm --order 3 \
    --out "$out/run3.csv" --spans > "$out/run3.log" 2>&1
step report
python3 bench/vllm/report.py "results/$dataset@h200-check" "$out/run2.csv" "$out/run3.csv" "$out/report" \
    > "$out/report.txt" 2>&1
tail -60 "$out/report.txt"
step done
