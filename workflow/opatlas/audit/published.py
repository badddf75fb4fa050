"""A published dataset as it lies on disk."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from opatlas.config.datasets import RESULTS
from opatlas.errors import UserError
from opatlas.publishing.publish import PROVENANCE
from opatlas.tables.merge import FAILURES


@dataclass(frozen=True)
class Published:
    """The directory of a published dataset and its provenance."""

    root: Path
    name: str
    provenance: dict[str, Any]

    @property
    def target(self) -> Path:
        return RESULTS / self.name

    @property
    def folder(self) -> Path:
        return self.root / self.target

    @cached_property
    def shards(self) -> dict[str, dict[str, Any]]:
        """Shards by their key, as the tables' column `shard` names them."""
        return {Path(entry["path"]).stem: entry for entry in self.provenance["shards"]}

    @property
    def tables(self) -> list[str]:
        """Names of the tables, without that of the failures."""
        return [name for name in self.provenance["tables"] if name != FAILURES]

    def table(self, name: str) -> pa.Table:
        """A table of the dataset; UserError when there is none, or when it cannot be read."""
        names = [*self.tables, FAILURES]
        if name not in names:
            raise UserError(f"{self.target}: has no table {name!r}; there are {', '.join(names)}")
        path = self.folder / f"{name}.parquet"
        try:
            with path.open("rb") as file:
                return pq.ParquetFile(file).read()
        except (OSError, pa.ArrowException, ValueError) as error:
            what = (str(error).strip().splitlines() or [""])[0]
            raise UserError(f"{self.target / path.name}: cannot be read: {what}") from None


def open_dataset(root: Path, name: str) -> Published:
    """The published dataset of this name; UserError when it is not published, or has no provenance."""
    path = RESULTS / name / PROVENANCE
    try:
        provenance = json.loads((root / path).read_text(encoding="utf-8"))
        if provenance["dataset"] != name:
            raise UserError(f"{path}: is the provenance of {provenance['dataset']}")
    except FileNotFoundError:
        raise UserError(f"results/{name}: is not published; run snakemake results/{name}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    return Published(root, name, provenance)
