"""Which cases are to be measured again: each asked-for repeat raises a case's generation by one.

The values of older generations stay in their files and are never used for a newer one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from opatlas.config.datasets import RESULTS, Dataset
from opatlas.errors import UserError
from opatlas.files import write_atomically

FORMAT = 1


def _path(root: Path, dataset: Dataset) -> Path:
    return root / RESULTS / "retries" / f"{dataset.base}.json"


def read(root: Path, dataset: Dataset) -> dict[str, int]:
    """Case id -> generation, for the cases of a dataset that were asked for again."""
    path = _path(root, dataset)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        generations = document["generations"]
        if document["format"] != FORMAT or not all(isinstance(g, int) for g in generations.values()):
            raise ValueError("not of this format")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: is not a record of retries ({error}); remove it or restore it") from None
    return dict(generations)


def ask(root: Path, dataset: Dataset, case_ids: Iterable[str]) -> int:
    """Asks for these cases to be measured again; returns how many there are."""
    generations = read(root, dataset)
    asked = sorted(set(case_ids))
    for case_id in asked:
        generations[case_id] = generations.get(case_id, 0) + 1
    document = {"format": FORMAT, "generations": dict(sorted(generations.items()))}
    write_atomically(_path(root, dataset), json.dumps(document, indent=1).encode() + b"\n")
    return len(asked)
