// minify.js - terser makes lodash and others small, as every build of a web page does.
// SPDX-License-Identifier: MIT
import { minify_sync } from 'terser';
import lodash from 'text:lodash/lodash.js';
import acorn from 'text:acorn/dist/acorn.js';
import marked from 'text:marked/lib/marked.umd.js';
import small from 'text:source-map-js/lib/source-map-generator.js';

const sources = SCALE < 100 ? { small } : { marked, acorn, lodash };
for (let i = scaled(1); i > 0; i--) {
  for (const [name, source] of Object.entries(sources)) {
    const result = minify_sync(source, { compress: { passes: 1 }, mangle: true });
    say(`${name} ${result.code.length} ${checksum(result.code, CHECKSUM_START)}`);
  }
}
