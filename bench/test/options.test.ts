// Options of the benchmarks.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const FOLDER = join(import.meta.dirname, '..');

function run(name: string, option: string): { code: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(FOLDER, `${name}.ts`), option]);
  return { code: status, stdout: stdout.toString(), stderr: stderr.toString() };
}

for (const file of readdirSync(FOLDER).filter((entry) => entry.endsWith('.ts'))) {
  const name = file.slice(0, -'.ts'.length);
  test(`bench ${name} shows its options with --help, and names them after an unknown one`, () => {
    const help = run(name, '--help');
    assert.deepEqual([help.code, help.stderr], [0, '']);
    const [, options = ''] = new RegExp(`^Usage: berth bench ${name} (\\[--.+)\\n$`).exec(help.stdout) ?? [];
    assert.notEqual(options, '', help.stdout);
    const { code, stdout, stderr } = run(name, '--nope');
    assert.deepEqual([code, stdout], [2, '']);
    const allowed = options.replaceAll(/[[\]]/g, '').replaceAll(' ', ', ');
    assert.match(stderr, new RegExp(`^berth bench ${name}: Unknown option '--nope'.*; allowed: ${allowed}\\n$`));
  });
}
