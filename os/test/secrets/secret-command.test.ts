import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { runSecretCommand } from '../../src/secrets/secret-command.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-secret-command-'));
});
after(() => rm(folder, { recursive: true }));

async function script(body: string): Promise<string> {
  const path = join(folder, 'command');
  await writeFile(path, `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  return path;
}

const run = (line: string, input?: string): string =>
  runSecretCommand({
    variable: 'BERTH_X_COMMAND',
    line,
    environment: { PATH: '/usr/bin:/bin', REGION: 'here' },
    ...(input === undefined ? {} : { input }),
  });

test('a command gets its words as arguments, and the environment; its stdout is returned', async () => {
  const path = await script('printf "%s|" "$REGION" "$@"');
  assert.equal(run(`  ${path}  get \t -field=key %s * `), 'here|get|-field=key|%s|*|');
});

test('a command that stores gets the secret on stdin and may print nothing', async () => {
  const path = await script(`exec cat > ${join(folder, 'stored')}`);
  assert.equal(run(path, 'line\n'), '');
  assert.equal(await readFile(join(folder, 'stored'), 'utf8'), 'line\n');
});

test('a failed command is named with its stderr, without control characters and without its stdout', async () => {
  const path = await script('echo s3cret; printf "no\\033 access\\nto it\\n" >&2; exit 3');
  assert.throws(() => run(path), {
    message: `cannot use BERTH_X_COMMAND: ${path} failed (exit code 3):\nno  access\nto it`,
  });
  assert.throws(
    () => run(join(folder, 'none')),
    /^Error: cannot use BERTH_X_COMMAND: .*none failed \(no such program\)$/,
  );
});

test('a command that prints nothing to read, or more than 64 KiB, is refused', async () => {
  assert.throws(() => run('/bin/true'), /failed \(exit code 0, no output\)$/);
  assert.throws(() => run('/bin/cat /dev/zero'), /failed \(more than 64 KiB of output\)$/);
});

test('what only a shell interprets is refused, and so is a program without a path', () => {
  for (const line of [
    '/bin/cat a | head',
    '/bin/echo $HOME',
    "/bin/echo 'a b'",
    '/bin/a; b',
    '/bin/a > b',
    '/bin/a `b`',
  ])
    assert.throws(() => run(line), /no shell interprets .\. Put the command into a script$/, line);
  assert.throws(() => run('vault kv get'), /'vault' is not the absolute path of a program$/);
});
