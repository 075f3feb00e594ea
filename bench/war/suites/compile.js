// compile.js - TypeScript checks the types of a library and writes it for old engines.
// SPDX-License-Identifier: MIT
import ts from 'typescript';
import lodash from 'text:lodash/lodash.js';
import acorn from 'text:acorn/dist/acorn.js';
import small from 'text:source-map-js/lib/source-map-generator.js';
import libraries from 'library:typescript';

const options = {
  allowJs: true, checkJs: true, noEmitOnError: false, target: ts.ScriptTarget.ES2015,
  module: ts.ModuleKind.None, lib: SCALE < 100 ? ['lib.es5.d.ts'] : ['lib.es2020.d.ts', 'lib.dom.d.ts'],
  types: [], strict: false, outDir: '/out', moduleDetection: ts.ModuleDetectionKind.Legacy,
};
const files = SCALE < 100 ? { '/small.js': small } : { '/lodash.js': lodash, '/acorn.js': acorn };

function text(path) { return files[path] ?? libraries[path.slice(path.lastIndexOf('/') + 1)]; }

function compile() {
  const written = [];
  const host = {
    fileExists: (path) => text(path) !== undefined,
    readFile: text,
    getSourceFile: (path, version) => {
      const content = text(path);
      return content === undefined ? undefined : ts.createSourceFile(path, content, version);
    },
    writeFile: (path, content) => { written.push([path, content]); },
    getDefaultLibFileName: () => 'lib.es5.d.ts',
    getDefaultLibLocation: () => '/',
    getCurrentDirectory: () => '/',
    getCanonicalFileName: (path) => path,
    useCaseSensitiveFileNames: () => true,
    getNewLine: () => '\n',
    directoryExists: () => true,
    getDirectories: () => [],
  };
  const program = ts.createProgram(Object.keys(files), options, host);
  const diagnostics = ts.getPreEmitDiagnostics(program);
  program.emit();
  say('diagnostics ' + diagnostics.length);
  for (const [path, content] of written) {
    say(`${path} ${content.length} ${checksum(content, CHECKSUM_START)}`);
  }
}

for (let i = scaled(1); i > 0; i--) compile();
