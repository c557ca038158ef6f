"""Ways out of a folder, by kind: what a name in a record, or a thing in a folder, may be that leads elsewhere."""

import os
from pathlib import Path

SECRET = "secret"
"""A file beside the folder; nothing may show what is in it."""


def names(folder: Path) -> dict[str, str]:
    """What stands where a record names a file: each would lead out of ``folder`` for one library or another."""
    beside, here = str(folder.parent / SECRET), str(folder)
    up = os.path.relpath("/", here)
    return {
        "absolute": beside,
        "absolute, of the system": "/etc/passwd",
        "one up": f"../{SECRET}",
        "up and down": f"{folder.name}/../../{SECRET}",
        "up in the middle": f"data/../../{SECRET}",
        "up from this folder": f"./../{SECRET}",
        "up to the root": f"{up}/etc/passwd",
        "more ups than there are": f"{'../' * 40}etc/passwd",
        "absolute, through the folder": f"{here}/../{SECRET}",
        "two slashes": f"//{beside}",
        "two slashes in the middle": f"..//{SECRET}",
        "a folder with the same beginning": f"{here}-other/{SECRET}",
        "the folder itself": here,
        "this folder": ".",
        "nothing": "",
        "file, three slashes": f"file://{beside}",
        "file, one slash": f"file:{beside}",
        "file, of this machine": f"file://localhost{beside}",
        "file, of another machine": f"file://evil.example{beside}",
        "file, in capitals": f"FILE://{beside}",
        "file, mixed": f"FiLe://{beside}",
        "file, up": f"file://{here}/../{SECRET}",
        "file, percent signs": f"file://{here}/%2e%2e/{SECRET}",
        "file, percent signs for slashes": f"file://{here}/data%2F..%2F..%2F{SECRET}",
        "percent signs": f"%2e%2e/{SECRET}",
        "percent signs in capitals": f"%2E%2E%2F{SECRET}",
        "percent signs, mixed": f".%2e/{SECRET}",
        "percent signs twice": f"%252e%252e/{SECRET}",
        "percent signs three times": f"%25252e%25252e%25252f{SECRET}",
        "an absolute path in percent signs": beside.replace("/", "%2F"),
        "a null byte at the end": f"../{SECRET}\0",
        "a null byte before an ending": f"../{SECRET}\0.parquet",
        "backslashes": f"..\\{SECRET}",
        "backslashes, mixed": f"data\\..\\../../{SECRET}",
        "a share of Windows": "\\\\evil.example\\share\\a.parquet",
        "a share, with slashes": "//evil.example/share/a.parquet",
        "a drive of Windows": "C:\\Windows\\win.ini",
        "a drive, with slashes": "c:/windows/win.ini",
        "home": "~/.ssh/id_rsa",
        "home of another": "~root/.bashrc",
        "a variable": "$HOME/.bashrc",
        "a variable in braces": "${HOME}/.bashrc",
        "a variable of Windows": "%USERPROFILE%\\secrets.txt",
        "the web": "http://127.0.0.1:9/a.parquet",
        "the web, encrypted": "https://127.0.0.1:9/a.parquet",
        "a store": "s3://bucket/a.parquet",
        "a store in capitals": "S3://bucket/a.parquet",
        "a store with its server": "s3://bucket/a.parquet?endpoint_override=127.0.0.1:9",
        "another store": "gs://bucket/a.parquet",
        "Hadoop": "hdfs://127.0.0.1:9/a.parquet",
        "FTP": "ftp://127.0.0.1/a.parquet",
        "a chain of fsspec": f"zip://a.parquet::file://{beside}",
        "a cache of fsspec": f"simplecache::file://{beside}",
        "a program of the shell": "|cat /etc/passwd",
        "data in the name": "data:text/plain,x",
        "what the process was started with": "/proc/self/environ",
        "the folder of the process": f"/proc/self/cwd/../{SECRET}",
        "the root of the process": "/proc/self/root/etc/passwd",
        "an open file": "/dev/fd/0",
        "zeros without end": "/dev/zero",
        "standard input": "/dev/stdin",
        "a terminal": "/dev/tty",
        "a line end": f"../{SECRET}\n",
        "a slash of another alphabet": f"..\u2215{SECRET}",
        "full stops of another width": f"\uff0e\uff0e/{SECRET}",
        "a mark of direction": f"\u202e../{SECRET}",
    }


def _link(to: str):
    return lambda place, folder: place.symlink_to(to.format(beside=folder.parent / SECRET, folder=folder))


def _through_a_folder(place: Path, folder: Path) -> None:
    (folder / "inner").symlink_to(folder.parent, target_is_directory=True)
    place.symlink_to(folder / "inner" / SECRET)


def _chain(place: Path, folder: Path) -> None:
    (folder / ".first").symlink_to(folder.parent / SECRET)
    (folder / ".second").symlink_to(".first")
    place.symlink_to(".second")


def _pipe(place: Path, folder: Path) -> None:
    os.mkfifo(place)


def _link_to_pipe(place: Path, folder: Path) -> None:
    os.mkfifo(folder / ".pipe")
    place.symlink_to(folder / ".pipe")


THINGS = {
    "a link to an absolute path": _link("{beside}"),
    "a link one up": _link(f"../{SECRET}"),
    "a link to a file of the system": _link("/etc/passwd"),
    "a link to a link": _chain,
    "a link through a folder that is a link": _through_a_folder,
    "a link to the environment": _link("/proc/self/environ"),
    "a link to what is mapped": _link("/proc/self/maps"),
    "a link through the process's folder": _link("/proc/self/root/etc/passwd"),
    "a link to zeros without end": _link("/dev/zero"),
    "a link to chance without end": _link("/dev/urandom"),
    "a link to standard input": _link("/dev/stdin"),
    "a link to nothing": _link("{folder}/gone"),
    "a link to itself": lambda place, folder: place.symlink_to(place.name),
    "a pipe": _pipe,
    "a link to a pipe": _link_to_pipe,
}
"""What may lie in a folder in the place of a file."""
