-- SPDX-License-Identifier: Apache-2.0
local a, b, c = {}, {}, {}

-- Indices count from 1: element (i, k) of n columns is at i * n + k + 1.
local function multiply(n)
    for i = 0, n - 1 do
        for j = 0, n - 1 do
            local sum = 0.0
            for k = 0, n - 1 do
                sum = sum + a[i * n + k + 1] * b[k * n + j + 1]
            end
            c[i * n + j + 1] = sum
        end
    end
end

return function(n, times)
    local size = n * n
    for i = 0, size - 1 do
        a[i + 1] = (i % 13) / 7.0
        b[i + 1] = (i % 11) / 3.0 - 1.0
    end
    for _ = 1, times do
        multiply(n)
        a[1] = c[1] * 0.001
    end
    local total = 0.0
    for i = 1, size do
        total = total + c[i]
    end
    return total
end
