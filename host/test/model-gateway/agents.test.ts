// The real agents behind the model gateway, with scripted models.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pino } from 'pino';
import { MODEL_PROVIDERS } from '@berth/protocol/calls/model-access.ts';
import { ModelServer } from '../../../e2e/model-servers/server.ts';
import { AgentHome, type AgentSession } from '../../../guest/test/bridge/agent-session.ts';
import { until } from '../../../os/test/until.ts';
import { freePort } from '../../../protocol/test/free-port.ts';
import { ModelGateway } from '../../src/model-gateway/client.ts';
import { FAKE_MODEL_GATEWAY_UID } from '../../src/network/slots/slot.ts';
import { programOf } from '../gateway/process-facts.ts';
import { accessTo } from './model-world.ts';

let folder: string;
let models: ModelServer;
let gateway: ModelGateway;
let port: number;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-models-'));
  models = await ModelServer.start();
  port = await freePort();
  gateway = new ModelGateway({
    ...{ folder: join(folder, 'gateway'), uid: FAKE_MODEL_GATEWAY_UID, lowPorts: false, ca: null },
    log: pino({ level: 'silent' }),
  });
  await gateway.serve('vm', { address: '127.0.0.1', port });
  await gateway.setAccess('vm', accessTo(models.url));
});
after(async () => {
  await gateway.close();
  await models.close();
  await rm(folder, { recursive: true });
});

for (const [agent, kind] of [
  ['codex', 'agent_one'],
  ['claude', 'agent_two'],
] as const) {
  // The pinned packages are those of x86-64.
  describe(agent, { skip: process.arch !== 'x64' }, () => {
    let home: AgentHome;
    let session: AgentSession;
    before(async () => {
      home = await AgentHome.create(agent);
      session = await home.start({ gatewayUrl: `http://127.0.0.1:${port}/${MODEL_PROVIDERS[kind]}`, accepts: true });
    });
    after(() => home.remove());

    test('a turn with a tool completes with the key of the gateway', async () => {
      assert.deepEqual(await session.run(`${agent}-turn`, '@run echo ran', '@result', '@say hello'), {
        state: 'completed',
      });
      assert.match(session.replies.splice(0).join('\n'), /ran[^]*hello/);
      assert.equal(models.callsFor(`${agent}-turn`), 2);
    });

    test('a gateway killed in mid stream costs one repeated call', async () => {
      const turn = session.run(`${agent}-killed`, '@slow 100', '@say end');
      await until('the stream', async () => (models.callsFor(`${agent}-killed`) === 1 ? true : null));
      process.kill(await programOf(gateway.pid), 'SIGKILL');
      assert.deepEqual(await turn, { state: 'completed' });
      assert.equal(session.replies.splice(0).at(-1)?.trim(), 'end');
      assert.equal(models.callsFor(`${agent}-killed`), 2);
    });

    test('without a key the turn fails with the reason', async () => {
      const { agents, ...access } = accessTo(models.url);
      await gateway.setAccess('vm', { ...access, agents: { ...agents, [kind]: null } });
      const end = await session.run(`${agent}-refused`, '@say never');
      assert.equal(end.state, 'failed');
      assert.match(JSON.stringify([end, session.replies]), /has no model key for this agent/);
      assert.equal(models.callsFor(`${agent}-refused`), 0);
      await gateway.setAccess('vm', accessTo(models.url));
    });
  });
}
