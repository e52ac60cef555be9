// The real agents' own programs in microVMs, opened with `berth agent open`: they talk to their
// user and, through the model gateway, to scripted models, and outlive connections and a sleep.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PseudoTerminal } from '../../os/test/pseudo-terminal.ts';
import { until } from '../../os/test/until.ts';
import { ModelServer } from '../model-servers/server.ts';
import { awakeSandbox, call, destroySandbox, exec, sleepSandbox, wakeSandbox, type Caller } from '../world/client.ts';
import { ownerSession } from '../world/owner-session.ts';
import { Parts } from '../world/parts.ts';
import { BERTH } from '../world/ssh-client.ts';

/** Keys that leave the terminal. */
const LEAVE = '\u0010\u0011';

let parts: Parts;
let models: ModelServer;
let owner: Caller;
const open = new Set<PseudoTerminal>();
before(async () => {
  models = await ModelServer.start();
  parts = await Parts.start({
    environment: { BERTH_MODEL_ENDPOINTS: `openai=${models.url},anthropic=${models.url}` },
  });
  owner = { ...parts.caller, token: await ownerSession(parts) };
});
after(async () => {
  open.forEach((terminal) => terminal.hangUp());
  await parts.stop();
  await parts.remove();
  await models.close();
});

function openAgent(sandboxId: string): PseudoTerminal {
  const { PATH, HOME } = process.env;
  const { url, token } = parts.caller;
  const env = { PATH, HOME, TERM: 'xterm-256color', BERTH_URL: url, BERTH_API_KEY: token };
  const terminal = new PseudoTerminal(BERTH, ['agent', 'open', sandboxId], env);
  open.add(terminal);
  return terminal;
}

/** Waits until the screen has the words: the bytes of a terminal move between them. */
async function shows(sandboxId: string, words: string): Promise<void> {
  const server = '"$(cd /tmp/tmux-$(id -u) && ls | grep ^berth-ags_)"';
  await until(`the terminal shows ${words}`, async () => {
    const { stdout } = await exec(parts.caller, sandboxId, `tmux -L ${server} capture-pane -p -t agent`);
    return stdout.includes(words) ? true : null;
  });
}

/** A caller sees the turns of the person, and the person that of the caller. */
async function takesPart(sandboxId: string, path: string): Promise<void> {
  const replies = async (): Promise<string[]> => {
    const { body } = await call(parts.caller, 'GET', `${path}/output`);
    return (body as { messages: { text: string }[] }).messages.map(({ text }) => text);
  };
  await until('the replies to the person', async () => ((await replies()).includes('and again') ? true : null));
  await until('the person has no turn', async () => {
    const { body } = await call(parts.caller, 'GET', path);
    return (body as { communication: { status: string } }).communication.status === 'available' ? true : null;
  });
  const sent = await call(parts.caller, 'POST', `${path}/messages`, {
    text: '@run touch ran; echo $((6 * 7))\n@result',
  });
  assert.equal(sent.status, 202);
  await shows(sandboxId, 'Would you like to run');
  const { body } = await call(parts.caller, 'GET', path);
  const { requestId } = (body as { pendingInput: { requestId: number } }).pendingInput;
  assert.equal((await call(parts.caller, 'POST', `${path}/answer`, { requestId, decision: 'accept' })).status, 200);
  await until('the reply', async () => ((await replies()).some((text) => text.includes('42')) ? true : null));
}

for (const [agent, program, ready] of [
  ['agent_one', 'codex', 'to do anything'],
  ['agent_two', 'claude', 'for shortcuts'],
] as const) {
  test(`${program} in a terminal talks to its user, and goes on over connections and a sleep`, async () => {
    const path = `/v1/orgs/${owner.orgId}/projects/${owner.projectId}/agent-credentials/${agent}`;
    assert.equal((await call(owner, 'PUT', path, { apiKey: 'sk-of-a-test' })).status, 200);
    const { id } = await awakeSandbox(parts.caller, { agent, machineSize: 'medium' });
    const trusted = { hasCompletedOnboarding: true, projects: { '/code': { hasTrustDialogAccepted: true } } };
    if (program === 'claude') await exec(parts.caller, id, `echo '${JSON.stringify(trusted)}' > ~/.claude.json`);

    const first = openAgent(id);
    await shows(id, ready);
    first.type('@say the model spoke');
    await shows(id, 'the model spoke');
    first.type('\r');
    await until('the model is called', async () => (models.callsFor('the model spoke') > 0 ? true : null));
    first.type(LEAVE);
    assert.equal(await first.ended(), 0);

    const processes = async (): Promise<string> =>
      (await exec(parts.caller, id, `pgrep -u berth -f '/opt/berth/agents/.*${program}' | head -1`)).stdout;
    const pid = await processes();
    assert.match(pid, /^\d+\n$/);
    await sleepSandbox(parts.caller, id);
    await wakeSandbox(parts.caller, id);
    const second = openAgent(id);
    await second.shows(/spoke/);
    assert.equal(await processes(), pid);
    second.type('@say and again');
    await shows(id, 'and again');
    second.type('\r');
    await until('the model is called again', async () => (models.callsFor('and again') > 0 ? true : null));

    const { body } = await call(parts.caller, 'GET', `/v1/agent-sessions?sandboxId=${id}`);
    const { sessions } = body as { sessions: { id: string; surface: string; bridgeState: string }[] };
    assert.deepEqual(
      sessions.map(({ surface, bridgeState }) => [surface, bridgeState]),
      [['terminal', 'ready']],
    );
    if (agent === 'agent_one') await takesPart(id, `/v1/agent-sessions/${sessions[0]?.id ?? ''}`);
    await destroySandbox(parts.caller, id);
  });
}
