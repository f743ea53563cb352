-- SPDX-License-Identifier: Apache-2.0
-- Lua 5.1 has no integers and no bit operators; values stay below 2^53, so doubles are exact.
return function(n)
    local best, longest = 0, 0
    for i = 1, n - 1 do
        local value, steps = i, 1
        while value ~= 1 do
            if value % 2 == 0 then
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
