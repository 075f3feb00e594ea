# config.ru - a web application: each request reads a document, filters and sorts it, and writes it back.
# SPDX-License-Identifier: MIT
require 'json'

SOURCE = Random.new(20060620)
WORDS = Array.new(500) { Array.new(2 + SOURCE.rand(9)) { (97 + SOURCE.rand(26)).chr }.join }
DOCUMENT = JSON.generate(Array.new(600) { |number|
  { id: number, title: Array.new(3) { WORDS[SOURCE.rand(500)] }.join(' '), price: SOURCE.rand(99999) / 100.0,
    tags: Array.new(SOURCE.rand(6)) { WORDS[SOURCE.rand(500)] } }
})

run lambda { |_env|
  rows = JSON.parse(DOCUMENT).select { |row| row['price'] > 100 }
  rows.sort_by! { |row| [row['title'], row['id']] }
  lines = rows.map { |row| "#{row['title'].upcase};#{row['tags'].sort.join(',')};#{row['price']}" }
  [200, { 'content-type' => 'text/plain' }, [JSON.generate(rows) + lines.join("\n")]]
}
