-- SPDX-License-Identifier: Apache-2.0
-- Merge sort of a linked list by its links; the sum of value times position, modulo 2^64.
local function make(n)
    local all, random = nil, 12345
    for _ = 1, n do
        random = (random * 1103515245 + 12345) & 2147483647
        all = { value = random, next = all }
    end
    return all
end

local function merge(a, b)
    local head
    if b.value < a.value then
        head, b = b, b.next
    else
        head, a = a, a.next
    end
    local tail = head
    while a and b do
        if b.value < a.value then
            tail.next = b
            tail, b = b, b.next
        else
            tail.next = a
            tail, a = a, a.next
        end
    end
    tail.next = a or b
    return head
end

local function sort(all, n)
    if n < 2 then
        return all
    end
    local middle, half = all, n // 2
    for _ = 2, half do
        middle = middle.next
    end
    local rest = middle.next
    middle.next = nil
    return merge(sort(all, half), sort(rest, n - half))
end

return function(n)
    local sum, position, at = 0, 1, sort(make(n), n)
    while at do
        sum = sum + at.value * position
        position = position + 1
        at = at.next
    end
    return sum
end
