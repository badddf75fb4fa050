# Tickets for all shards of a dataset that lack outcomes, written in one go.
rule queue_shards:
    output:
        "results/queues/{backend}/{version}/{platform}/{queue}.json",
    log:
        "results/logs/queue/{backend}/{version}/{platform}/{queue}.log",
    localrule: True
    container:
        dag.on_host
    params:
        config=dag.overrides_json,
    shell:
        "python -m opatlas queue --config {params.config:q}"
        " {wildcards.backend}/{wildcards.version}/{wildcards.platform} {output} > {log} 2>&1"


# Proves that the framework still has what the runners use of it, by its sources alone: in the pinned image,
# but where Snakemake runs, so that no device is asked for before.
rule check_interface:
    output:
        "results/interface/{backend}/{version}/{platform}/{op}/{interface}.json",
    log:
        "results/logs/interface/{backend}/{version}/{platform}/{op}/{interface}.log",
    localrule: True
    container:
        dag.container
    shell:
        "python3 -m opatlas.interface.check {wildcards.backend} --out {output} 2>&1 | tee {log}"


# Runs what a ticket lists, in the pinned image, on the device. Its rows are in the journals beside the
# receipt, which are no outputs: Snakemake would delete them when the job fails.
rule measure_shard:
    input:
        dag.before_measuring,
    output:
        "results/attempts/{backend}/{version}/{platform}/{op}/{shard}/{todo}.done.json",
    log:
        "results/logs/measure/{backend}/{version}/{platform}/{op}/{shard}/{todo}.log",
    benchmark:
        "results/benchmarks/measure/{backend}/{version}/{platform}/{op}/{shard}/{todo}.tsv"
    container:
        dag.container
    threads: dag.threads
    resources:
        device=1,
        slurm_partition=dag.slurm("slurm_partition"),
        gres=dag.slurm("gres"),
        cpus_per_task=dag.slurm("cpus_per_task"),
        mem_mb=dag.slurm("mem_mb"),
        runtime=dag.slurm("runtime"),
        slurm_account=dag.slurm("slurm_account"),
        qos=dag.slurm("qos"),
    shell:
        "python3 -m opatlas.harness.supervisor"
        " results/attempts/{wildcards.backend}/{wildcards.version}/{wildcards.platform}/"
        "{wildcards.op}/{wildcards.shard}/{wildcards.todo}.ticket.json > {log} 2>&1"


# Moves a damaged shard file away.
rule quarantine_shard:
    output:
        "results/quarantine/{backend}/{version}/{platform}/{op}/{shard}-{fingerprint}.json",
    log:
        "results/logs/quarantine/{backend}/{version}/{platform}/{op}/{shard}-{fingerprint}.log",
    localrule: True
    container:
        dag.on_host
    shell:
        "python -m opatlas quarantine"
        " results/shards/{wildcards.backend}/{wildcards.version}/{wildcards.platform}/"
        "{wildcards.op}/{wildcards.shard}.parquet {output} > {log} 2>&1"


# A shard's file from journals and from older files with equal rows.
rule assemble_shard:
    input:
        receipt=dag.receipt,
        quarantined=dag.quarantined,
    output:
        rows="results/shards/{backend}/{version}/{platform}/{op}/{shard}.parquet",
        failures="results/shards/{backend}/{version}/{platform}/{op}/{shard}.failures.parquet",
    log:
        "results/logs/assemble/{backend}/{version}/{platform}/{op}/{shard}.log",
    localrule: True
    container:
        dag.on_host
    params:
        config=dag.overrides_json,
        dataset=dag.dataset_of,
    shell:
        "python -m opatlas assemble --config {params.config:q}"
        " {params.dataset} {wildcards.op} {wildcards.shard} > {log} 2>&1"
