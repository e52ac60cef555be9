// Live bridges of sessions that start at the same moment.
import assert from 'node:assert/strict';
import { chmod, chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { Agents } from '../../src/agents/agents.ts';
import { bundleBridge } from '../../src/bundle.ts';
import { readConfig } from '../../src/machine/config.ts';
import { testUid, until } from '../daemon.ts';
import { endBridges, newSessionId } from './agent-daemon.ts';

test('sessions that start at once have at most 8 live bridges, and the others are refused', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-agent-room-'));
  t.after(async () => {
    await endBridges(folder);
    await until('the files are settled', async () =>
      agents.list().sessions.every(({ bridge }) => bridge === 'stopped'),
    );
    await rm(folder, { recursive: true });
  });
  await chmod(folder, 0o755);
  await mkdir(join(folder, 'code'));
  await chown(join(folder, 'code'), testUid, testUid);
  const agents = new Agents(
    readConfig({
      BERTH_GUEST_CODE_FOLDER: join(folder, 'code'),
      BERTH_GUEST_HOME: join(folder, 'code'),
      BERTH_GUEST_RUN_FOLDER: join(folder, 'run'),
      BERTH_GUEST_STATE_FOLDER: join(folder, 'state'),
      BERTH_GUEST_AGENT_CGROUPS: '',
      BERTH_GUEST_UID: String(testUid),
      BERTH_GUEST_GID: String(testUid),
      BERTH_GUEST_IDENTITY: 'record',
    }),
  );
  await mkdir(join(folder, 'run'));
  const { sha256, code } = await bundleBridge(7);
  await agents.store(sha256, Readable.from([Buffer.from(code)]));

  // Bridges get the flags of the daemon's process, which here are the test runner's.
  t.mock.property(process, 'execArgv', []);
  const body = { agent: 'agent_one', mode: 'create', approvals: 'ask', gatewayUrl: null, scripted: true } as const;
  const starts = Array.from(
    { length: 12 },
    () => agents.start(newSessionId(), { ...body, bridge: sha256 }, () => []).result,
  );
  const outcomes = (await Promise.all(starts)).map((one) => (one.outcome === 'ready' ? 'ready' : one.code));
  assert.deepEqual(outcomes, [...Array<string>(8).fill('ready'), ...Array<string>(4).fill('agent_session_limit')]);
  assert.equal(agents.list().sessions.filter(({ bridge }) => bridge === 'ready').length, 8);

  // The refused ones hold no room.
  const after = await agents.start(newSessionId(), { ...body, bridge: sha256 }, () => []).result;
  assert.equal(after.outcome, 'ready');
  assert.equal(agents.list().sessions.filter(({ bridge }) => bridge === 'ready').length, 8);
});
