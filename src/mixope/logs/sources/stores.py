"""Stores: file systems that are reached by an address, such as ``s3://bucket/logs/a.parquet``.

pyarrow opens s3, gs, abfs and hdfs, and fsspec what pyarrow does not know. Credentials, region and endpoint are found
as these libraries find them (``AWS_…`` variables, the files of the cloud's own tools, the role of the machine). Every
request has a limit of time and of attempts: a server that does not answer is an error, never a wait without end.

A file of a store is called by its address. Where a reader needs a file on the disk (text, archives), it asks
:func:`here` for a copy, which is fetched once per process and gone at its end.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mixope.base.errors import DataError, UsageError
from mixope.base.files import scratch_folder
from mixope.logs.sources.stamps import stamped_in

CONNECT_SECONDS, REQUEST_SECONDS, ATTEMPTS = 10, 30, 3
LONGEST = 400
"""Characters of what a library says."""
AT_ONCE = 16
"""Requests that are under way at the same time."""
BLOCK = 1 << 20
WEB = ("http", "https")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(.*)", re.DOTALL)
_OPTIONS = re.compile(r"[A-Za-z_]+=[^&/*?]*(&[A-Za-z_]+=[^&/*?]*)*")
Value = TypeVar("Value")


@dataclass(frozen=True)
class Store:
    """A file system of pyarrow, and how its files are called: with ``called`` at the beginning in place of ``root``.

    ``held`` must not go while the files are read: a folder of ours, say.
    """

    filesystem: Any
    called: str
    root: str = ""
    held: Any = field(default=None, repr=False, compare=False)

    def path(self, name: str) -> str:
        """Where a file lies in the file system."""
        return self.root + name.removeprefix(self.called)

    def name(self, path: str) -> str:
        """How a file is called; some file systems put a slash before all paths."""
        return self.called + (path if path.startswith(self.root) else path.lstrip("/")).removeprefix(self.root)

    def open(self, name: str) -> Any:
        """A file to read from, wherever in it."""
        return self.filesystem.open_input_file(self.path(name))

    def read(self, name: str) -> bytes:
        """All bytes of a small file."""
        with self.open(name) as file:
            return bytes(file.read())

    def names(self, folder: str) -> list[str]:
        """What lies in a folder, without its sub-folders, by the last part of the name; nothing where there is none."""
        from pyarrow import fs

        listed = self.filesystem.get_file_info(fs.FileSelector(self.path(folder), allow_not_found=True))
        return [info.base_name for info in listed]

    @property
    def on_disk(self) -> bool:
        """Whether its files are files of this machine."""
        from pyarrow import fs

        return isinstance(self.filesystem, fs.LocalFileSystem)


def is_address(path: str) -> bool:
    """Whether a text is an address and not a path."""
    return _ADDRESS.fullmatch(path) is not None


def local_path(address: str) -> str | None:
    """The path behind a ``file://`` address; None for others."""
    found = _ADDRESS.fullmatch(address)
    if found is None or found[1].lower() != "file":
        return None
    if found[2] not in ("", "localhost"):
        raise DataError("The address names another machine", got=address, expected="file:///path of this machine")
    from urllib.parse import unquote

    return unquote(found[3])


def open_store(address: str) -> tuple[Store, str]:
    """The store behind an address, and the name in it: the address without options (``?region=…``)."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise DataError("This is no address", got=address, expected="such as s3://bucket/logs/*.parquet")
    scheme, place, rest = found[1].lower(), found[2], found[3]
    before, _, words = rest.rpartition("?")
    options: dict[str, str] = {}
    if words and rest != words and _OPTIONS.fullmatch(words):
        rest, options = before, dict(part.partition("=")[::2] for part in words.split("&"))
    if scheme in WEB:
        raise _web(address)
    called = f"{scheme}://{place}"
    if ":" in place.rpartition("@")[0]:
        secret = f"{scheme}://…@{place.rpartition('@')[2]}"
        raise DataError(
            "The address holds a password, which reports would repeat",
            got=secret,
            hint="leave it out, and give credentials as the store's own tools take them (AWS_ACCESS_KEY_ID …)",
        )
    with reaching(called):
        filesystem, root = _file_system(scheme, place, options)
    return Store(filesystem, called, root.rstrip("/")), f"{called}{rest}"


def _file_system(scheme: str, place: str, options: dict[str, str]) -> tuple[Any, str]:
    import pyarrow as pa
    from pyarrow import fs

    query = "&".join(f"{key}={value}" for key, value in options.items())
    try:
        if scheme in ("s3", "s3a", "s3n"):
            return _s3(place, options), place
        if scheme in ("gs", "gcs") and "retry_limit_seconds" not in options:
            query = "&".join(filter(None, [query, f"retry_limit_seconds={REQUEST_SECONDS}"]))
        filesystem, root = fs.FileSystem.from_uri(f"{scheme}://{place}{'?' if query else ''}{query}")
    except (ImportError, pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        if isinstance(error, pa.ArrowInvalid) and "Unrecognized filesystem type" not in str(error):
            raise
        return _by_fsspec(scheme, place, options)
    return filesystem, root


def _s3(bucket: str, options: dict[str, str]) -> Any:
    """Amazon's, or another at the endpoint that the environment or the address names."""
    from pyarrow import fs

    known = {"region", "endpoint_override", "scheme", "anonymous"}
    if set(options) - known:
        raise DataError("An option of the address is not known", got=min(set(options) - known), expected=str(known))
    endpoint = options.get("endpoint_override") or endpoint_of()
    region = options.get("region") or _first_set(("AWS_REGION", "AWS_DEFAULT_REGION"))
    if region is None:
        region = "us-east-1" if endpoint else fs.resolve_s3_region(bucket)
    return fs.S3FileSystem(
        region=region,
        endpoint_override=endpoint,
        scheme=options.get("scheme", "https"),
        anonymous=options.get("anonymous", "").lower() in ("1", "true"),
        connect_timeout=CONNECT_SECONDS,
        request_timeout=REQUEST_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
    )


def endpoint_of() -> str | None:
    """The server that stands in for Amazon's, where the environment names one."""
    return _first_set(("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"))


def _first_set(variables: Iterable[str]) -> str | None:
    return next((os.environ[name] for name in variables if os.environ.get(name)), None)


def _by_fsspec(scheme: str, place: str, options: dict[str, str]) -> tuple[Any, str]:
    """Any other kind of store, where the library that knows it is installed."""
    from pyarrow import fs

    try:
        import fsspec

        inner = fsspec.filesystem(scheme, **options, use_listings_cache=False, skip_instance_cache=True)
    except (ImportError, ValueError) as error:
        needs = str(error) if not isinstance(error, ModuleNotFoundError) else "fsspec is not installed"
        raise DataError(
            f"pyarrow has no file system for {scheme}://, and fsspec has none either: {needs}",
            got=f"{scheme}://{place}",
            expected="s3://, gs://, abfs://, hdfs://, file://, or an address that fsspec can open",
            hint="pip install fsspec and the package that knows this kind of store; or copy the files to this machine",
        ) from error
    return fs.PyFileSystem(fs.FSSpecHandler(inner)), place


def _web(address: str) -> DataError:
    return DataError(
        "Addresses of the web are not opened: they can be neither listed nor told from a later version",
        got=address,
        hint="download the file and give its path",
    )


REASONS: tuple[tuple[str, str, str], ...] = (
    (
        r"NO_SUCH_BUCKET|[Bb]ucket '.*' not found",
        "There is no such bucket",
        "check the name of the bucket and the endpoint",
    ),
    (
        r"ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|EXPIRED_TOKEN|HTTP status 403|PERMISSION_DENIED",
        "The store denies access",
        "give credentials that may list and read it (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or"
        " what the store's own tools take); of a public bucket, end the address with ?anonymous=true",
    ),
    (
        r"[Cc]redentials|UNAUTHENTICATED|HTTP status 401|Could not create a OAuth2",
        "No credentials for the store are found",
        "give them as the store's own tools take them: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE,"
        " GOOGLE_APPLICATION_CREDENTIALS, …",
    ),
    (
        r"HTTP status 301|PermanentRedirect|AuthorizationHeaderMalformed|region '.*' expect|AWS Error INVALID_REGION",
        "The bucket lies in another region",
        "set AWS_REGION to the region of the bucket, or end the address with ?region=…",
    ),
    (
        r"NETWORK_CONNECTION|[Cc]url|UNAVAILABLE|timed? ?out|[Cc]ould not resolve|[Cc]onnection refused",
        "The store does not answer",
        "check the network and the endpoint (AWS_ENDPOINT_URL, say), and try again",
    ),
    (
        r"libjvm|libhdfs|[Hh]adoop",
        "Hadoop's client cannot be loaded or cannot connect",
        "set JAVA_HOME, HADOOP_HOME and CLASSPATH (as the classpath command of hadoop prints it, files spelt out)",
    ),
)
"""What the libraries say, what that means, and what to do."""


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Of a disk; copies of what is in a store, or comes as a stream, lie on this one."""


@contextmanager
def reaching(where: str) -> Iterator[None]:
    """Inside, what goes wrong between here and a store is a ``DataError`` in words."""
    import pyarrow

    try:
        yield
    except (OSError, pyarrow.ArrowException) as error:
        said = " ".join(str(error).split())
        if getattr(error, "errno", None) in FULL:
            raise UsageError(
                f"there is no room for a copy of {where} among the temporary files, in {tempfile.gettempdir()}; make"
                " room there, or set TMPDIR to a folder that has some"
            ) from error
        found = ((problem, hint) for pattern, problem, hint in REASONS if re.search(pattern, said))
        problem, hint = next(found, ("The store cannot be read", "check the address"))
        raise DataError(problem, where=where, got=said[:LONGEST], hint=hint) from error


def all_at_once(do: Callable[[str], Value], names: Sequence[str]) -> list[Value]:
    """A function of every name, in their order; requests wait for the store side by side."""
    if len(names) < 2:
        return [do(name) for name in names]
    with ThreadPoolExecutor(min(AT_ONCE, len(names))) as pool:
        return list(pool.map(do, names))


class _Copies:
    """Copies of stored files on this disk: by name, each of one version; gone at the end of the process."""

    def __init__(self) -> None:
        self.stack, self.lock, self.process = ExitStack(), threading.Lock(), os.getpid()
        self.folder: str | None = None
        self.made: dict[str, tuple[tuple[Any, ...], str]] = {}

    def of(self, store: Store, name: str, version: tuple[Any, ...]) -> str:
        with self.lock:
            known = self.made.get(name)
            if known is None or known[0] != version:
                self.made[name] = known = version, self._fetch(store, name)
            return known[1]

    def _fetch(self, store: Store, name: str) -> str:
        if self.folder is None:
            import atexit

            self.folder = str(self.stack.enter_context(scratch_folder()))
            atexit.register(self.stack.close)
        inner = os.path.join(self.folder, hashlib.sha256(name.encode()).hexdigest()[:16])
        os.makedirs(inner, exist_ok=True)
        path = os.path.join(inner, os.path.basename(name))
        with reaching(name), store.open(name) as source, open(path, "wb") as copy:
            shutil.copyfileobj(source, copy, BLOCK)
        return path


_copies = _Copies()


def here(name: str, store: Store | None) -> str:
    """The path of a file on this disk: a copy that is fetched once per version, or the file itself."""
    if store is None:
        return name
    if store.on_disk:
        return store.path(name)
    global _copies  # noqa: PLW0603 -- what a parent process fetched is the parent's to remove
    if _copies.process != os.getpid():
        _copies = _Copies()
    with reaching(name):
        stamp = stamped_in(store.filesystem, store.path(name))
    return _copies.of(store, name, () if stamp is None else stamp.state)
