// bundle.mjs - makes one script of a suite and what it takes from npm's packages, for any engine.
// SPDX-License-Identifier: MIT
//
//   node bundle.mjs PACKAGES SUITE PER_CENT OUT
//
// PACKAGES is the folder with node_modules. Nothing of the packages is kept in the project.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const [folder, suite, perCent, out] = process.argv.slice(2);
const packages = resolve(folder);
const here = join(dirname(fileURLToPath(import.meta.url)), 'suites');
const modules = join(packages, 'node_modules');
const octane = join(modules, 'benchmark-octane', 'lib', 'octane');
const V8 = ['base', 'richards', 'deltablue', 'crypto', 'raytrace', 'earley-boyer', 'regexp', 'splay', 'navier-stokes'];

function read(path) { return readFileSync(path, 'utf8'); }

// `text:` is a file as a string; `library:` is what the standard library of TypeScript declares.
const texts = {
  name: 'texts',
  setup(build) {
    build.onResolve({ filter: /^(text|library):/ }, (found) => ({ path: found.path, namespace: 'texts' }));
    build.onLoad({ filter: /^text:/, namespace: 'texts' }, (found) => ({
      contents: read(join(modules, found.path.slice('text:'.length))), loader: 'text',
    }));
    build.onLoad({ filter: /^library:/, namespace: 'texts' }, () => {
      const folder = join(modules, 'typescript', 'lib');
      const wanted = perCent < 100 ? /^lib\.(es5|decorators.*)\.d\.ts$/ : /^lib\.(es(5|20(1\d|20))(\.[a-z]+)?|decorators.*|dom)\.d\.ts$/;
      const names = readdirSync(folder).filter((name) => wanted.test(name));
      return { contents: JSON.stringify(Object.fromEntries(names.map((name) => [name, read(join(folder, name))]))), loader: 'json' };
    });
  },
};

async function bundled() {
  const esbuild = createRequire(join(packages, 'package.json'))('esbuild');
  const made = await esbuild.build({
    entryPoints: [join(here, `${suite}.js`)], bundle: true, write: false, format: 'iife', platform: 'browser',
    target: 'es2020', charset: 'utf8', nodePaths: [modules], plugins: [texts], logLevel: 'warning',
    define: { 'process.env.NODE_ENV': '"production"' }, legalComments: 'none',
  });
  return made.outputFiles[0].text;
}

const body = suite === 'v8'
  ? [...V8.map((name) => read(join(octane, `${name}.js`))), read(join(here, 'v8.js'))].join('\n')
  : await bundled();
writeFileSync(out, `var SCALE = ${Number(perCent)};\n${read(join(here, 'start.js'))}\n${body}`);
