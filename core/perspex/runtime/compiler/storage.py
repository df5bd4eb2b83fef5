"""A folder of bytes that only this user can have put there.

What is in it is going to be executed, so it is believed only if nobody else could have written it:
the folder belongs to this user, nobody else may write to it, and it is no symbolic link. All access
goes through a descriptor of the folder that was checked. Each entry carries a code made
with a secret that lies in the folder, so an entry that was changed in whatever way is found out
before it is used.

Several processes may use one folder at once, and each may be killed at any time: an entry is
written under another name and then renamed.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import stat
import time
from typing import NamedTuple

_MAGIC = b"perspex\x01"
_CODE = 32  # bytes of a code, a secret and a name
# What a file has beyond the bytes that were put.
OVERHEAD = len(_MAGIC) + _CODE
_SECRET = "secret"
_SUFFIX = ".xla"
_TEMPORARY = "writing-"
# What a killed process has begun to write is removed once it is this old, in seconds.
_ABANDONED = 3600.0
# No links, and no waiting for the other end of a pipe.
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


class RefusedError(Exception):
    """The folder cannot be used; the text says why, and what to do."""


class DamagedError(Exception):
    """An entry is not what was written."""


class File(NamedTuple):
    name: str
    size: int
    used: float


class Folder:
    """Entries by key, bytes to bytes, in the folder with an absolute path.

    Raises `RefusedError` for a folder that somebody else could have written to.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = _open(path)
        try:
            self.secret = self._read_secret() or self._make_secret()
        except OSError as error:
            raise RefusedError(f"cannot write to {self.path} ({error.strerror})") from None

    def __del__(self) -> None:
        if hasattr(self, "fd"):
            os.close(self.fd)

    # ---- entries ----------------------------------------------------------------------------

    def get(self, key: bytes) -> bytes | None:
        """What was put under `key`, or `None`; it counts as used now.

        Raises `DamagedError` if it is not what was put there, and `OSError` if it cannot be read.
        """
        name = self._name(key)
        try:
            whole = self._read(name)
        except FileNotFoundError:
            return None
        code, data = whole[len(_MAGIC) : OVERHEAD], whole[OVERHEAD:]
        if whole[: len(_MAGIC)] != _MAGIC or not hmac.compare_digest(code, self._code(key, data)):
            raise DamagedError(f"{self.path}/{name}")
        with contextlib.suppress(OSError):  # of a folder that can only be read
            os.utime(name, dir_fd=self.fd)
        return data

    def put(self, key: bytes, data: bytes) -> int:
        """Keep `data` under `key`; returns the size of the file. Raises `OSError`."""
        whole = b"".join([_MAGIC, self._code(key, data), data])
        self._write(self._name(key), whole)
        return len(whole)

    def remove(self, key: bytes) -> None:
        self._unlink(self._name(key))

    def files(self) -> list[File]:
        """All entries, whoever wrote them, least recently used first."""
        return sorted(self._scan(_SUFFIX), key=lambda file: file.used)

    def trim(self, limit: int) -> int:
        """Remove the least recently used entries until all take less than `limit` bytes.

        Returns how many were removed. To have some peace, it goes on to 90 % of the limit.
        """
        for file in self._scan("", _TEMPORARY):
            if file.used < time.time() - _ABANDONED:
                self._unlink(file.name)
        files = self.files()
        size = sum(file.size for file in files)
        if size <= limit:
            return 0
        for count, file in enumerate(files):
            if size <= 0.9 * limit:
                return count
            self._unlink(file.name)
            size -= file.size
        return len(files)

    def clear(self) -> int:
        """Remove all entries; returns how many."""
        files = self.files()
        for file in files:
            self._unlink(file.name)
        return len(files)

    # ---- files ------------------------------------------------------------------------------

    def _name(self, key: bytes) -> str:
        # Made with the secret: with a new one, the entries of the old one are not even found.
        name = hashlib.blake2b(key, key=self.secret, digest_size=_CODE, person=b"name")
        return name.hexdigest() + _SUFFIX

    def _code(self, key: bytes, data: bytes) -> bytes:
        code = hashlib.blake2b(key=self.secret, digest_size=_CODE, person=b"entry")
        code.update(len(key).to_bytes(8, "little") + key)
        code.update(data)
        return code.digest()

    def _read(self, name: str) -> bytes:
        """The content of a file of ours; `DamagedError` if it is something else."""
        try:
            fd = os.open(name, os.O_RDONLY | _PLAIN, dir_fd=self.fd)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise DamagedError(f"{self.path}/{name} ({error.strerror})") from None
        with open(fd, "rb") as file:
            about = os.fstat(fd)
            if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
                raise DamagedError(f"{self.path}/{name}")
            return file.read()

    def _write(self, name: str, data: bytes) -> None:
        """Write a file that is there as a whole or not at all."""
        temporary = self._write_temporary(data)
        try:
            os.replace(temporary, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except OSError:
            self._unlink(temporary)
            raise

    def _write_temporary(self, data: bytes) -> str:
        name = f"{_TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN
        fd = os.open(name, flags, 0o600, dir_fd=self.fd)
        try:
            with open(fd, "wb") as file:
                file.write(data)
        except OSError:
            self._unlink(name)
            raise
        return name

    def _unlink(self, name: str) -> None:
        # Another process may have been faster; and a folder, which no entry is, stays.
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self.fd)

    def _scan(self, suffix: str, prefix: str = "") -> list[File]:
        found = []
        with os.scandir(self.fd) as entries:
            for entry in entries:
                if not entry.name.endswith(suffix) or not entry.name.startswith(prefix):
                    continue
                try:
                    about = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # another process removed it
                found.append(File(entry.name, about.st_size, about.st_mtime))
        return found

    def _read_secret(self) -> bytes | None:
        """The secret, if nobody else can know it."""
        try:
            about = os.stat(_SECRET, dir_fd=self.fd, follow_symlinks=False)
            found = self._read(_SECRET)
        except (FileNotFoundError, DamagedError):
            return None
        return found if len(found) == _CODE and not about.st_mode & 0o077 else None

    def _make_secret(self) -> bytes:
        """A secret that all processes agree on: the first one to be there under its name."""
        temporary = self._write_temporary(secrets.token_bytes(_CODE))
        try:
            os.link(temporary, _SECRET, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except OSError:
            # Another process was faster, or the file is unusable, or there are no links here.
            if self._read_secret() is None:
                os.replace(temporary, _SECRET, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        finally:
            self._unlink(temporary)
        found = self._read_secret()
        if found is None:
            raise OSError(0, "other users can read its secret")
        return found


def _open(path: str) -> int:
    """A descriptor of the folder, made if it does not exist, and checked."""
    if not hasattr(os, "geteuid") or os.open not in os.supports_dir_fd:
        raise RefusedError("this system does not say who may write to a folder")
    if "://" in path:
        raise RefusedError(f"{path} is not a folder of this machine")
    if os.path.islink(path):
        raise RefusedError(f"{path} is a symbolic link; name the folder that it leads to")
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _PLAIN)
    except OSError as error:
        raise RefusedError(f"cannot open {path} ({error.strerror})") from None
    about = os.fstat(fd)
    reason = ""
    if about.st_uid != os.geteuid():
        reason = f"{path} belongs to another user (id {about.st_uid}); name a folder of your own"
    elif about.st_mode & 0o022:
        reason = f"other users can write to {path}; run `chmod go-w {path}`, then empty it"
    if reason:
        os.close(fd)
        raise RefusedError(reason)
    return fd
