-- SPDX-License-Identifier: Apache-2.0
return function(nx, ny, nz)
    local sum = 0
    for x = 0, nx - 1 do
        for y = 0, ny - 1 do
            for z = 0, nz - 1 do
                sum = sum + 1
            end
        end
    end
    return sum
end
