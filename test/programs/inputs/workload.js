// workload.js - what scripts do to a heap; runs alike in node, jsc and qjs, and prints checksums.
// SPDX-License-Identifier: MIT
// A line `const SCALE = n;` stands before this text.
'use strict';

const write = typeof print === 'function' ? print : console.log;

let seed = 20080725;
function random(limit) {                                   // xorshift: the same numbers everywhere
  seed ^= seed << 13; seed ^= seed >>> 17; seed ^= seed << 5;
  return (seed >>> 0) % limit;
}

function checksum(text) {                                  // FNV-1a over the units of a string
  let sum = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 0x01000193);
  return (sum >>> 0).toString(16).padStart(8, '0');
}

function word() {
  let text = '';
  for (let i = 2 + random(9); i > 0; i--) text += String.fromCharCode(97 + random(26));
  return text;
}
const WORDS = Array.from({ length: 3000 }, word);
const pick = () => WORDS[random(WORDS.length)];

function record(i) {
  return { id: i, name: pick() + '-' + i, price: random(100000) / 100, at: null, on: i % 3 === 0,
           tags: Array.from({ length: random(6) }, pick), more: { text: pick() + ' "\u00e9\n' + pick(), list: [i, [i]] } };
}

const parts = {
  json() {
    let total = 0;
    for (let round = 0; round < SCALE; round++) {
      const text = JSON.stringify(Array.from({ length: 3000 }, (_, i) => record(i)));
      const back = JSON.parse(text, (key, value) => (key === 'price' ? value * 2 : value));
      total += back.reduce((sum, one) => sum + one.price + one.tags.length, 0) + text.length;
      if (round === 0) write('json text ' + checksum(text));
    }
    return total.toFixed(2);
  },

  regex() {
    let sums = '';
    for (let round = 0; round < SCALE; round++) {
      const text = Array.from({ length: 8000 }, () => pick() + (random(5) ? ' ' : ', ') + random(10000)).join(' ');
      const dates = text.replace(/\b([a-m]\w*) (\d+)/g, (_, a, n) => n + ':' + a.toUpperCase());
      const twins = [...text.matchAll(/(\w)\1(\w*)[ ,]+(\d{2,4})/g)].map((m) => m[2] + m[3]);
      const fields = text.split(/[\s,]+/).filter((one) => /^[^aeiou]+$/u.test(one));
      sums += checksum(dates) + checksum(twins.join()) + fields.length;
    }
    return checksum(sums);
  },

  tree() {                                                 // a treap of objects: nodes come and go
    let root = null, count = 0;
    const merge = (a, b) => {
      if (!a) return b;
      if (!b) return a;
      if (a.rank < b.rank) { a.right = merge(a.right, b); return a; }
      b.left = merge(a, b.left); return b;
    };
    const split = (node, key) => {
      if (!node) return [null, null];
      if (node.key < key) { const [l, r] = split(node.right, key); node.right = l; return [node, r]; }
      const [l, r] = split(node.left, key); node.left = r; return [l, node];
    };
    for (let i = 0; i < 12000 * SCALE; i++) {
      const key = random(1 << 24);
      const [low, high] = split(root, key);
      root = merge(merge(low, { key, rank: random(1 << 30), left: null, right: null, text: pick() + i }), high);
      if (++count > 9000) {
        const [keep, drop] = split(root, random(1 << 24));
        root = merge(keep, drop && drop.left);
        count = 0;
        for (const stack = [root]; stack.length > 0;) {
          const node = stack.pop();
          if (node) { count++; stack.push(node.left, node.right); }
        }
      }
    }
    return count + ' ' + (root ? root.key : 'none');
  },

  collections() {
    const sizes = new Map(), seen = new Set(), byLength = {};
    for (let i = 0; i < 40000 * SCALE; i++) {
      const text = pick() + random(40);
      sizes.set(text, (sizes.get(text) || 0) + 1);
      if (i % 3 === 0) seen.add(text + pick());
      (byLength[text.length] ||= []).push(text);
      if (i % 5 === 0) seen.delete(text);
      if (byLength[text.length].length > 3000) byLength[text.length] = byLength[text.length].filter((_, k) => k % 7 === 0);
    }
    const top = [...sizes].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 500);
    return [sizes.size, seen.size, checksum(top.join(';')), Object.values(byLength).flat().length].join(' ');
  },

  closures() {
    let jobs = [], done = 0n, text = '';
    for (let i = 0; i < 25000 * SCALE; i++) {
      const mine = { i, words: [pick(), pick()] };
      jobs.push((more) => mine.words.concat(more).map((one) => one.length + mine.i).reduce((a, b) => a + b));
      if (jobs.length > 4000) { for (const job of jobs) done += BigInt(job(['x'])) * 1000003n; jobs = []; }
      text = (text + mine.words[0]).slice(-2000);
    }
    return done % 1000000007n + ' ' + checksum(text);
  },

  buffers() {
    const kept = [];
    let total = 0;
    for (let i = 0; i < 600 * SCALE; i++) {
      const bytes = new Uint8Array(1 + random(i % 50 === 0 ? 3000000 : 40000));
      for (let k = 0; k < bytes.length; k += 97) bytes[k] = k + i;
      const words = new Float64Array(bytes.buffer.slice(0, bytes.length - (bytes.length % 8)));
      total = (total + bytes[bytes.length >> 1] + words.length) % 1000000007;
      kept[random(60)] = bytes.subarray(0, 64);
    }
    return total + ' ' + checksum(kept.map((one) => (one ? one.join() : '-')).join());
  },
};

for (const [name, part] of Object.entries(parts)) write(name + ' ' + part());
