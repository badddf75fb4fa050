# Checks a published dataset. No output: its tables are looked at again at every ask.
for dataset in dag.datasets:

    rule:
        name:
            f"{dataset.target}.checks.json"
        log:
            f"results/logs/checks/{dataset.name}.log",
        localrule: True
        container:
            dag.on_host
        params:
            config=dag.overrides_json,
            name=dataset.name,
        shell:
            "python -m opatlas check --config {params.config:q} {params.name} 2>&1 | tee {log}"
