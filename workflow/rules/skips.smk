# Measures a few cases of each skip entry and says which entries are no longer true. No output: it answers at
# every ask; what is measured already is not measured again.
for dataset in dag.datasets:
    if not dataset.subset:

        rule:
            name:
                f"{dataset.target}.skips.json"
            input:
                lambda wildcards, name=dataset.name: dag.skipped(name),
            log:
                f"results/logs/skips/{dataset.name}.log",
            localrule: True
            container:
                dag.on_host
            params:
                config=dag.overrides_json,
                name=f"{dataset.name}.skips",
            shell:
                "python -m opatlas skips --config {params.config:q} {params.name} 2>&1 | tee {log}"
