-- SPDX-License-Identifier: Apache-2.0
-- Runs a Lua twin: `drive.lua [--warm N,...] TWIN SIZE...` prints the seconds of its work and its
-- result; with --warm, after a run with those small sizes that nobody measures.
-- Lua has no monotonic clock: this is processor time, which an idle machine makes the same.
local unpack = table.unpack or unpack
local first, warm = 1, nil
if arg[1] == "--warm" then
    warm = {}
    for size in arg[2]:gmatch("[^,]+") do
        warm[#warm + 1] = tonumber(size)
    end
    first = 3
end
local work = dofile(arg[first])
local sizes = {}
for i = first + 1, #arg do
    sizes[#sizes + 1] = tonumber(arg[i])
end
if warm then
    work(unpack(warm))
end
local start = os.clock()
local result = work(unpack(sizes))
local seconds = os.clock() - start
if type(result) == "cdata" then -- LuaJIT's 64-bit integers, which tostring writes as 42LL
    print(string.format("%.9f %s", seconds, (tostring(result):gsub("U?LL$", ""))))
elseif result == math.floor(result) then
    print(string.format("%.9f %d", seconds, result))
else
    print(string.format("%.9f %.17g", seconds, result))
end
