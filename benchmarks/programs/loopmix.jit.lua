-- SPDX-License-Identifier: Apache-2.0
-- 64-bit integers are FFI values, which the compiler keeps in registers.
local bxor = bit.bxor

return function(nx, ny, nz)
    local sum = 0LL
    for x = 0, nx - 1 do
        for y = 0, ny - 1 do
            for z = 0, nz - 1 do
                sum = sum * 31LL + bxor(x, y, z)
            end
        end
    end
    return sum
end
