-- SPDX-License-Identifier: Apache-2.0
-- 64-bit integers are FFI values, which the compiler keeps in registers.
local ffi = require("ffi")
local band, bxor, rshift = bit.band, bit.bxor, bit.rshift

return function(n)
    local bytes = ffi.new("uint8_t[?]", n)
    local state = 1LL
    for i = 0, n - 1 do
        state = band(state * 1664525 + 1013904223, 0xFFFFFFFFLL)
        bytes[i] = tonumber(rshift(state, 24))
    end
    local hash = 2166136261LL
    for i = 0, n - 1 do
        hash = band(bxor(hash, bytes[i]) * 16777619, 0xFFFFFFFFLL)
    end
    return tonumber(hash)
end
