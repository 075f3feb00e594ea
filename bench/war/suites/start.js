// start.js - what every suite begins with, whatever engine runs it.
// SPDX-License-Identifier: MIT
//
// The bundler puts `var SCALE = <per cent>;` before it. No clock is read: a suite does fixed work and
// prints a checksum, which must be the same from every engine under every allocator.
var say = typeof print === 'function' ? print : function (text) { console.log(text); };

// Iterations at this scale, one at least.
function scaled(iterations) { return Math.max(1, Math.round(iterations * SCALE / 100)); }

// FNV-1a over the characters of a text, going on from the sum so far.
function checksum(text, sum) {
  for (var i = 0; i < text.length; i++) {
    sum ^= text.charCodeAt(i);
    sum = (sum + (sum << 1) + (sum << 4) + (sum << 7) + (sum << 8) + (sum << 24)) >>> 0;
  }
  return sum;
}

var CHECKSUM_START = 0x811c9dc5;

// Numbers that look random and are the same everywhere: xorshift.
function Random(seed) { this.state = seed; }
Random.prototype.below = function (limit) {
  this.state ^= this.state << 13;
  this.state ^= this.state >>> 17;
  this.state ^= this.state << 5;
  return (this.state >>> 0) % limit;
};
Random.prototype.word = function () {
  var letters = 2 + this.below(9), text = '';
  while (letters-- > 0) text += 'etaoinshrdlucmfwypvbgkjqxz'.charAt(this.below(1 + this.below(26)));
  return text;
};
Random.prototype.words = function (count) {
  var all = [];
  while (count-- > 0) all.push(this.word());
  return all.join(' ');
};
