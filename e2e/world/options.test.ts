// Options of the fuzzers and of the chaos run.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';

const FOLDER = join(import.meta.dirname, '..');

function run(name: string, words: readonly string[]): { code: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(FOLDER, name, 'main.ts'), ...words]);
  return { code: status, stdout: stdout.toString(), stderr: stderr.toString() };
}

for (const [name, ...refused] of [
  [
    'fuzz',
    ['--requests=0', "--requests '0'; allowed: a whole number from 1 to 10000000"],
    ['--driver=nope', "--driver 'nope'; allowed: qemu, fake"],
    ['--only=nope', "--only 'nope'; allowed: file-requests, .+"],
  ],
  ['fuzz-api', ['--clients=1.5', "--clients '1.5'; allowed: a whole number from 1 to 50"]],
  [
    'chaos',
    ['--minutes=', "--minutes ''; allowed: a number from 0.1 to 10000"],
    ['--driver=nope', "--driver 'nope'; allowed: qemu, fake"],
    ['--only=nope', "--only 'nope'; allowed: kill-api, .+"],
  ],
] as const) {
  test(`${name} shows its options with --help, and names them after an unknown one`, () => {
    const help = run(name, ['--help']);
    assert.deepEqual([help.code, help.stderr], [0, '']);
    const [, options = ''] = new RegExp(`^Usage: berth ${name} (\\[--.+)\\n$`).exec(help.stdout) ?? [];
    assert.notEqual(options, '', help.stdout);
    const { code, stdout, stderr } = run(name, ['--nope']);
    assert.deepEqual([code, stdout], [2, '']);
    const allowed = options.replaceAll(/[[\]]/g, '').replaceAll(' ', ', ');
    assert.match(stderr, new RegExp(`^berth ${name}: Unknown option '--nope'.*; allowed: ${allowed}\\n$`));
  });

  for (const [option, message] of refused) {
    test(`${name} refuses ${option} and names the allowed values`, () => {
      const { code, stdout, stderr } = run(name, [option]);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, new RegExp(`^berth ${name}: ${message}\\n$`));
    });
  }
}
