#!/bin/bash
# The validation of vLLM's runners: a drawn subset through snakemake, then the same cases in another process and
# order, some of them beside CUPTI. Each step has a limit, can be run alone and takes no more than eight minutes on
# an H200; a step whose result is there is left out, so what was cut short goes on where the same is asked again.
#
#     bench/vllm/validate.sh vllm/0.24.0/sm90 OUT [STEP...]      steps: draw compile dataset repeat report
set -u
cd "$(dirname "$0")/../.."
dataset=$1 out=$2
shift 2
ops=gemm,compute_scale,scale_matrix,attention_context,attention_generation,encoder_attention
draw=(subset=h200-check ops=$ops limit_per_op=300)
export PYTHONPATH=$PWD/workflow
warm=${OPATLAS_WARM_CACHES:-$PWD/results/warm}
mkdir -p "$out"

draw() {
    [ -f "$out/cases.csv" ] || timeout 60 python3 bench/vllm/draw.py "$dataset" "$out/cases.csv" "${draw[@]}" || exit 1
    [ -f "$out/some.csv" ] ||
        timeout 60 python3 bench/vllm/draw.py "$dataset" "$out/some.csv" --first 60 "${draw[@]}" || exit 1
}

compile() { # optional: what is not compiled here is compiled as it is measured
    [ -f "$out/warm.log" ] ||
        timeout -k 5 200 python3 bench/vllm/warm.py "$out/cases.csv" "$warm" --seconds 180 > "$out/warm.log" 2>&1
    tail -1 "$out/warm.log"
}

# A prebuilt cache is used where there is one. measure.py runs outside of a worker's clean room, so it is told too.
caches() {
    [ -d "$warm" ] || return 0
    export OPATLAS_WARM_CACHES=$warm
    for pair in DG_JIT_CACHE_DIR:deep_gemm TRTLLM_DG_CACHE_DIR:trtllm_deep_gemm TRITON_CACHE_DIR:triton \
        VLLM_CACHE_ROOT:vllm FLASHINFER_WORKSPACE_BASE:flashinfer; do
        export "${pair%%:*}=$warm/${pair##*:}"
    done
}

dataset() { # asked again it goes on: a worker ends at TERM with its journal whole
    (caches && timeout -k 20 460 python3 -m snakemake --cores 4 --resources device=1 --quiet progress rules \
        "results/$dataset@h200-check" --config "${draw[@]}" audit_share=0 > "$out/snakemake.log" 2>&1
    echo "snakemake: exit $?")
    tail -3 "$out/snakemake.log"
}

repeat() {
    [ -f "$out/run2.csv" ] ||
        (caches && timeout -k 5 460 python3 bench/timing/measure.py "$out/cases.csv" --backend vllm --order 2 \
            --out "$out/run2.csv" --spans-of "$out/some.csv" --seconds 420 > "$out/run2.log" 2>&1)
    grep -e "a second" -e "not reached" "$out/run2.log"
}

report() {
    timeout 60 python3 bench/vllm/report.py "results/$dataset@h200-check" "$out/run2.csv" "$out/run2.spans.csv" \
        "$out/report" > "$out/report.txt" 2>&1
    tail -60 "$out/report.txt"
}

for step in "${@:-draw compile dataset repeat report}"; do
    for one in $step; do
        echo "== $(date +%T) $one"
        "$one"
    done
done
echo "== $(date +%T) done"
