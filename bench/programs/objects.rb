# objects.rb - strings, arrays, hashes, structs and patterns that come and go; prints checksums.
# SPDX-License-Identifier: MIT
require 'json'
require 'zlib'

PER_CENT = Integer(ARGV.fetch(0))
SOURCE = Random.new(19950224)
WORDS = Array.new(2000) { Array.new(2 + SOURCE.rand(9)) { (97 + SOURCE.rand(26)).chr }.join }

Entry = Struct.new(:key, :words, :weight)

def times(full)
  [1, full * PER_CENT / 100].max
end

def word
  WORDS[SOURCE.rand(WORDS.size)]
end

# Strings longer than 23 bytes and everything that grows are blocks of malloc.
def strings
  kept = Array.new(3000, '')
  times(100_000).times do |number|
    text = +"#{number}:"
    (1 + SOURCE.rand(12)).times { text << word << ' ' }
    text.gsub!(/[aeiou]+/) { |part| part.upcase } if number % 3 == 0
    kept[SOURCE.rand(kept.size)] = text
  end
  Zlib.crc32(kept.join)
end

def hashes
  live = Array.new(600)
  times(18_000).times do |number|
    table = {}
    (1 + SOURCE.rand(40)).times { |k| table["#{word}#{k % 5}"] = [number, k] }
    table.delete_if { |key, _| key.start_with?('a', 'b', 'c') }
    live[SOURCE.rand(live.size)] = table
  end
  live.compact.sum { |table| table.size + table.values.sum { |pair| pair[1] } }
end

def entries
  list, sum = [], 0
  times(60_000).times do |number|
    list << Entry.new("#{word}-#{number}", Array.new(SOURCE.rand(8)) { word }, SOURCE.rand)
    next unless list.size > 8000
    list = list.sort_by { |entry| [-entry.weight, entry.key] }.first(3000)
    sum += list.group_by { |entry| entry.key[0, 2] }.values.map(&:size).max
  end
  "#{sum} #{Zlib.crc32(list.map { |entry| entry.key + entry.words.join }.join)}"
end

def documents
  (1..times(10)).sum do |turn|
    data = Array.new(1500) { |id| { id: id, name: word, tags: Array.new(SOURCE.rand(5)) { word } } }
    text = JSON.generate(data)
    JSON.parse(text).count { |one| one['tags'].size == turn % 5 } + Zlib.crc32(text) % 1000
  end
end

puts "strings #{strings}", "hashes #{hashes}", "entries #{entries}", "documents #{documents}"
