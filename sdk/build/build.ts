// `npm run sdk:build`: sdk/dist, which is what is published: JavaScript and types, by the compiler
// of the checks.
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const SDK = join(import.meta.dirname, '..');

/** Empties sdk/dist and fills it again. Throws with the compiler's words. */
export function build(): void {
  rmSync(join(SDK, 'dist'), { recursive: true, force: true });
  // Not the one beside this package, which the generator needs.
  const compiler = createRequire(join(SDK, '../package.json')).resolve('typescript/package.json');
  const built = spawnSync(process.execPath, [join(compiler, '../bin/tsc'), '-p', 'tsconfig.build.json'], {
    cwd: SDK,
    encoding: 'utf8',
  });
  if (built.status !== 0) throw new Error(`the SDK could not be built:\n${built.stdout}${built.stderr}`);
}

if (import.meta.main) build();
