# The plan as tables, one parquet per op, and plan.json.
rule write_plan:
    output:
        "results/plans/{backend}/{version}/{platform}/.plan-{fingerprint}",
    log:
        "results/logs/plan/{backend}/{version}/{platform}-{fingerprint}.log",
    localrule: True
    container:
        dag.on_host
    params:
        config=dag.overrides_json,
    shell:
        "python -m opatlas write-plan --config {params.config:q}"
        " {wildcards.backend}/{wildcards.version}/{wildcards.platform} {wildcards.fingerprint} > {log} 2>&1"
