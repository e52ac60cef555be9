// Variables of a sandbox in terminals, attached commands and agents: given once, in memory only.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { nullIf } from '@berth/os/errors.ts';
import { bytesFrames } from '@berth/protocol/terminal-frames.ts';
import { AgentDaemon } from '../agents/agent-daemon.ts';
import type { TestDaemon } from '../daemon.ts';
import { Attached, openStream, refusalOf, secured } from '../terminals/connection.ts';

const SECRET = 's'.repeat(43);
const VALUE = 'two\nlines = "lantern" é';

async function stage(daemon: TestDaemon, env: string[], secret?: string): Promise<string> {
  const variables = randomBytes(16).toString('hex');
  const { status, text } = await daemon.call('PUT', `/variables/${variables}`, { env }, secret);
  assert.equal(status, 200, text);
  return variables;
}

/** Files and command lines that have the value. */
async function holders(folder: string): Promise<string[]> {
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((one) => one.isFile());
  const processes = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map((pid) => `/proc/${pid}/cmdline`);
  const paths = [...files.map(({ parentPath, name }) => join(parentPath, name)), ...processes];
  const texts = await Promise.all(paths.map((path) => readFile(path, 'latin1').catch(nullIf('ENOENT', 'ESRCH'))));
  return paths.filter((_, index) => texts[index]?.includes('lantern'));
}

test('an attached command and a terminal get staged variables, each once', async (t) => {
  const daemon = await secured(t);
  const started = async (env: string[], query: Record<string, string>): Promise<string> => {
    const variables = await stage(daemon, env, SECRET);
    const attached = new Attached(await openStream(daemon, { ...query, variables }));
    assert.deepEqual(await attached.exit(), { exit: 0 });
    assert.equal((await refusalOf(daemon, `?${new URLSearchParams({ ...query, variables }).toString()}`)).status, 503);
    return attached.stdout;
  };
  const command = 'printf "%s|%s|%s" "$TEXT" "$PATH" "$HOME"';
  const text = await started([`TEXT=${VALUE}`, 'PATH=/bin'], { tty: 'false', command });
  assert.ok(text.startsWith(`${VALUE}|/bin|/`), text);
  const variables = await stage(daemon, ['TEXT=in a terminal'], SECRET);
  const shown = await openStream(daemon, { cols: '80', rows: '24', command: 'echo "<$TEXT>"', variables });
  let output = '';
  for await (const chunk of shown) output += (chunk as Buffer).toString();
  assert.match(output, /<in a terminal>/);
});

test('a login shell gets staged variables', async (t) => {
  const daemon = await secured(t);
  const variables = await stage(daemon, ['TEXT=in a shell'], SECRET);
  const shell = await openStream(daemon, { cols: '80', rows: '24', variables });
  shell.write(bytesFrames(Buffer.from('echo "<$TEXT>"; exit\n')));
  let output = '';
  for await (const chunk of shell) output += (chunk as Buffer).toString();
  assert.match(output, /<in a shell>/);
});

test('variables that are gone or unknown refuse a start, and the oldest are dropped first', async (t) => {
  const daemon = await secured(t);
  const first = await stage(daemon, ['A=a'], SECRET);
  for (let count = 0; count < 512; count += 1) await stage(daemon, ['A=a'], SECRET);
  for (const variables of [first, randomBytes(16).toString('hex')]) {
    const refused = await refusalOf(daemon, `?tty=false&command=true&variables=${variables}`);
    assert.equal(refused.status, 503);
    assert.match(refused.text, /the variables of this start are gone/);
  }
  assert.equal((await refusalOf(daemon, '?tty=false&command=true&variables=..')).status, 400);
  const { status } = await daemon.call('PUT', `/variables/${first}`, { env: ['1A=a'] }, SECRET);
  assert.equal(status, 400);
});

test('an agent gets the variables of its start, a recovered one those of the recovery', async (t) => {
  const agents = await AgentDaemon.start(t);
  const session = await agents.session({
    variables: await stage(agents.daemon, [`TEXT=${VALUE}`, 'PATH=/bin:/usr/bin']),
  });
  await session.run('run printf "%s|%s" "$TEXT" "$PATH"');
  assert.deepEqual(await session.texts(), [`${VALUE}|/bin:/usr/bin`]);
  await session.kill('bridge');
  await session.stopped();
  const variables = await stage(agents.daemon, ['TEXT=of the recovery']);
  assert.equal((await agents.start(session.id, { mode: 'recover', variables })).outcome, 'ready');
  await session.run('run echo "$TEXT"');
  assert.equal((await session.texts()).at(-1)?.trim(), 'of the recovery');
});

test('no file and no argument of a process has a variable of an agent', async (t) => {
  const agents = await AgentDaemon.start(t);
  const session = await agents.session({ variables: await stage(agents.daemon, [`TEXT=${VALUE}`]) });
  await session.run('run echo started');
  assert.deepEqual(await holders(agents.daemon.folder), []);
});
