# Checks the tables, at each try, builds the dataset's directory beside the published one and swaps it in
# with one rename. The stamp in it carries the fingerprint; the directory itself is no output, so it never
# disappears before the swap.
rule publish_dataset:
    input:
        dag.merged,
    output:
        "results/{backend}/{version}/{platform}/.dataset-{fingerprint}",
    log:
        "results/logs/publish/{backend}/{version}/{platform}-{fingerprint}.log",
    localrule: True
    container:
        dag.on_host
    params:
        config=dag.overrides_json,
    shell:
        "python -m opatlas publish --config {params.config:q}"
        " {wildcards.backend}/{wildcards.version}/{wildcards.platform} {wildcards.fingerprint} 2>&1 | tee {log}"
