# SPDX-License-Identifier: Apache-2.0
"""A cache of compiled code on disk, in the user's cache directory, shared by all processes.

    entry = Entry(name, key([what, it, depends, on]))   file     K/NAME-KEY.bin
    payload = entry.get(build, fault)                   content  format │ MAC of name, key, payload │
                                                                 payload

An entry never changes: what it depends on is its key, so another version is another entry. It is
written to a temporary file and renamed: a kill at any moment leaves the old state or the new, and
two writers do no harm.

Payloads are code that runs with the user's rights, so an entry is read only if it must be this
user's own: folder and file are theirs alone (`private`), and the MAC is made with a secret that is
kept elsewhere (`secret`). What does not hold is told and built again; a cache that cannot be used
at all is told once, and costs time. Nothing that a cache holds can change what a program does.

Entries are in 16 folders, by the first digit of their keys. Once a day a process that stores one
removes from its folder what nobody has read for 90 days, and of more than 8 MiB what was read
longest ago (`tidy`). Of one folder that takes some milliseconds, however full the cache is.

    FERRYVM_CACHE_DIR     names another directory
"""

from ferryvm.cache.entry import ENVIRONMENT, Entry, directory, key, why_not_usable
from ferryvm.cache.secret import path as key_path

__all__ = ["ENVIRONMENT", "Entry", "directory", "key", "key_path", "why_not_usable"]
