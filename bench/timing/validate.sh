#!/bin/sh
# The validation of a GPU in docs/validation: draws cases from a plan, measures them in three processes in
# three orders (the third beside CUPTI), and runs the studies. About two minutes on an H200.
#
#     bench/timing/validate.sh torch/2.11.0/sm90 2026 OUT
set -eu
cd "$(dirname "$0")/../.."
dataset=$1 seed=$2 out=$3
mkdir -p "$out"
[ -f "$out/drawn.csv" ] || python3 bench/timing/draw.py "$dataset" --seed "$seed" \
    --take gemm:bfloat16:140 --take gemm:fp8:120 \
    --take attention_context:bfloat16:40 --take attention_generation:bfloat16:50 > "$out/drawn.csv"
# The study of sample counts takes a hundred samples each of the first cases of a kind.
python3 - "$out" << 'END'
import csv, itertools, sys
rows = list(csv.reader(open(f"{sys.argv[1]}/drawn.csv")))
kinds = itertools.groupby(rows[1:], key=lambda row: row[0].split("/")[:2])
some = [row for (op, dtype), kind in kinds for row in list(kind)[: 25 if op == "gemm" else 15]]
csv.writer(open(f"{sys.argv[1]}/some.csv", "w")).writerows([rows[0], *some])
END
for run in 1 2; do
    python3 bench/timing/measure.py "$out/drawn.csv" --order $run --out "$out/run$run.csv"
done
python3 bench/timing/measure.py "$out/drawn.csv" --order 3 --out "$out/run3.csv" --spans
python3 bench/timing/studies.py ceilings "$out"
python3 bench/timing/studies.py cold "$out"
python3 bench/timing/studies.py samples "$out" --cases "$out/some.csv" --order 1
mv "$out/samples1.csv" "$out/samples.csv"
python3 bench/timing/report.py "$out" --merge "$out/run1.csv" "$out/run2.csv" "$out/run3.csv"
