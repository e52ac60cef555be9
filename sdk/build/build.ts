// `npm run sdk:build`: builds the published package in sdk/dist: JavaScript, types and a manifest.
import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const SDK = join(import.meta.dirname, '..');
const DIST = join(SDK, 'dist');

/** Empties and fills sdk/dist. Throws with the compiler's output. */
export function build(): void {
  rmSync(DIST, { recursive: true, force: true });
  // The compiler of the checks; the one beside this package belongs to the generator.
  const compiler = createRequire(join(SDK, '../package.json')).resolve('typescript/package.json');
  const built = spawnSync(process.execPath, [join(compiler, '../bin/tsc'), '-p', 'tsconfig.build.json'], {
    cwd: SDK,
    encoding: 'utf8',
  });
  if (built.status !== 0) throw new Error(`the SDK could not be built:\n${built.stdout}${built.stderr}`);
  for (const name of ['README.md', 'LICENSE']) copyFileSync(join(SDK, name), join(DIST, name));
  writeFileSync(join(DIST, 'package.json'), `${JSON.stringify(publishedManifest(), null, 2)}\n`);
}

/** sdk/package.json with paths of the compiled files. */
function publishedManifest(): Record<string, unknown> {
  const manifest = JSON.parse(readFileSync(join(SDK, 'package.json'), 'utf8')) as Record<string, unknown>;
  const { private: _private, scripts: _scripts, devDependencies: _devDependencies, ...published } = manifest;
  const entries = Object.entries(manifest['exports'] as Record<string, string>).map(([name, path]) => {
    const compiled = path.replace('./src/', './').replace(/\.ts$/, '');
    return [name, compiled === path ? path : { types: `${compiled}.d.ts`, default: `${compiled}.js` }];
  });
  return { ...published, exports: Object.fromEntries(entries) as unknown };
}

if (import.meta.main) build();
