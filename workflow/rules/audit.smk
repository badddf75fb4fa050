# Re-derives every hash of a published dataset. No output: an audit runs at every ask.
for dataset in dag.datasets:

    rule:
        name:
            f"{dataset.target}.audit.json"
        log:
            f"results/logs/audit/{dataset.name}.log",
        localrule: True
        container:
            dag.on_host
        params:
            config=dag.overrides_json,
            name=dataset.name,
        shell:
            "python -m opatlas audit --config {params.config:q} {params.name} 2>&1 | tee {log}"
