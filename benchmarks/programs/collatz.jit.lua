-- SPDX-License-Identifier: Apache-2.0
-- Values pass 2^32 but stay below the 2^51 up to which `band` sees the low bits of a double.
local band = bit.band

return function(n)
    local best, longest = 0, 0
    for i = 1, n - 1 do
        local value, steps = i, 1
        while value ~= 1 do
            if band(value, 1) == 0 then
                value = value / 2
            else
                value = value * 3 + 1
            end
            steps = steps + 1
        end
        if steps > longest then
            longest = steps
            best = i
        end
    end
    return best
end
