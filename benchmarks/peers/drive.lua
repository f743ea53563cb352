-- SPDX-License-Identifier: Apache-2.0
-- Runs a Lua twin once: `drive.lua TWIN SIZE...` prints the seconds of its work and its result.
-- Lua has no monotonic clock: this is processor time, which an idle machine makes the same.
local work = dofile(arg[1])
local sizes = {}
for i = 2, #arg do
    sizes[i - 1] = tonumber(arg[i])
end
local unpack = table.unpack or unpack
local start = os.clock()
local result = work(unpack(sizes))
local seconds = os.clock() - start
if result == math.floor(result) then
    print(string.format("%.9f %d", seconds, result))
else
    print(string.format("%.9f %.17g", seconds, result))
end
