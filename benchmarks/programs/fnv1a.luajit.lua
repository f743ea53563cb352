-- SPDX-License-Identifier: Apache-2.0
-- Numbers are doubles here: the product by 16777619 = 2^24 + 403 is taken in two parts, each below
-- 2^53, and `tobit` reduces it modulo 2^32 (to a signed value).
local bxor, tobit, rshift = bit.bxor, bit.tobit, bit.rshift

return function(n)
    local bytes = {}
    local state = 1
    for i = 1, n do
        state = (state * 1664525 + 1013904223) % 4294967296
        bytes[i] = rshift(state, 24)
    end
    local hash = 2166136261
    for i = 1, n do
        hash = bxor(hash, bytes[i])
        hash = tobit((hash % 256) * 16777216 + hash * 403)
    end
    return hash % 4294967296
end
