# The names people ask for. A rule may be named by any text, and names are looked up before files: so a
# dataset is a target although its directory is no output of any job.


for dataset in dag.datasets:
    for slash in ("", "/"):
        # With a baseline, the dataset is compared with it at every ask: so its rule has no output.
        if dag.config.settings.baseline:

            rule:
                name:
                    f"{dataset.target}{slash}"
                input:
                    lambda wildcards, name=dataset.name: dag.published(name),
                log:
                    f"results/logs/compare/{dataset.name}.log",
                localrule: True
                container:
                    dag.on_host
                params:
                    config=dag.overrides_json,
                    target=dataset.target,
                shell:
                    "python -m opatlas compare --config {params.config:q} {params.target}"
                    " --report {params.target}.baseline 2>&1 | tee {log}"

        else:

            rule:
                name:
                    f"{dataset.target}{slash}"
                input:
                    lambda wildcards, name=dataset.name: dag.published(name),

        rule:
            name:
                f"{dataset.plan_target}{slash}"
            input:
                lambda wildcards, name=dataset.name: ancient(dag.plan_stamp(name)),


# Whatever else is asked for under results/ gets a sentence instead of 'no rule to produce'.
rule unknown_target:
    input:
        dag.unknown,
    output:
        "results/{target}",
    log:
        "results/logs/unknown_target/{target}.log",
    wildcard_constraints:
        target=r"(?!(shards|attempts|queues|plans|tables|quarantine|interface|logs|benchmarks)/)(?!.*/\.dataset-).+",
    localrule: True
    container:
        dag.on_host
    shell:
        "false > {log}"
