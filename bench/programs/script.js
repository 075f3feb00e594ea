// script.js - text, JSON, patterns, maps, typed arrays and sorted objects; prints checksums.
// SPDX-License-Identifier: MIT
// Runs alike in node, jsc and qjs. A line `const PER_CENT = n;` stands before this text.
'use strict';

const write = typeof print === 'function' ? print : console.log;
const times = (full) => Math.max(1, Math.round(full * PER_CENT / 100));

let state = 123456789;
function below(limit) {                            // xorshift: the same numbers in every engine
  state ^= state << 13; state ^= state >>> 17; state ^= state << 5;
  return (state >>> 0) % limit;
}

function checksum(text) {                          // Adler's, over the units of a string
  let a = 1, b = 0;
  for (let i = 0; i < text.length; i++) {
    a = (a + text.charCodeAt(i)) % 65521;
    b = (b + a) % 65521;
  }
  return (b * 65536 + a).toString(16);
}

const LETTERS = 'etaoinshrdlucmfwypvbgkjqxz';
const WORDS = Array.from({ length: 2000 }, () =>
  Array.from({ length: 2 + below(9) }, () => LETTERS[below(26)]).join(''));
const anyWord = () => WORDS[below(WORDS.length)];

function documents() {
  let sum = 0;
  for (let round = 0; round < times(48); round++) {
    const list = Array.from({ length: 2500 }, (_, id) => ({
      id, title: anyWord() + ' ' + anyWord(), price: below(9999) / 100, where: null,
      tags: Array.from({ length: below(5) }, anyWord), deep: { er: [[id], { text: anyWord() }] },
    }));
    const back = JSON.parse(JSON.stringify(list));
    back.sort((one, other) => one.price - other.price || one.id - other.id);
    sum += back[round].id + JSON.stringify(back.slice(0, 900)).length;
  }
  return sum;
}

function patterns() {
  let sums = '';
  for (let round = 0; round < times(30); round++) {
    const text = Array.from({ length: 7000 }, () => anyWord() + below(1000)).join(' ');
    const swapped = text.replace(/([a-m]+)([n-z]+)(\d+)/g, '$3$2$1');
    const parts = swapped.split(/[ \d]+/).filter((part) => /(.)\1/.test(part));
    sums += checksum(swapped) + parts.join('').toUpperCase().slice(0, 200);
  }
  return checksum(sums);
}

function maps() {
  const counts = new Map(), groups = Object.create(null);
  let gone = 0;
  for (let i = 0; i < times(900000); i++) {
    const key = anyWord() + below(30);
    counts.set(key, (counts.get(key) || 0) + 1);
    (groups[key.length] ||= []).push({ key, i });
    if (i % 4 === 0) gone += counts.delete(anyWord() + below(30)) ? 1 : 0;
    if (groups[key.length].length > 5000) groups[key.length] = groups[key.length].slice(-700);
  }
  const sizes = Object.values(groups).map((group) => group.length);
  return [counts.size, gone, sizes.join()].join(' ');
}

function arrays() {                                // their stores are the engine's large blocks
  const kept = [];
  let sum = 0;
  for (let i = 0; i < times(15000); i++) {
    const bytes = new Uint8Array(below(i % 40 ? 30000 : 1500000) + 64);
    for (let k = 0; k < bytes.length; k += 101) bytes[k] = k + i;
    const copy = new Float64Array(bytes.buffer.slice(0, 64 * (bytes.length >> 6)));
    sum = (sum + bytes[bytes.length >> 1] + copy.length) % 1000000007;
    kept[below(80)] = bytes;
  }
  return sum + ' ' + kept.reduce((total, bytes) => total + (bytes ? bytes.length : 0), 0);
}

for (const part of [documents, patterns, maps, arrays]) write(part.name + ' ' + part());
