"""Files that appear under their final name whole or not at all."""

from __future__ import annotations

import errno
import os
import time
import uuid
from pathlib import Path

from opatlas.errors import UserError

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def disk_error(path: Path | str, error: OSError) -> UserError:
    """The one message for a file that cannot be written."""
    what = "the disk is full" if error.errno in NO_SPACE else f"cannot be written: {error.strerror}"
    return UserError(f"{path}: {what}; what is finished so far is kept, mend this and run again")


def write_atomically(path: Path, content: bytes) -> None:
    """Writes beside the target, syncs, renames, and syncs the folder.

    UserError when the disk is full or the folder cannot be written; the target is then as it was.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise disk_error(path, error) from None


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def settle_times(folder: Path) -> None:
    """Gives files from the future the present time.

    Snakemake fails a job, and deletes its output, when an input is newer than what the job has just
    written; a node's clock that runs ahead is enough for that.
    """
    now = time.time()
    for path in folder.rglob("*"):
        try:
            if path.lstat().st_mtime > now and not path.is_symlink():
                os.utime(path, (now, now))
        except OSError:
            # Gone meanwhile, or somebody else's.
            continue


def swap_in(folder: Path, link: Path) -> None:
    """Makes `link` a relative symbolic link to `folder` in one step.

    What the link pointed to before stays. An empty directory in the place of the link gives way;
    UserError when the place holds anything else.
    """
    temporary = link.with_name(f".{link.name}.{uuid.uuid4().hex[:8]}.tmp")
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_dir() and not link.is_symlink():
        try:
            link.rmdir()
        except OSError:
            raise UserError(
                f"{link}: is a directory with files of its own, expected a link; move it away"
            ) from None
    try:
        temporary.symlink_to(os.path.relpath(folder, link.parent))
        temporary.replace(link)
        sync_folder(link.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise disk_error(link, error) from None
