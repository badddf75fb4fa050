# All rows of a dataset as its published tables.
rule merge_tables:
    input:
        dag.shard_files,
    output:
        "results/tables/{backend}/{version}/{platform}/{fingerprint}/tables.json",
    log:
        "results/logs/tables/{backend}/{version}/{platform}-{fingerprint}.log",
    localrule: True
    container:
        dag.on_host
    params:
        config=dag.overrides_json,
    shell:
        "python -m opatlas merge --config {params.config:q}"
        " {wildcards.backend}/{wildcards.version}/{wildcards.platform} {wildcards.fingerprint} > {log} 2>&1"
