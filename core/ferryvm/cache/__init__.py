# SPDX-License-Identifier: Apache-2.0
"""A cache of compiled code on disk, in the user's cache directory, shared by all processes.

    entry = Entry(name, key([what, it, depends, on]))   file     K/NAME-KEY.bin
    payload = entry.get(build, fault)                   content  format │ MAC of name, key, payload │
                                                                 payload

An entry never changes: its key covers everything that it depends on, so another version is another
entry. It is written to a temporary file and renamed: a kill at any moment leaves the old state or
the new, and two writers do no harm.

Payloads are code that runs with the user's rights, so an entry is read only if it is certainly this
user's own: folder and file belong to this user alone (`private`), and the MAC is made with a secret
that is stored elsewhere (`secret`). Refused entries are reported and built again; an unusable cache
is reported once, and costs time. The content of a cache cannot change the behaviour of a program.

Entries are in 16 folders, by the first digit of their keys. Once a day a process that stores one
removes from its folder the entries that were not read for 90 days, and the least recently read ones
beyond 8 MiB (`tidy`). For one folder that takes some milliseconds, however full the cache is.

    FERRYVM_CACHE_DIR     names another directory
"""

from ferryvm.cache.entry import ENVIRONMENT, Entry, directory, key, why_not_usable
from ferryvm.cache.secret import path as key_path

__all__ = ["ENVIRONMENT", "Entry", "directory", "key", "key_path", "why_not_usable"]
