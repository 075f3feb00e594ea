// server.js - a web server: each request packs a text, unpacks it again, and answers with its checksum.
// SPDX-License-Identifier: MIT
'use strict';
const { createHash } = require('crypto');
const http = require('http');
const zlib = require('zlib');

const rows = Array.from({ length: 1500 }, (_, id) => ({ id, title: `title ${id * 7919 % 1009}`, price: id * 31 % 997 }));
const text = JSON.stringify(rows);

http.createServer((request, response) => {
  zlib.gzip(text, (failed, packed) => {
    if (failed) throw failed;
    zlib.gunzip(packed, (broken, unpacked) => {
      if (broken) throw broken;
      const list = JSON.parse(unpacked.toString()).filter((row) => row.price > 100);
      const body = Buffer.from(JSON.stringify(list));
      response.setHeader('x-sum', createHash('sha256').update(body).digest('hex'));
      response.end(body);
    });
  });
}).listen(Number(process.env.PORT), '127.0.0.1');
