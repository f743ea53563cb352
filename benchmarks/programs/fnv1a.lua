-- SPDX-License-Identifier: Apache-2.0
return function(n)
    local bytes = {}
    local state = 1
    for i = 1, n do
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        bytes[i] = state >> 24
    end
    local hash = 2166136261
    for i = 1, n do
        hash = ((hash ~ bytes[i]) * 16777619) & 0xFFFFFFFF
    end
    return hash
end
