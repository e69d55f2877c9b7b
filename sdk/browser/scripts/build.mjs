// Builds dist/: ESM for bundlers, two scripts for script tags, types. Fails if
// the script for events has become too large.
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { minify } from 'terser';

/** Bytes of actionpulse.min.js, gzipped. */
const budget = 6000;

/**
 * Members that get short names in scripts: those that only the parts of one
 * script know. Not those of options, rows, deliveries and extensions, which the
 * page, the disk and the other script know, nor those of the browser.
 */
const internal =
  /^(action|allowed|answered|capacity|failures|forget|gaveUp|healthy|intake|later|leave|lock|outbox|own|pause|renew|rescue|said|say|sources|storage|unknown|update|visitor|wake)$/;

const root = fileURLToPath(new URL('..', import.meta.url));
process.chdir(root);
rmSync('dist', { recursive: true, force: true });

const common = { bundle: true, target: 'es2020', logLevel: 'warning', external: ['rrweb'] };

await build({
  ...common,
  entryPoints: { index: 'src/index.ts', replay: 'src/replay/index.ts' },
  format: 'esm',
  splitting: true,
  chunkNames: 'shared-[hash]',
  sourcemap: true,
  outdir: 'dist',
});

for (const [entry, file] of [
  ['src/script.ts', 'dist/actionpulse.min.js'],
  ['src/replay/script.ts', 'dist/actionpulse-replay.min.js'],
]) {
  const bundle = await build({ ...common, entryPoints: [entry], format: 'iife', write: false });
  // terser's result is a twentieth smaller than esbuild's own.
  const { code } = await minify(bundle.outputFiles[0].text, {
    ecma: 2020,
    toplevel: true,
    mangle: { properties: { regex: internal } },
    compress: { passes: 4, ecma: 2020, unsafe_arrows: true, pure_getters: true, keep_fargs: false, inline: 1, hoist_funs: true },
  });
  writeFileSync(file, code.replace(/^"use strict";/, ''));
}

execFileSync('node_modules/.bin/tsc', ['-p', 'tsconfig.json'], { stdio: 'inherit' });

const size = gzipSync(readFileSync('dist/actionpulse.min.js'), { level: 9 }).length;
console.log(`dist/actionpulse.min.js: ${size} bytes gzipped, of ${budget}`);
if (size >= budget) process.exit(1);
