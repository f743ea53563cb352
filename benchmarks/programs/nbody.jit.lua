-- SPDX-License-Identifier: Apache-2.0
local sqrt = math.sqrt
local BODIES = 5
local array = require("ffi").typeof("double[?]")
local x, y, z = array(BODIES), array(BODIES), array(BODIES)
local vx, vy, vz, mass = array(BODIES), array(BODIES), array(BODIES), array(BODIES)

local function start()
    for i = 0, BODIES - 1 do
        local d = i * 1.0
        x[i] = d * 3.25
        y[i] = 1.5 - d * 0.75
        z[i] = d * d * 0.125
        vx[i] = 0.1 * d - 0.05 * d * d
        vy[i] = 0.5 - 0.15 * d
        vz[i] = 0.02 * d
        mass[i] = 8.0 / (1.0 + 4.0 * d)
    end
end

local function advance(dt)
    for i = 0, BODIES - 1 do
        for j = i + 1, BODIES - 1 do
            local dx, dy, dz = x[i] - x[j], y[i] - y[j], z[i] - z[j]
            local square = dx * dx + dy * dy + dz * dz
            local pull = dt / (square * sqrt(square))
            local mi, mj = mass[i] * pull, mass[j] * pull
            vx[i] = vx[i] - dx * mj
            vy[i] = vy[i] - dy * mj
            vz[i] = vz[i] - dz * mj
            vx[j] = vx[j] + dx * mi
            vy[j] = vy[j] + dy * mi
            vz[j] = vz[j] + dz * mi
        end
    end
    for i = 0, BODIES - 1 do
        x[i] = x[i] + dt * vx[i]
        y[i] = y[i] + dt * vy[i]
        z[i] = z[i] + dt * vz[i]
    end
end

local function energy()
    local total = 0.0
    for i = 0, BODIES - 1 do
        local speed = vx[i] * vx[i] + vy[i] * vy[i] + vz[i] * vz[i]
        total = total + 0.5 * mass[i] * speed
        for j = i + 1, BODIES - 1 do
            local dx, dy, dz = x[i] - x[j], y[i] - y[j], z[i] - z[j]
            total = total - mass[i] * mass[j] / sqrt(dx * dx + dy * dy + dz * dz)
        end
    end
    return total
end

return function(steps)
    start()
    for _ = 1, steps do
        advance(0.01)
    end
    return energy()
end
