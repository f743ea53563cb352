-- SPDX-License-Identifier: Apache-2.0
local ffi = require("ffi")

local function multiply(n, a, b, c)
    for i = 0, n - 1 do
        for j = 0, n - 1 do
            local sum = 0.0
            for k = 0, n - 1 do
                sum = sum + a[i * n + k] * b[k * n + j]
            end
            c[i * n + j] = sum
        end
    end
end

return function(n, times)
    local size = n * n
    local a, b, c = ffi.new("double[?]", size), ffi.new("double[?]", size), ffi.new("double[?]", size)
    for i = 0, size - 1 do
        a[i] = (i % 13) / 7.0
        b[i] = (i % 11) / 3.0 - 1.0
    end
    for _ = 1, times do
        multiply(n, a, b, c)
        a[0] = c[0] * 0.001
    end
    local total = 0.0
    for i = 0, size - 1 do
        total = total + c[i]
    end
    return total
end
