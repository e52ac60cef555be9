// Bridges of earlier versions, built from the same source: the gates of rules 6 and 11 of the
// interface, through the public API.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { BRIDGE_VERSION } from '@berth/protocol/agent-errors.ts';
import { awakeSandbox, sleepSandbox, wakeSandbox } from '../../world/client.ts';
import { killInGuest, stateOf } from '../faults.ts';
import { SUITE_AGENTS, type SuiteAgent } from './agents.ts';
import { assertRefused, SessionCheck } from './session-check.ts';
import { startAgentWorld, type AgentWorld } from './world.ts';

const KEY = 'request-key.1';
const KEYED = ['say keyed'];
const scripted = SUITE_AGENTS.find(({ real }) => real === null) as SuiteAgent;

for (const version of [3, 6]) {
  describe(`a bridge of version ${version}`, () => {
    let world: AgentWorld;
    let check: SessionCheck;
    before(async () => {
      world = await startAgentWorld({ environment: { BERTH_BRIDGE_VERSION: String(version) } });
      const { id } = await awakeSandbox(world.caller, { agent: scripted.id });
      check = await SessionCheck.start(world, scripted, id);
    });
    after(() => world[Symbol.asyncDispose]());

    const versionNow = async (): Promise<number | null> => (await check.talk.session()).bridgeVersion;
    const isRefused = async (): Promise<void> => {
      const { message } = assertRefused(await check.send('keyed', KEYED, KEY), 409, 'session_retry_upgrade_required');
      assert.match(message, /recover the session after its bridge has stopped, or create another one/);
    };

    it('refuses keyed messages and takes others', async () => {
      assert.equal(await versionNow(), version);
      await isRefused();
      assert.equal((await check.talk.session()).turnId, null);
      await check.run('first', ['say first']);
      assert.deepEqual(await check.texts(), ['first']);
    });

    it('is not upgraded by a recovery while it is ready', async () => {
      world.daemon.environment = { ...world.daemon.environment, BERTH_BRIDGE_VERSION: String(BRIDGE_VERSION) };
      await world.daemon.end('SIGKILL');
      await world.daemon.start();
      await check.talk.until('the host responds', ({ stateAt }) => Date.now() - Date.parse(stateAt) < 10_000);
      await check.talk.recover();
      assert.equal(await versionNow(), version);
      await isRefused();
    });

    it('leaves keyed messages to a new session', async () => {
      const other = await SessionCheck.start(world, scripted, check.talk.sandboxId);
      assert.equal((await other.talk.session()).bridgeVersion, BRIDGE_VERSION);
      const { status } = await other.send('keyed', KEYED, KEY);
      assert.equal(status, 202);
    });

    it('is recovered in an awake sandbox only', async () => {
      await killBridge();
      await sleepSandbox(world.caller, check.talk.sandboxId);
      assertRefused(await check.call('POST', '/recover'), 409, 'sandbox_state_conflict');
      await wakeSandbox(world.caller, check.talk.sandboxId);
    });

    it(`${version < 4 ? 'has no record of' : 'records'} its agent, which a recovery checks`, async () => {
      const owners = await stateOf(check.talk, 'owner.json');
      assert.equal(owners !== '', version >= 4);
      if (owners === '') return;

      const end = await check.recordLiving(owners);
      assertRefused(await check.call('POST', '/recover'), 409, 'agent_process_alive');
      await end();
    });

    it('is not recovered without the sign-in or the conversation', async () => {
      const folder = '~/.scripted-agent';
      await check.talk.run(`touch ${folder}/signed-out`);
      assertRefused(await check.call('POST', '/recover'), 409, 'agent_not_signed_in');
      await check.talk.run(`rm ${folder}/signed-out; mv ${folder} ~/kept`);
      assertRefused(await check.call('POST', '/recover'), 409, 'agent_conversation_missing');
      await check.talk.run(`rm -rf ${folder}; mv ~/kept ${folder}`);
    });

    it('is upgraded by a recovery after its end, and its replies stay', async () => {
      assert.equal((await check.call('POST', '/recover')).status, 200);
      assert.equal(await versionNow(), BRIDGE_VERSION);
      const { status, body } = await check.send('keyed', KEYED, KEY);
      assert.equal(status, 202, JSON.stringify(body));
      await check.ends((body as { turnId: string }).turnId, 'completed');
      assert.deepEqual(await check.texts(), ['first', 'keyed']);
    });

    /** A bridge without a record is found by the file beside its socket. */
    async function killBridge(): Promise<void> {
      if (version >= 4) await killInGuest(check.talk, 'bridge');
      else
        await check.talk.run(`kill -9 $(tr -dc '0-9,' </run/berth/agents/${check.talk.id}.sock.json | cut -d , -f 1)`);
      await check.stopped('bridge_ended');
    }
  });
}
