-- SPDX-License-Identifier: Apache-2.0
local ffi = require("ffi")

return function(n)
    local composite = ffi.new("uint8_t[?]", n)
    local count = 0
    for i = 2, n - 1 do
        if composite[i] == 0 then
            count = count + 1
            for j = i * i, n - 1, i do
                composite[j] = 1
            end
        end
    end
    return count
end
