# jemalloc.rb - strings, hashes and trees in threads and in a child, and what the allocator says of them.
# SPDX-License-Identifier: MIT
#
# The first line is the allocator's, the others are the same on any.
require 'digest'
require 'fiddle'

# A number or text of the control tree; nil where there is none.
def control(name, text: false)
  function = Fiddle::Function.new(Fiddle::Handle::DEFAULT['mallctl'], [Fiddle::TYPE_VOIDP] * 4 + [Fiddle::TYPE_SIZE_T],
                                  Fiddle::TYPE_INT)
  value = [1].pack('Q')
  function.call('epoch', nil, nil, value, 8)
  length = [8].pack('Q')
  return nil unless function.call(name, value, length, nil, 0).zero?
  text ? Fiddle::Pointer.new(value.unpack1('Q')).to_s : value.unpack1('Q')
rescue Fiddle::DLError
  nil
end

def tree(depth)
  depth.zero? ? 'leaf' * 20 : [tree(depth - 1), tree(depth - 1), 'node' * depth]
end

def work(seed)
  source = Random.new(seed)
  table = {}
  40_000.times do |number|
    table["#{source.rand(8000)}:#{number % 7}"] = 'x' * source.rand(400)
    table.delete(table.first[0]) if table.size > 5000
  end
  Digest::SHA256.hexdigest(table.to_a.join(' ') + tree(10).flatten.join)
end

before = control('stats.allocated')
live = Array.new(200_000) { |number| 'y' * (24 + number % 200) }
grown = before.nil? ? 0 : control('stats.allocated') - before
puts "allocator #{control('version', text: true) || 'none'} grown #{grown}"
puts Digest::SHA256.hexdigest(live.join)
puts Array.new(4) { |seed| Thread.new { work(seed) } }.map(&:value)
reader, writer = IO.pipe
child = fork do
  writer.puts work(99)
end
Process.wait(child)
puts reader.gets, $?.exitstatus
