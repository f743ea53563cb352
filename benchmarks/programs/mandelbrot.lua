-- SPDX-License-Identifier: Apache-2.0
return function(n, limit)
    local total = 0
    for row = 0, n - 1 do
        local ci = row * 2.0 / n - 1.0
        for column = 0, n - 1 do
            local cr = column * 3.0 / n - 2.0
            local zr, zi, rr, ii = 0.0, 0.0, 0.0, 0.0
            local count = 0
            while count < limit and rr + ii <= 4.0 do
                zi = 2.0 * zr * zi + ci
                zr = rr - ii + cr
                rr = zr * zr
                ii = zi * zi
                count = count + 1
            end
            total = total + count
        end
    end
    return total
end
