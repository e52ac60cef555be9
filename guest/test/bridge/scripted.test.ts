// The scripted agent of tests.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { AgentDriver } from '../../src/bridge/driver.ts';
import { startScripted } from '../../src/bridge/scripted/scripted.ts';

async function startAgent(home: string): Promise<{ driver: AgentDriver; said: string[] }> {
  const said: string[] = [];
  const driver = await startScripted({
    ...{ savedId: null, gatewayUrl: null, folder: home },
    program: { version: '', paths: {} },
    spawn: (program, args) => spawn(program, args, { cwd: home, env: { ...process.env, HOME: home } }),
    signal: AbortSignal.timeout(60_000),
    events: {
      reply: (text) => void said.push(text),
      sign: () => undefined,
      ask: () => assert.fail('it asks'),
      exited: () => undefined,
    },
  });
  return { driver, said };
}

async function makeHome(t: TestContext): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'berth-scripted-'));
  t.after(() => rm(home, { recursive: true }));
  return home;
}

test('commands of two sessions at once reply their own output', async (t) => {
  const home = await makeHome(t);
  const replies = await Promise.all(
    ['first', 'second'].map(async (name) => {
      const { driver, said } = await startAgent(home);
      // Each waits until both have begun to write.
      const other = name === 'first' ? 'second' : 'first';
      await driver.run(name, `run echo ${name}; touch ${name}; until [ -e ${other} ]; do sleep 0.01; done; echo end`);
      await driver.close();
      return said;
    }),
  );
  assert.deepEqual(replies, [['first\nend\n'], ['second\nend\n']]);
});

test('a script in a file replaces the instructions of one message', async (t) => {
  const home = await makeHome(t);
  const { driver, said } = await startAgent(home);
  await writeFile(join(home, '.scripted-agent/script'), 'say one\nrun echo two\n');
  await driver.run('first', 'Do both.');
  await driver.run('second', 'say three');
  await driver.close();
  assert.deepEqual(said, ['one', 'two\n', 'three']);
});
