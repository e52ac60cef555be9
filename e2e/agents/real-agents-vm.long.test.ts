// The real agents of the image in microVMs, through the public API and the model gateway, with
// scripted models: what an operator's end users get, on the emulated CPU of a test.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { LONG_RUN } from '../../os/test/long-run.ts';
import { until } from '../../os/test/until.ts';
import { ModelServer } from '../model-servers/server.ts';
import { awakeSandbox, call, destroySandbox, errorOf, sleepSandbox, type Caller } from '../world/client.ts';
import { ownerSession } from '../world/owner-session.ts';
import { Parts } from '../world/parts.ts';
import { Conversation } from './conversation.ts';

const run = promisify(execFile);

/** Finds any model key of this test, without containing one. */
const KEY_PATTERN = 'sk-in-no-guest-[0-9]{12}';
/** Life of a command that never ends by itself, in seconds; found by it. */
const TOOL_SECONDS = 86_429;
/** Longer than what an agent or a TCP connection waits by default. */
const SLEEP_SECONDS = LONG_RUN ? 600 : 1;

let parts: Parts;
let models: ModelServer;
let owner: Caller;
before(async () => {
  models = await ModelServer.start();
  parts = await Parts.start({
    environment: {
      BERTH_MODEL_ENDPOINTS: `openai=${models.url},anthropic=${models.url}`,
    },
  });
  owner = { ...parts.caller, token: await ownerSession(parts) };
});
after(async () => {
  await parts.stop();
  await parts.remove();
  await models.close();
});

for (const [agent, program] of [
  ['agent_one', 'codex'],
  ['agent_two', 'claude'],
] as const) {
  describe(`${program} in a VM`, { concurrency: false }, () => {
    const key = `sk-in-no-guest-${randomInt(1e11, 1e12)}`;
    let conversation: Conversation;
    let sandboxId: string;
    before(async () => {
      const path = `/v1/orgs/${owner.orgId}/projects/${owner.projectId}/agent-credentials/${agent}`;
      assert.equal((await call(owner, 'PUT', path, { apiKey: key })).status, 200);
      sandboxId = (await awakeSandbox(parts.caller, { agent, machineSize: 'medium' })).id;
      conversation = await Conversation.create(parts.caller, sandboxId);
    });
    after(() => destroySandbox(parts.caller, sandboxId));

    /** Runs a turn to its end; answers its approvals with the decision. Returns its replies. */
    async function turn(lines: readonly string[], decision: 'accept' | 'decline' = 'accept'): Promise<string[]> {
      const id = await send(...lines);
      await answer(id, decision);
      assert.equal((await conversation.ended(id)).state, 'completed');
      return await repliesOf(id);
    }

    const send = (...lines: string[]): Promise<string> =>
      conversation.deliver(lines.join('\n'), `turn-${randomInt(1e11, 1e12)}`);

    async function answer(turnId: string, decision: 'accept' | 'decline'): Promise<void> {
      await until('the turn has ended or waits', async () => {
        const { pendingInput, turnState } = await conversation.session();
        if (pendingInput === null) return ['completed', 'failed'].includes(turnState ?? '') ? true : null;
        assert.equal(pendingInput.turnId, turnId);
        const body = { requestId: pendingInput.requestId, decision };
        return (await conversation.call('POST', '/answer', body))?.status === 200 ? true : null;
      });
    }

    async function repliesOf(turnId: string): Promise<string[]> {
      await conversation.readOn();
      return conversation.read.filter((reply) => reply.turnId === turnId).map(({ text }) => text);
    }

    /** Process id of the agent, as its bridge recorded it. */
    const pid = (): Promise<string> =>
      conversation.run(`sudo jq .agent.pid /var/lib/berth/agent-sessions/${conversation.id}/owner.json`);

    /** Time of the guest, in seconds. */
    const guestClock = async (): Promise<number> => Number(await conversation.run('date +%s'));

    /** Fails if the key is in a process or file of the guest, or in its files on the host. */
    async function assertKeyIsNowhere(prompt: string): Promise<void> {
      const { asleep } = await onHost();
      if (!asleep) {
        const found = await conversation.run(
          // With all that was written on the disk, where the host searches.
          `sync; sudo grep -laE '${KEY_PATTERN}' /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; ` +
            `sudo grep -rlaE '${KEY_PATTERN}' /home /root /code /tmp /run /var/lib/berth /etc 2>/dev/null; true`,
        );
        assert.equal(found, '');
      }
      const files = (text: string): Promise<string> =>
        filesWith(text, join(parts.dataFolder, 'host', 'vms', sandboxId));
      assert.notEqual(await files(prompt), '', 'the search finds the prompt of the turn');
      assert.equal(await files(key), '');
    }

    async function onHost(): Promise<{ asleep: boolean }> {
      const { body } = await call(parts.caller, 'GET', `/v1/sandboxes/${sandboxId}`);
      return { asleep: (body as { sandbox: { status: string } }).sandbox.status === 'stopped' };
    }

    it('a turn replies, with the key that the gateway adds', async () => {
      assert.deepEqual(await turn([`${program}-hello`, '@say hello']), ['hello']);
      assert.equal(models.callsFor(`${program}-hello`), 1);
      const credential = models.calls.find(({ prompt }) => prompt.includes(`${program}-hello`))?.credential;
      assert.equal(credential?.replace('Bearer ', ''), key);
    });

    it('accept runs the command in the guest, decline does not', async () => {
      const replies = await turn([`${program}-run`, '@run touch /code/accepted; echo made-$((6*7))', '@result']);
      assert.match(replies.join(), /made-42/);
      await turn([`${program}-declined`, '@run touch /code/declined', '@say no'], 'decline');
      assert.equal(await conversation.run('ls /code'), 'accepted\n');
    });

    it('interrupt ends the turn and its command', async () => {
      const id = await send(
        `${program}-interrupt`,
        `@run touch /tmp/started; sleep ${TOOL_SECONDS}`,
        '@say not reached',
      );
      await answer(id, 'accept');
      await until('the command runs', async () =>
        (await conversation.run('ls /tmp/started 2>/dev/null || true')) === '' ? null : true,
      );
      assert.equal((await conversation.call('POST', '/interrupt'))?.status, 200);
      assert.equal((await conversation.ended(id)).state, 'canceled');
      assert.equal((await conversation.run(`pgrep -fc "sleep ${TOOL_SECONDS}$" || true`)).trim(), '0');
    });

    it('a turn that sleeps in mid stream completes in the same process; the key is nowhere', async () => {
      const agentPid = await pid();
      const prompt = `${program}-sleeps`;
      const id = await send(prompt, '@say first', '@hang once', '@say last');
      await until('the model streams', async () => (models.callsFor(prompt) > 0 ? true : null));
      await assertKeyIsNowhere(prompt);
      const before = await guestClock();
      await sleepSandbox(parts.caller, sandboxId);
      await assertKeyIsNowhere(prompt);
      await delay(SLEEP_SECONDS * 1_000);
      await conversation.wake();
      assert.equal((await conversation.ended(id)).state, 'completed');
      const asleep = (await guestClock()) - before;
      assert.ok(asleep >= SLEEP_SECONDS, `the guest slept ${asleep} s by its clock`);
      assert.deepEqual(await repliesOf(id), ['first', 'last']);
      assert.equal(await pid(), agentPid);
      await sleepSandbox(parts.caller, sandboxId);
      await assertKeyIsNowhere(prompt);
      await conversation.wake();
    });

    it('a killed agent recovers with its conversation', async () => {
      await conversation.run(`sudo kill -9 ${(await pid()).trim()}`);
      await until('the bridge has stopped', async () =>
        (await conversation.session()).bridgeState === 'stopped' ? true : null,
      );
      await conversation.recover();
      const replies = await turn([`${program}-after`, '@history']);
      assert.match(replies.join(), /hello/);
    });
  });
}

it('a sandbox whose template lacks the agent refuses a session', async () => {
  const { id } = await awakeSandbox(parts.caller, { agent: 'agent_two' });
  const command = 'sudo mv /opt/berth/agents/agents.json /opt/berth/agents/absent';
  assert.equal((await call(parts.caller, 'POST', `/v1/sandboxes/${id}/exec`, { command })).status, 200);
  const refused = await call(parts.caller, 'POST', `/v1/sandboxes/${id}/agent-sessions`);
  const { code, message } = errorOf(refused, 409);
  assert.equal(code, 'agent_not_installed');
  assert.match(message, /image does not have agent_two\. .*berth up --agents agent_one,agent_two/);
  await destroySandbox(parts.caller, id);
});

/** Files below the folder with the text, one on a line. */
async function filesWith(text: string, folder: string): Promise<string> {
  // grep exits with 1 without a match.
  const args = ['--recursive', '--text', '--files-with-matches', '--fixed-strings', '--', text, folder];
  return await run('grep', args).then(
    ({ stdout }) => stdout,
    (error: { code?: unknown }) => {
      if (error.code === 1) return '';
      throw error;
    },
  );
}
