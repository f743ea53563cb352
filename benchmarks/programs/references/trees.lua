-- SPDX-License-Identifier: Apache-2.0
-- Perfect binary trees, many short-lived ones beside one that stays; the number of their nodes.
local function make(depth)
    if depth == 0 then
        return {}
    end
    return { make(depth - 1), make(depth - 1) }
end

local function nodes(of)
    if of[1] then
        return 1 + nodes(of[1]) + nodes(of[2])
    end
    return 1
end

return function(deepest)
    local sum = nodes(make(deepest + 1))
    local lasting = make(deepest)
    for depth = 4, deepest, 2 do
        for _ = 1, 1 << (deepest - depth + 4) do
            sum = sum + nodes(make(depth))
        end
    end
    return sum + nodes(lasting)
end
