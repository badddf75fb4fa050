"""One file per command of `python -m opatlas`: `add_arguments(parser)` and `run(arguments)`."""

from __future__ import annotations

# Command -> what it is for; the first ones are for people, the others are what the rules run.
COMMANDS = {
    "datasets": "list the datasets that can be asked for",
    "show": "what a published dataset holds and where its files are",
    "status": "progress of running measurements, and who holds the lock",
    "retry": "ask for chosen failures or rows to be measured again",
    "gc": "remove files that no dataset named needs",
    "trace": "from a row of a table to the job that measured it",
    "plan": "compare two plans: what a change adds and removes",
    "compare": "compare a dataset with a baseline: what changed, and how surely",
    "draft": "draft a model's case file from its config.json",
    "recheck": "list what to check again when a backend's pin is raised",
    "audit": "re-derive every hash of a published dataset",
    "check": "check a published dataset again",
    "skips": "say which skip entries are no longer true",
    "write-plan": "(rule) write the plan tables of a dataset",
    "queue": "(rule) write the tickets of a dataset's stale shards",
    "quarantine": "(rule) move a damaged shard file away",
    "assemble": "(rule) make a shard's file of its outcomes",
    "merge": "(rule) make a dataset's tables of its shards",
    "publish": "(rule) check a dataset's tables and publish them",
}
