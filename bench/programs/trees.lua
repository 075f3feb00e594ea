-- trees.lua - trees, strings, tables and closures that come and go; prints checksums.
-- SPDX-License-Identifier: MIT
local per_cent = tonumber(arg[1])
local function times(full) return math.max(1, full * per_cent // 100) end

local state = 20050101
local function below(limit)                 -- Lehmer's generator
  state = state * 48271 % 2147483647
  return state % limit
end

local function tree(depth)
  if depth == 0 then return { text = "leaf" } end
  return { left = tree(depth - 1), right = tree(depth - 1) }
end

local function count(node)
  if node.text then return 1 end
  return 1 + count(node.left) + count(node.right)
end

local function trees()
  local long_lived, total = tree(15), 0
  for _ = 1, times(48) do
    for depth = 6, 12, 2 do total = total + count(tree(depth)) end
  end
  return total + count(long_lived)
end

local function strings()
  local kept, length = {}, 0
  for place = 1, 5000 do kept[place] = "" end
  for number = 1, times(600000) do
    local text = ("%d-%s"):format(number, ("ab"):rep(below(40)))
    kept[below(5000) + 1] = text
    if number % 2000 == 0 then
      local joined = table.concat(kept, ",", 1, 300)
      length = length + #joined:gsub("(%d+)%-", "<%1>"):upper()
    end
  end
  return length
end

local function tables()
  local live, sum = {}, 0
  for number = 1, times(120000) do
    local list = {}
    for place = 1, below(30) do list[place] = number * place end
    for name = 1, below(6) do list["name" .. name] = { number, name } end
    local slot = below(3000) + 1
    local old = live[slot]
    if old then sum = (sum + #old + (old.name1 and old.name1[1] or 0)) % 1000000007 end
    live[slot] = list
    if number % 5000 == 0 then
      local all = {}
      for _, one in pairs(live) do all[#all + 1] = one[1] or 0 end
      table.sort(all)
      sum = sum + all[#all // 2]
    end
  end
  return sum
end

local function closures()
  local jobs, sum = {}, 0
  for number = 1, times(500000) do
    jobs[#jobs + 1] = function(more) return number % 7 + more end
    if #jobs == 3000 then
      for _, job in ipairs(jobs) do sum = sum + job(1) end
      jobs = {}
    end
  end
  return sum
end

print("trees", trees())
print("strings", strings())
print("tables", tables())
print("closures", closures())
